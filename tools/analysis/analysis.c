/* SPDX-License-Identifier: MIT */
#include "tools/analysis/analysis.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/fmt.h"

/* --- who, when -------------------------------------------------------------------------------- */

static const char *hex(struct tm_document *doc, const uint8_t *id, size_t bytes, size_t most)
{
	if (bytes == 0 || bytes > most)
		return NULL;
	char *text = tm_document_alloc(doc, 2 * bytes + 1);
	for (size_t i = 0; i < bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	return text;
}

static void add_command_line(struct tm_analysis *a)
{
	const char *text = tm_ledger_at(a->ledger, TM_LEDGER_COMMAND_AT);
	size_t left = a->ledger->header.command_bytes;

	if (left > TM_LEDGER_COMMAND_BYTES)
		left = TM_LEDGER_COMMAND_BYTES;
	while (left > 0) {
		size_t len = strnlen(text, left);
		char *word = tm_document_alloc(a->doc, len + 1);

		memcpy(word, text, len);
		tm_document_push_text(a->doc, &a->doc->process.cmdline, word);
		if (len == left)
			break;
		text += len + 1;
		left -= len + 1;
	}
}

static const char *feature_name(uint32_t bit)
{
	switch (bit) {
	case TM_LEDGER_HAS_STACKS: return "stacks";
	case TM_LEDGER_HAS_EPOCHS: return "epochs";
	case TM_LEDGER_HAS_SAMPLES: return "samples";
	case TM_LEDGER_HAS_BIRTHS: return "births";
	case TM_LEDGER_HAS_TIERS: return "tiers";
	case TM_LEDGER_HAS_SIZES: return "sizes";
	case TM_LEDGER_OBSERVES: return "observe";
	default: return NULL;
	}
}

static void add_process(struct tm_analysis *a)
{
	const struct tm_ledger_header *h = &a->ledger->header;
	struct tm_doc_process *p = &a->doc->process;
	const char *ended = tm_ledger_ended(a->ledger);
	char host[256];

	p->pid = h->pid;
	p->start_unix_ns = h->begun_unix_ns;
	p->program = tm_document_text(a->doc, h->program);
	p->exe_build_id =
		hex(a->doc, h->exe_build_id, h->exe_build_id_bytes, sizeof(h->exe_build_id));
	if (gethostname(host, sizeof(host)) == 0)
		p->host = tm_document_text(a->doc, host);
	p->boot_id = tm_document_format(a->doc, "%016" PRIx64 "%016" PRIx64, h->boot_id[0],
					h->boot_id[1]);
	p->ended = strcmp(ended, "running") == 0 ? TM_DOC_RUNNING
		   : strcmp(ended, "clean") == 0 ? TM_DOC_CLEAN
						 : TM_DOC_KILLED;
	p->ledger = tm_document_text(a->doc, a->ledger->path);
	if (a->ledger->counters.limit_bytes)
		p->limit_bytes = a->ledger->counters.limit_bytes;
	uint64_t heard = tm_ledger_unix_ns(a->ledger, h->heartbeat_ms);
	if (heard && a->ledger->read_ns > heard)
		p->heartbeat_age_ms = (a->ledger->read_ns - heard) / 1000000;
	add_command_line(a);
	for (unsigned bit = 0; bit < 32; bit++) {
		const char *name = h->features >> bit & 1 ? feature_name(1u << bit) : NULL;

		if (name)
			tm_document_push_text(a->doc, &a->doc->tool.features, name);
	}
}

static void add_capture(struct tm_analysis *a)
{
	const struct tm_ledger_header *h = &a->ledger->header;
	struct tm_doc_capture *c = &a->doc->capture;

	c->t0_unix_ns = h->begun_unix_ns;
	c->t1_unix_ns = tm_ledger_unix_ns(a->ledger, tm_ledger_now_ms(a->ledger));
	c->counts = TM_DOC_EXACT;
	c->stack_interval_bytes = h->features & TM_LEDGER_HAS_SAMPLES ? 524288 : 0;
	c->sites_dropped = 0;
	c->pre_attach = h->before_span_bytes != 0;
	c->window_ms = h->window_ms;
	c->windows = h->windows;
}

/* Adds all module records in order, so that a record's number is its index here. */
static void add_modules(struct tm_analysis *a)
{
	const struct tm_ledger_module *m = tm_ledger_at(a->ledger, TM_LEDGER_MODULES_AT);

	for (uint32_t i = 0; i < a->ledger->header.modules; i++, m++) {
		struct tm_doc_module *to = tm_document_add(a->doc, TM_DOC_MODULES);
		char path[sizeof(m->path) + 1];

		snprintf(path, sizeof(path), "%.*s", (int)strnlen(m->path, sizeof(m->path)),
			 m->path);
		to->path = tm_document_text(a->doc, path);
		to->build_id = hex(a->doc, m->build_id, m->build_id_bytes, sizeof(m->build_id));
		to->base = m->base;
		to->end = m->end;
		to->offset = m->begin - m->base;
		to->loaded_ns = tm_ledger_unix_ns(a->ledger, m->loaded_ms);
		if (m->unloaded_ms)
			to->unloaded_ns = tm_ledger_unix_ns(a->ledger, m->unloaded_ms);
	}
}

/* --- sites ------------------------------------------------------------------------------------ */

static void add_histogram(struct tm_document *doc, struct tm_doc_numbers *list, const uint64_t *n)
{
	size_t last = TM_LEDGER_AGES;

	while (last > 0 && n[last - 1] == 0)
		last--;
	for (size_t i = 0; i < last; i++)
		tm_document_push_number(doc, list, n[i]);
}

static void add_sites(struct tm_analysis *a)
{
	for (size_t i = 0; i < a->ledger->site_count; i++) {
		const struct tm_ledger_site *from = &a->ledger->sites[i];
		struct tm_doc_site *to = tm_document_add(a->doc, TM_DOC_SITES);

		to->tier = from->tier;
		if (from->height)
			to->height = ((uint64_t)from->height - 1) * 16;
		to->alloc_objs =
			from->objects > from->all_objects ? from->objects : from->all_objects;
		to->alloc_bytes = from->bytes > from->all_bytes ? from->bytes : from->all_bytes;
		to->live_objs = from->live_objects;
		to->live_bytes = from->live_bytes;
		to->free_objs = to->alloc_objs - from->all_objects;
		to->free_bytes = to->alloc_bytes - from->all_bytes;
		to->slot_bytes = from->slot_bytes;
		if (from->live_objects) {
			to->size_min = from->size_min;
			to->size_max = from->size_max;
		}
		to->unreachable_objs = from->twice.objects;
		to->unreachable_bytes = from->twice.bytes;
		to->est_rel_err = 0;
		add_histogram(a->doc, &to->age_hist_log2s, from->age_objects);
		add_histogram(a->doc, &to->age_bytes_hist_log2s, from->age_bytes);
	}
}

/* Adds the cohorts of the sites in the growth test, oldest first. */
static void add_cohorts(struct tm_analysis *a)
{
	const struct tm_ledger_cohorts *c = tm_ledger_at(a->ledger, TM_LEDGER_COHORTS_AT);

	for (uint32_t i = 0; i < a->ledger->header.cohort_sites; i++, c++) {
		const struct tm_analysis_key *key = tm_analysis_key(a, c->site, c->height);

		if (c->site == 0 || key->address != c->site || key->height != c->height)
			continue;
		for (unsigned age = TM_LEDGER_COHORTS; age-- > 0;)
			tm_document_push_number(a->doc, &a->doc->sites.at[key->site].cohorts,
						c->cohort[age]);
	}
}

static int by_key(const void *a, const void *b)
{
	const struct tm_analysis_key *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->height < y->height ? -1 : x->height > y->height;
}

static void sort_keys(struct tm_analysis *a)
{
	size_t n = a->ledger->site_count;

	a->keys = tm_document_alloc(a->doc, (n + 1) * sizeof(*a->keys));
	for (size_t i = 0; i < n; i++)
		a->keys[i] = (struct tm_analysis_key){a->ledger->sites[i].address,
						      a->ledger->sites[i].height, (uint32_t)i};
	qsort(a->keys, n, sizeof(*a->keys), by_key);
	a->keys[n] = (struct tm_analysis_key){UINT64_MAX, UINT32_MAX, 0};
}

const struct tm_analysis_key *tm_analysis_key(const struct tm_analysis *a, uint64_t address,
					      uint32_t height)
{
	const struct tm_analysis_key want = {address, height, 0};
	size_t low = 0, high = a->ledger->site_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (by_key(&a->keys[middle], &want) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return &a->keys[low];
}

/* --- blind spots, verdict --------------------------------------------------------------------- */

static void blind(struct tm_analysis *a, uint64_t count, const char *what)
{
	if (count)
		tm_document_push_text(a->doc, &a->doc->blind_spots,
				      tm_document_format(a->doc, "%s: %" PRIu64, what, count));
}

static uint64_t nameless_modules(struct tm_analysis *a)
{
	uint64_t count = 0;

	for (size_t i = 0; i < a->doc->sites.count; i++) {
		const struct tm_doc_frame *f = tm_analysis_frame(a->doc, &a->doc->sites.at[i]);
		count += a->wants_symbols[i] && f && f->fn == NULL;
	}
	return count;
}

static void add_blind_spots(struct tm_analysis *a)
{
	const struct tm_ledger_header *h = &a->ledger->header;
	uint64_t other = 0, stale = 0;
	char young[200];

	for (size_t i = 0; i < a->ledger->site_count; i++) {
		stale += a->ledger->sites[i].stale.objects;
		if (a->ledger->sites[i].address == 0)
			other = a->ledger->sites[i].live_bytes;
	}
	blind(a, other,
	      h->forked ? "bytes inherited over the fork or of sites beyond the table"
			: "bytes from before the account or of sites beyond the table");
	blind(a, h->before_span_bytes,
	      "bytes of spans from before the ledger, whose live objects are not counted here "
	      "(they are with TIERMALLOC_DIR or 'tiermalloc run --report')");
	blind(a, h->private_bytes, "bytes of entries outside the file");
	blind(a, a->ledger->torn, "damaged records");
	blind(a, h->modules_lost, "modules that did not fit");
	blind(a, h->stacks_lost, "stacks that did not fit");
	blind(a, h->births_lost, "objects whose birth was not kept");
	blind(a, h->lives_lost, "lives of sites that did not fit");
	blind(a, h->sizes_lost, "blocks of sizes that did not fit");
	blind(a, h->decisions_lost, "tier decisions that did not fit");
	blind(a, nameless_modules(a), "sites shown without a function, see 'tiermalloc symbols'");
	if (!tm_symbols_are_built())
		tm_document_push_text(a->doc, &a->doc->blind_spots,
				      "this command was built without elfutils: no functions");
	if ((h->features & TM_LEDGER_HAS_EPOCHS) == 0)
		tm_document_push_text(a->doc, &a->doc->blind_spots,
				      "ages are not counted: growth cannot be told");
	blind(a, stale, "blocks that only a dead word of a stack still points to");
	if (h->scan_passes < 2)
		tm_document_push_text(
			a->doc, &a->doc->blind_spots,
			"no leak scan was made: unreachable blocks cannot be told from others");
	else
		blind(a, h->threads_missed, "threads that did not stop for the scan");
	if (h->clean_exit == 0 && tm_analysis_young(a, young, sizeof(young)))
		tm_document_push_text(a->doc, &a->doc->blind_spots,
				      tm_document_text(a->doc, young));
	blind(a, h->scan_hidden,
	      "objects not judged: half of those of their sites were freed after a scan had "
	      "found no pointer to them");
	blind(a, h->opaque_bytes,
	      "bytes that the scan could not look into (kept from forks, or protected)");
	a->doc->capture.seqlock_torn = a->ledger->torn;
}

static void add_rate(char *buf, size_t size, double bytes_per_h)
{
	char text[24];

	tm_fmt_bytes(text, sizeof(text), bytes_per_h > 0 ? (uint64_t)fmin(bytes_per_h, 1e18) : 0);
	snprintf(buf, size, "%s/h", text);
}

void tm_analysis_say_no_leak(struct tm_fmt_out *out, uint64_t live, uint64_t young)
{
	if (young >= live && young)
		tm_fmt_add(out, "undecided, no block was old enough to be judged");
	else if (young >= live - young && young)
		tm_fmt_add(
			out,
			"no leak among %llu of %llu blocks, the others are too young to be judged",
			(unsigned long long)(live - young), (unsigned long long)live);
	else
		tm_fmt_add(out, "no leak found");
}

/*
 * Writes the verdict that there is no leak. A scan skips the blocks of its own window; at a clean
 * exit every block is judged.
 */
static void no_leak(struct tm_analysis *a, struct tm_fmt_out *out)
{
	const struct tm_ledger_header *h = &a->ledger->header;
	bool judged_all = h->clean_exit || h->scan_passes == 0;

	tm_analysis_say_no_leak(out, a->ledger->total.live_objects,
				judged_all ? 0 : a->ledger->young.objects);
}

static void leak_verdict(struct tm_analysis *a, struct tm_fmt_out *out)
{
	struct tm_doc_verdict *v = &a->doc->verdict;
	char rate[32], low[32], high[32];

	if (v->growing && v->growth_ci95.count == 2) {
		add_rate(rate, sizeof(rate), v->growth_bytes_per_h);
		tm_fmt_add(out, "%llu growing, +%s", (unsigned long long)v->growing, rate);
	}
	if (v->growing && v->growth_ci95.count == 2) {
		add_rate(low, sizeof(low), v->growth_ci95.at[0]);
		add_rate(high, sizeof(high), v->growth_ci95.at[1]);
		tm_fmt_add(out, " [%s..%s]", low, high);
	}
	if (v->growing && v->growth_ci95.count != 2)
		tm_fmt_add(out, "%llu growing", (unsigned long long)v->growing);
	if (v->unreachable)
		tm_fmt_add(out, "%s%llu unreachable", out->len ? "; " : "",
			   (unsigned long long)v->unreachable);
	if (v->at_exit)
		tm_fmt_add(out, "%s%llu live at exit", out->len ? "; " : "",
			   (unsigned long long)v->at_exit);
	if (out->len == 0)
		no_leak(a, out);
	if (v->limit_reached_h >= 0 && v->limit_reached_h < 1e6) {
		char hours[32];

		tm_fmt_fixed(hours, sizeof(hours), (uint64_t)(v->limit_reached_h * 10), 1);
		tm_fmt_add(out, "; memory limit in %s h", hours);
		if (v->limit_reached_ci95.count == 2 && v->limit_reached_ci95.at[1] < 1e6) {
			tm_fmt_fixed(low, sizeof(low), (uint64_t)(v->limit_reached_ci95.at[0] * 10),
				     1);
			tm_fmt_fixed(high, sizeof(high),
				     (uint64_t)(v->limit_reached_ci95.at[1] * 10), 1);
			tm_fmt_add(out, " [%s..%s]", low, high);
		}
	}
}

/*
 * The growth test needs enough windows, and a scan all threads: what could not be examined is not
 * "fine".
 */
static bool is_inconclusive(const struct tm_analysis *a)
{
	const struct tm_ledger_header *h = &a->ledger->header;

	if (a->doc->leaks.count)
		return false;
	if (h->clean_exit && h->epoch >= 8)
		return false;
	return h->windows < TM_GROWTH_WINDOWS_MIN + h->old_windows;
}

static void pool_verdict(struct tm_analysis *a, struct tm_fmt_out *out)
{
	uint64_t exhausted = 0, refused = 0;

	for (size_t i = 0; i < a->doc->pools.count; i++)
		exhausted += a->doc->pools.at[i].exhausted;
	for (size_t i = 0; i < a->doc->tiers.count; i++) {
		if (a->doc->tiers.at[i].refused != TM_DOC_UNKNOWN)
			refused += a->doc->tiers.at[i].refused;
	}
	if (exhausted)
		tm_fmt_add(out, "; pools exhausted %llu times", (unsigned long long)exhausted);
	if (refused)
		tm_fmt_add(out, "; %llu request%s refused at a tier's ceiling",
			   (unsigned long long)refused, refused == 1 ? "" : "s");
}

/* With a smaller peak, program and libraries dominate the resident size. */
#define PEAK_BYTES ((uint64_t)16 << 20)

/*
 * Whether the sample at the peak is meaningful. If a program frees everything and ends before
 * another sample is taken, the peak is the last sample: the memory is still resident but nothing
 * lives in it.
 */
bool tm_analysis_knows_peak(const struct tm_ledger_counters *c)
{
	return c->at_peak_live && c->at_peak_rss >= PEAK_BYTES &&
	       (c->at_peak_ms != c->at_ms || c->at_peak_rss / 2 < c->at_peak_live);
}

/* Below this much waste, fragmentation is not worth reporting. */
#define WASTE_BYTES ((uint64_t)4 << 20)

static uint64_t positive(int64_t bytes)
{
	return bytes > 0 && bytes != TM_DOC_UNKNOWN_DELTA ? (uint64_t)bytes : 0;
}

/* Name of the largest part of the bytes beyond live ones. */
static const char *main_waste(const struct tm_doc_balance *b)
{
	uint64_t inside = positive(b->internal), between = positive(b->external);
	uint64_t cached = positive(b->cached);

	return between >= inside && between >= cached ? "free slots between live blocks"
	       : cached >= inside                     ? "free pages kept for reuse"
						      : "rounding of blocks to slots";
}

/* Adds the site that pins most bytes, and its share of all pinned bytes. */
static void pin_verdict(struct tm_analysis *a, struct tm_fmt_out *out)
{
	const struct tm_doc_site *most = NULL;
	uint64_t pinned = 0;
	char text[32], name[300];

	for (size_t i = 0; i < a->doc->sites.count; i++) {
		const struct tm_doc_site *s = &a->doc->sites.at[i];

		pinned += s->frag_pinned_bytes;
		if (s->frag_pinned_bytes &&
		    (most == NULL || s->frag_pinned_bytes > most->frag_pinned_bytes))
			most = s;
	}
	if (most == NULL || pinned < WASTE_BYTES)
		return;
	tm_analysis_name_frame(a->doc, tm_analysis_frame(a->doc, most), name, sizeof(name));
	tm_fmt_bytes(text, sizeof(text), pinned);
	tm_fmt_add(out, "; %s on sparse pages, %llu %% pinned by %s %s", text,
		   (unsigned long long)(most->frag_pinned_bytes * 100 / pinned), most->id, name);
}

/*
 * The fragmentation verdict. For an ended process the peak shows the cost; the state at its end
 * shows what would have stayed, had it run on.
 */
static void frag_verdict(struct tm_analysis *a, struct tm_fmt_out *out)
{
	const struct tm_ledger_counters *c = &a->ledger->counters;
	uint64_t live = a->ledger->total.live_bytes;
	uint64_t held = a->span_bytes + positive(a->doc->balance.cached);
	const char *when = a->doc->process.ended == TM_DOC_RUNNING ? "now" : "at the end";
	char text[32], more[32];

	tm_fmt_bytes(text, sizeof(text), held);
	tm_fmt_bytes(more, sizeof(more), live);
	tm_fmt_add(out, "%s %s held for %s live", when, text, more);
	if (held < live + WASTE_BYTES || held < live + live / 8) {
		tm_fmt_fixed(text, sizeof(text), live ? held * 100 / live : 100, 2);
		tm_fmt_add(out, ", %s for each: little is lost", text);
	} else {
		tm_fmt_add(out, ", mostly %s", main_waste(&a->doc->balance));
		pin_verdict(a, out);
	}
	if (tm_analysis_knows_peak(c)) {
		tm_fmt_fixed(text, sizeof(text), c->at_peak_rss * 100 / c->at_peak_live, 2);
		tm_fmt_bytes(more, sizeof(more), c->at_peak_rss);
		tm_fmt_add(out, "; at the peak of %s resident %s bytes for each live one", more,
			   text);
	}
}

static void add_verdict(struct tm_analysis *a)
{
	char text[512] = "";
	struct tm_fmt_out out = {text, sizeof(text), 0};
	struct tm_doc_verdict *v = &a->doc->verdict;

	v->outcome = a->doc->leaks.count || v->growing ? TM_DOC_FOUND
		     : is_inconclusive(a)              ? TM_DOC_INCONCLUSIVE
						       : TM_DOC_FINE;
	if (a->options->kind == TM_DOC_FRAG) {
		frag_verdict(a, &out);
	} else {
		leak_verdict(a, &out);
		if (v->outcome == TM_DOC_INCONCLUSIVE)
			tm_fmt_add(&out,
				   ", but growth can be judged only after %u windows, of which %u "
				   "have passed",
				   TM_GROWTH_WINDOWS_MIN + a->ledger->header.old_windows,
				   a->ledger->header.windows);
		if (v->watch)
			tm_fmt_add(&out, "; %llu watched", (unsigned long long)v->watch);
	}
	pool_verdict(a, &out);
	v->text = tm_document_text(a->doc, text);
}

/* --- all of it -------------------------------------------------------------------------------- */

static void wish_symbols(struct tm_analysis *a)
{
	size_t most = a->options->symbol_sites;

	for (size_t i = 0; i < a->doc->sites.count && i < most; i++)
		a->wants_symbols[i] = 1;
}

int tm_analysis_fill(struct tm_document *doc, struct tm_ledger *ledger,
		     const struct tm_analysis_options *options)
{
	struct tm_analysis a = {.options = options, .ledger = ledger, .doc = doc};

	doc->kind = options->kind;
	a.symbols = tm_symbols_new(options->debug_dir);
	a.wants_symbols = tm_document_alloc(doc, ledger->site_count + 1);
	add_process(&a);
	add_capture(&a);
	tm_analysis_add_scan(&a);
	add_modules(&a);
	add_sites(&a);
	sort_keys(&a);
	tm_analysis_add_ids(&a);
	add_cohorts(&a);
	wish_symbols(&a);
	tm_analysis_find_leaks(&a);
	tm_analysis_find_fragments(&a);
	tm_analysis_add_balance(&a);
	tm_analysis_add_tables(&a);
	tm_analysis_add_stacks(&a);
	tm_analysis_add_gpu(&a);
	tm_analysis_judge_leaks(&a);
	add_blind_spots(&a);
	add_verdict(&a);
	tm_symbols_free(a.symbols);
	return 0;
}
