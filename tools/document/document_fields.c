/* SPDX-License-Identifier: MIT */
#include "tools/document/document_fields.h"

#include <math.h>
#include <string.h>

static const char *const words_kind[] = {"leak", "frag", "full", "diff", NULL};
static const char *const words_counts[] = {"exact", "sampled", NULL};
static const char *const words_lang[] = {"c", "cpp", "py", NULL};
static const char *const words_sym[] = {"debug", "symtab", "dynsym", "none", NULL};
static const char *const words_scanned[] = {"never", "once", "nothing", "found", NULL};
static const char *const words_outcome[] = {"fine", "found", "inconclusive", NULL};
const char *const tm_words_ended[] = {"running", "clean", "killed", NULL};
const char *const tm_words_tier[] = {"persistent", "session", "temporary", NULL};
const char *const tm_words_leak_class[] = {"growing", "unreachable", "exit", NULL};
const char *const tm_words_authority[] = {"rule",    "learned", "profile", "size",
					  "default", "phase",   "caller",  NULL};

/* In the tables below OF is the struct that the table describes. */
#define PLAIN(member, kind, about)                                                                 \
	{                                                                                          \
#member, TM_FIELD_##kind, offsetof(OF, member), NULL, NULL, about                  \
	}
#define NAMED(name, member, kind, about)                                                           \
	{                                                                                          \
		name, TM_FIELD_##kind, offsetof(OF, member), NULL, NULL, about                     \
	}
#define WORD(member, words, about)                                                                 \
	{                                                                                          \
#member, TM_FIELD_WORD, offsetof(OF, member), words, NULL, about                   \
	}
#define NESTED(member, kind, type, about)                                                          \
	{                                                                                          \
#member, TM_FIELD_##kind, offsetof(OF, member), NULL, &type, about                 \
	}
#define TYPE(name, fields)                                                                         \
	{                                                                                          \
		name, sizeof(OF), fields, TM_ARRAY_LEN(fields)                                     \
	}

_Static_assert(sizeof(enum tm_doc_tier) == sizeof(unsigned), "words are read as unsigned");

#define OF struct tm_doc_tool
static const struct tm_field fields_tool[] = {
	PLAIN(version, TEXT, NULL),
	PLAIN(features, TEXTS, "of the ledger: what was counted; observe: no tier was used"),
};
static const struct tm_type type_tool = TYPE("tool", fields_tool);
#undef OF

#define OF struct tm_doc_process
static const struct tm_field fields_process[] = {
	PLAIN(pid, COUNT, "in its own namespace"),
	PLAIN(start_unix_ns, STAMP, NULL),
	PLAIN(cmdline, TEXTS, "may hold secrets; HTML leaves it out unless asked"),
	PLAIN(program, TEXT, "file name without folder"),
	PLAIN(host, TEXT, NULL),
	PLAIN(exe_build_id, TEXT, NULL),
	PLAIN(boot_id, TEXT, NULL),
	PLAIN(container, TEXT, NULL),
	WORD(ended, tm_words_ended, "killed: no mark of a clean exit"),
	PLAIN(heartbeat_age_ms, COUNT, "at capture, since the process last wrote its clock"),
	PLAIN(threads, COUNT, NULL),
	PLAIN(limit_bytes, COUNT, "of memory, by its cgroup"),
	PLAIN(ledger, TEXT, "file that this was read from"),
};
static const struct tm_type type_process = TYPE("process", fields_process);
#undef OF

#define OF struct tm_doc_capture
static const struct tm_field fields_capture[] = {
	PLAIN(t0_unix_ns, STAMP, NULL),
	PLAIN(t1_unix_ns, STAMP, NULL),
	WORD(counts, words_counts, NULL),
	PLAIN(stack_interval_bytes, COUNT, "between sampled stacks; 0: none are sampled"),
	PLAIN(seqlock_torn, COUNT, "records that made no sense"),
	PLAIN(sites_dropped, COUNT, "merged into the site without a stack"),
	PLAIN(pre_attach, FLAG, "blocks exist that are older than the account"),
	PLAIN(window_ms, COUNT, "of the growth test"),
	PLAIN(windows, COUNT, "seen so far"),
};
static const struct tm_type type_capture = TYPE("capture", fields_capture);
#undef OF

#define OF struct tm_doc_scans
static const struct tm_field fields_scans[] = {
	WORD(state, words_scanned, "nothing, found: of two passes; once: one more is needed"),
	PLAIN(passes, COUNT, "over the life of the process"),
	PLAIN(at_unix_ns, STAMP, "end of the last pass"),
	PLAIN(read_bytes, COUNT, "of memory that the last pass looked for pointers in"),
	PLAIN(unread_bytes, COUNT, "that it could not look into"),
	PLAIN(threads_stopped, COUNT, NULL),
	PLAIN(threads_missed, COUNT, NULL),
	PLAIN(stopped_us, COUNT, "how long threads stood still"),
	PLAIN(found_objs, COUNT, "unreachable in the last two passes, suppressed ones included"),
	PLAIN(found_bytes, COUNT, "of those"),
	PLAIN(young_objs, COUNT, "of the window of the last pass or later ones: not judged"),
	PLAIN(young_bytes, COUNT, "of those"),
	PLAIN(why, TEXT, "no pass was made for this report"),
};
static const struct tm_type type_scans = TYPE("scans", fields_scans);
#undef OF

#define OF struct tm_doc_verdict
static const struct tm_field fields_verdict[] = {
	PLAIN(text, TEXT, "the first line of the text report"),
	WORD(outcome, words_outcome, NULL),
	PLAIN(growing, COUNT, "entries of leaks"),
	PLAIN(unreachable, COUNT, "entries of leaks"),
	PLAIN(at_exit, COUNT, "entries of leaks"),
	PLAIN(watch, COUNT, "entries of watch"),
	PLAIN(growth_bytes_per_h, REAL, "of all growing sites"),
	PLAIN(growth_ci95, REALS, "two bounds"),
	PLAIN(limit_reached_h, REAL, "hours until process.limit_bytes at this rate"),
	PLAIN(limit_reached_ci95, REALS, "two bounds"),
};
static const struct tm_type type_verdict = TYPE("verdict", fields_verdict);
#undef OF

#define OF struct tm_doc_balance
static const struct tm_field fields_balance[] = {
	PLAIN(rss_bytes, COUNT, "the sum of everything below"),
	PLAIN(live_req, DELTA, "requested bytes of live blocks"),
	PLAIN(internal, DELTA, "rounding of live blocks to their slots"),
	PLAIN(external, DELTA, "free slots on pages that hold live blocks"),
	PLAIN(cached, DELTA, "resident pages without a live block"),
	PLAIN(metadata, DELTA, "of the allocator, its account included"),
	PLAIN(other_anon, DELTA, "stacks, other allocators, direct mappings"),
	PLAIN(file, DELTA, "mapped files"),
	PLAIN(pinned, DELTA, "pinned for a device"),
	PLAIN(nonresident, DELTA, "untouched or swapped pages of live blocks, not positive"),
	PLAIN(residual, DELTA, "what nothing above explains"),
};
static const struct tm_type type_balance = TYPE("balance", fields_balance);
#undef OF

#define OF struct tm_doc_mapping
static const struct tm_field fields_mapping[] = {
	PLAIN(name, TEXT, NULL),
	PLAIN(part, TEXT, "the key of balance that holds it; null: outside of RSS"),
	PLAIN(bytes, COUNT, "resident"),
	PLAIN(mapped_bytes, COUNT, NULL),
	PLAIN(count, COUNT, NULL),
};
static const struct tm_type type_mapping = TYPE("mapping", fields_mapping);
#undef OF

#define OF struct tm_doc_tier_row
static const struct tm_field fields_tier[] = {
	WORD(tier, tm_words_tier, NULL),
	PLAIN(live_req, COUNT, "bytes requested"),
	PLAIN(live_objs, COUNT, NULL),
	PLAIN(slot, COUNT, "bytes of the slots of live blocks"),
	PLAIN(span, COUNT, "bytes of pages that hold a live block"),
	PLAIN(cached, COUNT, "bytes of resident pages without one"),
	PLAIN(peak_live, COUNT, "bytes"),
	PLAIN(peak_rss, COUNT, "bytes"),
	PLAIN(blowup_now, REAL, "resident bytes of the tier over live_req"),
	PLAIN(blowup_peak, REAL, "peak_rss over peak_live"),
	PLAIN(huge_cov, REAL, "share of resident bytes on huge pages"),
	PLAIN(purity, REAL, "share of live bytes on its 2 MiB pages that are of this tier"),
	PLAIN(max_bytes, COUNT, "ceiling that was set"),
	PLAIN(refused, COUNT, "requests beyond it"),
	PLAIN(sparse_pages, COUNT, "2 MiB pages less than half live"),
	PLAIN(saved_bytes, DELTA, "against one heap without tiers; negative: lost"),
	PLAIN(life_hist_log2s, NUMBERS, "freed objects by log2 of lifetime in s; first: below 1 s"),
	PLAIN(verdict, TEXT, NULL),
};
static const struct tm_type type_tier = TYPE("tier", fields_tier);
#undef OF

#define OF struct tm_doc_class
static const struct tm_field fields_class[] = {
	WORD(tier, tm_words_tier, NULL),
	PLAIN(class_bytes, COUNT, "of a slot"),
	PLAIN(live_objs, COUNT, NULL),
	PLAIN(req_bytes, COUNT, "requested bytes of live blocks"),
	PLAIN(spans, COUNT, NULL),
	NAMED("int", internal, REAL, "share of live slots' bytes that was not asked for"),
	NAMED("ext", external, REAL, "share of spans' bytes in free slots"),
	PLAIN(span_bytes, COUNT, NULL),
	PLAIN(span_fill_hist, NUMBERS, "spans by tenths of fullness"),
};
static const struct tm_type type_class = TYPE("class", fields_class);
#undef OF

#define OF struct tm_doc_size
static const struct tm_field fields_size[] = {
	PLAIN(size, COUNT, "bytes requested, exactly"),
	PLAIN(count, COUNT, "requests"),
	PLAIN(peak_concurrent, COUNT, "objects live at once"),
	WORD(tier, tm_words_tier, NULL),
};
static const struct tm_type type_size = TYPE("size", fields_size);
#undef OF

#define OF struct tm_doc_pool
static const struct tm_field fields_pool[] = {
	WORD(tier, tm_words_tier, NULL),
	PLAIN(slot_bytes, COUNT, NULL),
	PLAIN(hits, COUNT, NULL),
	PLAIN(misses, COUNT, NULL),
	PLAIN(exhausted, COUNT, "requests that found no free slot"),
	PLAIN(high_water, COUNT, "slots in use at once"),
	PLAIN(slots, COUNT, NULL),
};
static const struct tm_type type_pool = TYPE("pool", fields_pool);
#undef OF

#define OF struct tm_doc_page
static const struct tm_field fields_page[] = {
	PLAIN(addr, ADDRESS, NULL),
	WORD(tier, tm_words_tier, "of most of its live bytes"),
	PLAIN(live_bytes, COUNT, NULL),
	PLAIN(longest_free, COUNT, "bytes in a row"),
	PLAIN(huge, FLAG, "backed by one huge page"),
	PLAIN(pinned_by, TEXT, "site charged most for its waste"),
	PLAIN(pinned_bytes, COUNT, "live bytes of its oldest survivors"),
	PLAIN(sites, COUNT, "with blocks on it"),
};
static const struct tm_type type_page = TYPE("page", fields_page);
#undef OF

#define OF struct tm_doc_hugepages
static const struct tm_field fields_hugepages[] = {
	PLAIN(density_hist, NUMBERS, "2 MiB pages by tenths of live bytes"),
	PLAIN(longest_free_hist, NUMBERS, "2 MiB pages by log2 of the longest free run in bytes"),
	PLAIN(huge_bytes, COUNT, "on huge pages"),
	PLAIN(resident_bytes, COUNT, NULL),
	NESTED(pages, ROWS, type_page, "one for each 2 MiB, by address"),
};
static const struct tm_type type_hugepages = TYPE("hugepages", fields_hugepages);
#undef OF

#define OF struct tm_doc_module
static const struct tm_field fields_module[] = {
	PLAIN(id, COUNT, "its place in the list"),
	PLAIN(path, TEXT, NULL),
	PLAIN(build_id, TEXT, NULL),
	PLAIN(base, ADDRESS, NULL),
	PLAIN(end, ADDRESS, NULL),
	PLAIN(offset, COUNT, "in the file, of base"),
	PLAIN(loaded_ns, STAMP, "Unix time"),
	PLAIN(unloaded_ns, STAMP, "Unix time; null: still loaded"),
};
static const struct tm_type type_module = TYPE("module", fields_module);
#undef OF

#define OF struct tm_doc_frame
static const struct tm_field fields_frame[] = {
	PLAIN(id, COUNT, "its place in the list"),
	PLAIN(module, INDEX, NULL),
	PLAIN(addr, ADDRESS, "return address"),
	PLAIN(fn, TEXT, "demangled; null where no symbol covers the address"),
	PLAIN(symbol, TEXT, "as linked"),
	PLAIN(file, TEXT, NULL),
	PLAIN(line, COUNT, "0: unknown"),
	PLAIN(inline_of, INDEX, "the frame that it was inlined into"),
	WORD(lang, words_lang, NULL),
	WORD(sym, words_sym, "where the name is from"),
};
static const struct tm_type type_frame = TYPE("frame", fields_frame);
#undef OF

#define OF struct tm_doc_stack
static const struct tm_field fields_stack[] = {
	PLAIN(id, COUNT, "its place in the list"),
	PLAIN(frames, NUMBERS, "ids, innermost first"),
	PLAIN(truncated, FLAG, "the stack went on"),
};
static const struct tm_type type_stack = TYPE("stack", fields_stack);
#undef OF

#define OF struct tm_doc_site
static const struct tm_field fields_site[] = {
	PLAIN(id, TEXT, "stable over runs of the same binaries"),
	PLAIN(stack, INDEX, NULL),
	WORD(tier, tm_words_tier, NULL),
	WORD(authority, tm_words_authority, "what chose the tier"),
	PLAIN(height, COUNT, "bytes of stack at the call; 0: not told apart"),
	PLAIN(alloc_objs, COUNT, NULL),
	PLAIN(alloc_bytes, COUNT, NULL),
	PLAIN(free_objs, COUNT, NULL),
	PLAIN(free_bytes, COUNT, NULL),
	PLAIN(live_objs, COUNT, NULL),
	PLAIN(live_bytes, COUNT, NULL),
	PLAIN(slot_bytes, COUNT, "of live objects"),
	PLAIN(size_min, COUNT, "of a request"),
	PLAIN(size_max, COUNT, "of a request"),
	PLAIN(life_hist_log2s, NUMBERS, "freed objects by log2 of lifetime in s; first: below 1 s"),
	PLAIN(age_hist_log2s, NUMBERS, "live objects by log2 of age in s; first: below 1 s"),
	PLAIN(age_bytes_hist_log2s, NUMBERS, "their bytes"),
	PLAIN(cohorts, NUMBERS, "live objects by window of birth, oldest first"),
	PLAIN(temporary_objs, COUNT, "freed within the window of their birth"),
	PLAIN(per_session, REAL, "objects kept for each session"),
	PLAIN(per_request, REAL, "objects kept for each request"),
	PLAIN(frag_pinned_bytes, COUNT, "waste of 2 MiB pages charged to its oldest objects"),
	PLAIN(growth_bytes, COUNT, "of objects that outlive their peers, in the time captured"),
	PLAIN(growth_bytes_per_h, REAL, NULL),
	PLAIN(unreachable_objs, COUNT, NULL),
	PLAIN(unreachable_bytes, COUNT, NULL),
	PLAIN(est_rel_err, REAL, "0: exact"),
	PLAIN(base_alloc_objs, COUNT, "diff: in A"),
	PLAIN(base_alloc_bytes, COUNT, "diff: in A"),
	PLAIN(base_live_objs, COUNT, "diff: in A"),
	PLAIN(base_live_bytes, COUNT, "diff: in A"),
	PLAIN(tag, TEXT, "tiermalloc_tag_push()"),
};
static const struct tm_type type_site = TYPE("site", fields_site);
#undef OF

#define OF struct tm_doc_corr
static const struct tm_field fields_corr[] = {
	PLAIN(requests, REAL, NULL),
	PLAIN(tokens, REAL, NULL),
};
static const struct tm_type type_corr = TYPE("corr", fields_corr);
#undef OF

#define OF struct tm_doc_scan
static const struct tm_field fields_scan[] = {
	PLAIN(passes, COUNT, NULL),
	PLAIN(threads_stopped, COUNT, NULL),
	PLAIN(threads_missed, COUNT, NULL),
};
static const struct tm_type type_scan = TYPE("scan", fields_scan);
#undef OF

#define OF struct tm_doc_leak
static const struct tm_field fields_leak[] = {
	PLAIN(rank, COUNT, "from 1"),
	PLAIN(site, TEXT, NULL),
	WORD(class, tm_words_leak_class, NULL),
	PLAIN(confidence, REAL, NULL),
	PLAIN(slope_bytes_per_h, REAL, NULL),
	PLAIN(ci95, REALS, "two bounds of the slope"),
	PLAIN(p, REAL, NULL),
	PLAIN(q, REAL, "p, corrected for the number of sites"),
	PLAIN(cohort_fill, REAL, "share of old cohorts that still hold objects"),
	NESTED(corr, OBJECT, type_corr, "with traffic"),
	PLAIN(direct, COUNT, "unreachable bytes that nothing points to"),
	PLAIN(indirect, COUNT, "unreachable bytes that only such blocks point to"),
	PLAIN(direct_objs, COUNT, NULL),
	PLAIN(indirect_objs, COUNT, NULL),
	NESTED(scan, OBJECT, type_scan, NULL),
	PLAIN(live_bytes, COUNT, NULL),
	PLAIN(live_objs, COUNT, NULL),
	PLAIN(per_session, REAL, "objects kept for each session"),
	PLAIN(per_request, REAL, "objects kept for each request"),
	PLAIN(evidence, TEXTS, NULL),
	PLAIN(holders, TEXTS, "the chain that keeps it reachable, root first"),
	PLAIN(hint, TEXT, NULL),
	PLAIN(acknowledged, FLAG, NULL),
	PLAIN(cap_bytes, COUNT, "up to which it is acknowledged"),
};
static const struct tm_type type_leak = TYPE("leak", fields_leak);
#undef OF

#define OF struct tm_doc_watch
static const struct tm_field fields_watch[] = {
	PLAIN(site, TEXT, NULL),
	WORD(class, tm_words_leak_class, NULL),
	PLAIN(note, TEXT, NULL),
};
static const struct tm_type type_watch = TYPE("watch", fields_watch);
#undef OF

#define OF struct tm_doc_series
static const struct tm_field fields_series[] = {
	PLAIN(name, TEXT, NULL),
	PLAIN(values, REALS, NULL),
};
const struct tm_type tm_type_series = TYPE("series", fields_series);
#undef OF

#define OF struct tm_doc_timeline
static const struct tm_field fields_timeline[] = {
	PLAIN(step_s, COUNT, "of the newest part; older parts may be coarser"),
	PLAIN(t, REALS, "Unix seconds, rising"),
	NESTED(series, SERIES, tm_type_series,
	       "bytes at each t: rss, live, limit, tier.NAME.live, gpu.used"),
};
static const struct tm_type type_timeline = TYPE("timeline", fields_timeline);
#undef OF

#define OF struct tm_doc_gpu_site
static const struct tm_field fields_gpu_site[] = {
	PLAIN(site, TEXT, "id of a site, or an address"),
	PLAIN(kind, TEXT, "the driver's function, and whose cache it is"),
	PLAIN(live_bytes, COUNT, NULL),
	PLAIN(live_objs, COUNT, NULL),
	PLAIN(peak, COUNT, "bytes"),
	PLAIN(alloc_objs, COUNT, NULL),
	PLAIN(alloc_bytes, COUNT, NULL),
	PLAIN(context, ADDRESS, "handle"),
	PLAIN(stack, INDEX, NULL),
	WORD(tier, tm_words_tier, NULL),
	PLAIN(reserved_by, TEXT,
	      "the library that keeps it and deals it out itself; null: none known"),
	PLAIN(base_live_objs, COUNT, "diff: in A"),
	PLAIN(base_live_bytes, COUNT, "diff: in A"),
	PLAIN(growing, FLAG, "it leaks, by the test of leaks of class growing"),
	PLAIN(growth_bytes_per_h, REAL, "of what has become old; null: not tested"),
	PLAIN(confidence, REAL, NULL),
};
static const struct tm_type type_gpu_site = TYPE("gpu_site", fields_gpu_site);
#undef OF

#define OF struct tm_doc_gpu
static const struct tm_field fields_gpu[] = {
	PLAIN(dev, COUNT, NULL),
	PLAIN(api, TEXT, "the driver's function"),
	PLAIN(memory, TEXT, "device, stream-ordered, virtual memory, managed, pinned host, ..."),
	PLAIN(live_bytes, COUNT, NULL),
	PLAIN(peak, COUNT, "bytes, at most: peaks of sites need not meet"),
	PLAIN(live_objs, COUNT, NULL),
	PLAIN(alloc_objs, COUNT, NULL),
	PLAIN(alloc_bytes, COUNT, NULL),
	NESTED(sites, ROWS, type_gpu_site, NULL),
};
static const struct tm_type type_gpu = TYPE("gpu", fields_gpu);
#undef OF

#define OF struct tm_doc_gpu_pool
static const struct tm_field fields_gpu_pool[] = {
	PLAIN(dev, COUNT, NULL),
	PLAIN(context, ADDRESS, "handle"),
	PLAIN(pool, TEXT, "slabs, chunks, whole blocks, pinned host"),
	PLAIN(reserved_bytes, COUNT, "of the driver"),
	PLAIN(used_bytes, COUNT, "of these handed out"),
	PLAIN(idle_bytes, COUNT, "kept, free for reuse"),
	PLAIN(hits, COUNT, "requests of the context served without the driver; in its first row"),
	PLAIN(misses, COUNT, "the others"),
};
static const struct tm_type type_gpu_pool = TYPE("gpu_pool", fields_gpu_pool);
#undef OF

#define OF struct tm_doc_event
static const struct tm_field fields_event[] = {
	PLAIN(at_unix_ns, STAMP, NULL),
	PLAIN(kind, TEXT, NULL),
	PLAIN(text, TEXT, NULL),
};
static const struct tm_type type_event = TYPE("event", fields_event);
#undef OF

#define OF struct tm_doc_suggestion
static const struct tm_field fields_suggestion[] = {
	PLAIN(rule, TEXT, "a line of tiermalloc-rules(5)"),
	PLAIN(why, TEXT, NULL),
	PLAIN(saves_bytes, COUNT, "predicted"),
};
static const struct tm_type type_suggestion = TYPE("suggestion", fields_suggestion);
#undef OF

#define OF struct tm_doc_diff
static const struct tm_field fields_diff[] = {
	PLAIN(a, TEXT, "the earlier; null: the document is no diff"),
	PLAIN(b, TEXT, "the later: what is not named base is of it"),
	PLAIN(a_unix_ns, STAMP, NULL),
	PLAIN(b_unix_ns, STAMP, NULL),
	NESTED(base, OBJECT, type_balance, "of A"),
};
static const struct tm_type type_diff = TYPE("diff", fields_diff);
#undef OF

#define OF struct tm_document
static const struct tm_field fields_document[] = {
	PLAIN(schema, TEXT, NULL),
	WORD(kind, words_kind, NULL),
	NESTED(tool, OBJECT, type_tool, NULL),
	NESTED(process, OBJECT, type_process, NULL),
	NESTED(capture, OBJECT, type_capture, NULL),
	NESTED(scan, OBJECT, type_scans, "live scans for blocks that nothing points to"),
	NESTED(verdict, OBJECT, type_verdict, NULL),
	NESTED(balance, OBJECT, type_balance, "bytes; the parts sum to rss_bytes"),
	NESTED(mappings, ROWS, type_mapping, "what other_anon, file and pinned consist of"),
	NESTED(tiers, ROWS, type_tier, NULL),
	NESTED(classes, ROWS, type_class, NULL),
	NESTED(sizes, ROWS, type_size, "exact sizes, most requested first"),
	NESTED(pools, ROWS, type_pool, NULL),
	NESTED(hugepages, OBJECT, type_hugepages, NULL),
	NESTED(modules, ROWS, type_module, NULL),
	NESTED(frames, ROWS, type_frame, NULL),
	NESTED(stacks, ROWS, type_stack, NULL),
	NESTED(sites, ROWS, type_site, "largest live bytes first"),
	NESTED(leaks, ROWS, type_leak, NULL),
	NESTED(watch, ROWS, type_watch, "seen, not judged a leak"),
	NESTED(timeline, OBJECT, type_timeline, NULL),
	NESTED(gpu, ROWS, type_gpu, NULL),
	NESTED(gpu_pools, ROWS, type_gpu_pool, "the library's own, as of the last sample"),
	NESTED(events, ROWS, type_event, NULL),
	NESTED(suggestions, ROWS, type_suggestion, NULL),
	NESTED(diff, OBJECT, type_diff, NULL),
	PLAIN(blind_spots, TEXTS, "what the account cannot see"),
};
const struct tm_type tm_type_document = TYPE("document", fields_document);
#undef OF

static void blank_field(const struct tm_field *f, void *at)
{
	static const uint64_t unknown = TM_DOC_UNKNOWN;
	static const int64_t unknown_delta = TM_DOC_UNKNOWN_DELTA;
	static const uint32_t nowhere = TM_DOC_NOWHERE;
	static const double nan = NAN;

	switch (f->kind) {
	case TM_FIELD_COUNT:
	case TM_FIELD_STAMP:
	case TM_FIELD_ADDRESS: memcpy(at, &unknown, sizeof(unknown)); break;
	case TM_FIELD_DELTA: memcpy(at, &unknown_delta, sizeof(unknown_delta)); break;
	case TM_FIELD_REAL: memcpy(at, &nan, sizeof(nan)); break;
	case TM_FIELD_INDEX: memcpy(at, &nowhere, sizeof(nowhere)); break;
	case TM_FIELD_OBJECT: tm_fields_blank(f->type, at); break;
	case TM_FIELD_FLAG:
	case TM_FIELD_TEXT:
	case TM_FIELD_WORD:
	case TM_FIELD_NUMBERS:
	case TM_FIELD_REALS:
	case TM_FIELD_TEXTS:
	case TM_FIELD_ROWS:
	case TM_FIELD_SERIES: break; /* all zeros already */
	}
}

void tm_fields_blank(const struct tm_type *type, void *object)
{
	memset(object, 0, type->bytes);
	for (size_t i = 0; i < type->count; i++)
		blank_field(&type->fields[i], (char *)object + type->fields[i].offset);
}

struct tm_any_list tm_fields_list(const void *object, const struct tm_field *field)
{
	struct tm_any_list list;

	memcpy(&list, (const char *)object + field->offset, sizeof(list));
	return list;
}
