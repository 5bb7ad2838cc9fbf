/* SPDX-License-Identifier: MIT */
/*
 * core: initialises the engine at boot and takes snapshots of its figures. The only file that
 * passes options to the engine.
 */
#include <errno.h>

#include "shim/alloc.h"
#include "shim/alloc_debug.h"
#include "shim/base/bits.h"
#include "shim/boot.h"
#include "shim/heap/account.h"
#include "shim/heap/arena.h"
#include "shim/heap/extent.h"
#include "shim/heap/grow.h"
#include "shim/heap/heap.h"
#include "shim/heap/huge.h"
#include "shim/heap/meta.h"
#include "shim/heap/numa.h"
#include "shim/heap/purge.h"
#include "shim/heap/span.h"
#include "shim/heap/tier.h"
#include "shim/heap/trim.h"
#include "shim/helper.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/python.h"
#include "shim/ledger/samples.h"
#include "shim/pooling.h"
#include "shim/report.h"
#include "shim/routing.h"
#include "shim/source_drop.h"
#include "shim/thread.h"

#define RETAIN_DECAY_MS 60000u

/*
 * Settings from other allocators' variables. A request to keep freed memory for ever, the most
 * copied recipe, keeps it for a minute: the recipe's purpose is to avoid page faults while work
 * goes on.
 */
static struct tm_purge_policy policy_of(const struct tm_options *options, enum tm_tier tier)
{
	struct tm_purge_policy policy = {SIZE_MAX, UINT32_MAX};
	uint64_t keep = options->keep_bytes[tier];

	/* another allocator's variable applies to all tiers */
	if (keep == TM_OPTION_AUTO &&
	    options->source[TM_TUNABLE_TIERMALLOC_SESSION_KEEP] == TM_SOURCE_FOREIGN)
		keep = options->keep_bytes[TM_TIER_SESSION];
	if (keep != TM_OPTION_AUTO)
		policy.keep_bytes = tm_bits_min(keep, SIZE_MAX - 1);
	if (options->decay_ms[tier] != TM_OPTION_AUTO)
		policy.decay_ms = (uint32_t)tm_bits_min(options->decay_ms[tier], UINT32_MAX - 1);
	else if (options->retain)
		policy.decay_ms = RETAIN_DECAY_MS;
	else if (options->decay_percent != 100)
		policy.decay_ms = TM_PURGE_USUAL_DECAY_MS * options->decay_percent / 100;
	return policy;
}

static void configure_purge(const struct tm_options *options)
{
	struct tm_purge_options purge = {.giveback = (enum tm_giveback)options->giveback};

	for (unsigned part = 0; part < TM_PART_COUNT; part++)
		purge.policy[part] = policy_of(options, tm_tier_of_part((enum tm_part)part));
	tm_purge_configure(&purge);
}

/* The kernel's huge page mode applies unless the user asks for less or more than that. */
static void configure_huge(const struct tm_options *options)
{
	tm_zone.hugetlb_shift = options->huge == TM_HUGE_2M   ? 21
				: options->huge == TM_HUGE_1G ? 30
							      : 0;
	tm_huge.by_user = options->huge == TM_HUGE_NEVER;
	if (options->huge == TM_HUGE_NEVER)
		tm_zone.huge = tm_zone.huge == TM_THP_ALWAYS ? TM_THP_DECLINE : TM_THP_NEVER;
	else if (options->huge == TM_HUGE_ALWAYS && tm_zone.huge != TM_THP_NEVER)
		tm_zone.huge = TM_THP_EAGER;
}

/* The helper's tick; returns what the trim did. */
static size_t help(uint64_t now_ms)
{
	size_t left;

	tm_samples_tick(now_ms);
	left = tm_trim_heaps(now_ms);
	return left + tm_source_drop_tick(now_ms);
}

TM_AT_START_CODE int tm_core_boot(void)
{
	const struct tm_options *options = &tm_root.options;
	int rc = tm_zone_init();

	if (rc == 0) {
		configure_huge(options);
		tm_numa_configure((enum tm_numa)options->numa, options->numa_nodes);
		tm_extent_init();
		tm_grow_init();
		tm_purge_init();
		tm_meta_init();
		rc = tm_heap_init();
	}
	if (rc != 0)
		return rc;
	tm_thread_init();
	tm_python_init();
	tm_ledger_init();
	tm_routing_init();
	/* the variants for TIERMALLOC_ALIGN exist only with the account */
	tm_account_is_kept = options->ledger != TM_LEDGER_OFF || options->align_bytes > 16 ||
			     tm_alloc_debug_is_wanted() ||
			     (options->trace != NULL && options->trace[0] != '\0');
	/* side entries reveal wrong frees */
	tm_span_keeps_entries = tm_account_is_kept || options->on_error != TM_ON_ERROR_TRUST;
	configure_purge(options);
	tm_pooling_init();
	tm_source_drop_init();
	tm_helper_init((enum tm_thread)options->thread, help);
	return 0;
}

/* Fills ops with the functions of one variant (alloc.h). */
#define OPS(suffix)                                                                                \
	((struct tm_ops){                                                                          \
		.malloc = tm_alloc_malloc##suffix,                                                 \
		.free = tm_alloc_free##suffix,                                                     \
		.calloc = tm_alloc_calloc##suffix,                                                 \
		.realloc = tm_alloc_realloc##suffix,                                               \
		.memalign = tm_alloc_aligned##suffix,                                              \
		.posix_memalign = tm_alloc_posix_memalign##suffix,                                 \
		.usable_size = tm_alloc_usable,                                                    \
		.op_new = tm_alloc_new##suffix,                                                    \
		.op_new_aligned = tm_alloc_new_aligned##suffix,                                    \
		.op_new_nothrow = tm_alloc_new_nothrow##suffix,                                    \
		.op_new_aligned_nothrow = tm_alloc_new_aligned_nothrow##suffix,                    \
		.op_delete = tm_alloc_free##suffix,                                                \
		.op_delete_sized = tm_alloc_free_sized##suffix,                                    \
	})

TM_AT_START_CODE void tm_alloc_ops(struct tm_ops *ops)
{
	if (tm_alloc_debug_is_wanted()) {
		tm_alloc_debug_ops(ops);
		return;
	}
	if (tm_root.options.align_bytes > 16)
		tm_alloc_align_ops(ops);
	if (!tm_account_is_kept)
		*ops = tm_span_keeps_entries ? OPS(_checked) : OPS(_plain);
}

/*
 * The owner may release the span meanwhile: its fields are read once, and the counts are used only
 * if the fields are the same afterwards. The memory of side entries is reused but never unmapped,
 * so a stale pointer at worst reads other entries.
 */
static void count_span(const struct tm_granule *head, struct tm_snapshot_part *part)
{
	const uint8_t *side = __atomic_load_n(&head->side, __ATOMIC_ACQUIRE);
	uint8_t klass = __atomic_load_n(&head->klass, __ATOMIC_ACQUIRE);
	/* acquire, all four: ordered before the second read below */
	uint16_t carved = __atomic_load_n(&head->carved, __ATOMIC_ACQUIRE);
	uint32_t slots = __atomic_load_n(&head->nslots, __ATOMIC_ACQUIRE);
	const struct tm_class_shape *shape = &tm_class_shape[klass < TM_LISTS ? klass : 0];
	size_t entry_bytes = klass < TM_SMALL_CLASSES ? 3 : 8;

	if (klass >= TM_LISTS || slots > shape->slots || carved > slots ||
	    side != __atomic_load_n(&head->side, __ATOMIC_RELAXED) ||
	    klass != __atomic_load_n(&head->klass, __ATOMIC_RELAXED))
		return;
	if (side == NULL) {
		/* Without the account only the carved slots are known: an upper bound. */
		part->blocks += carved;
		part->slot_bytes += carved * (size_t)shape->slot_bytes;
		part->live_bytes += carved * (size_t)shape->slot_bytes;
		return;
	}
	for (uint32_t i = slots - carved; i < slots; i++) {
		tm_entry8 entry = 0;

		__builtin_memcpy(&entry, side + i * entry_bytes, entry_bytes);
		if ((entry & 0xffff) == TM_ENTRY_FREE)
			continue;
		size_t bytes = entry_bytes == 3
				       ? tm_entry3_requested(shape->slot_bytes, (unsigned)entry)
				       : entry >> 24;

		part->blocks++;
		part->live_bytes += bytes;
		/* an arena's objects are longer than its lines */
		part->slot_bytes +=
			klass == TM_ARENA_CLASS ? tm_arena_room(bytes) : shape->slot_bytes;
	}
}

static void add_to_tier(struct tm_snapshot *s, const struct tm_granule *g,
			const struct tm_snapshot_part *more)
{
	enum tm_tier tier =
		g->tier != 0 && g->tier < TM_TIER_COUNT ? (enum tm_tier)g->tier : TM_TIER_SESSION;

	s->tier[tier].live_bytes += more->live_bytes;
	s->tier[tier].slot_bytes += more->slot_bytes;
	s->tier[tier].blocks += more->blocks;
}

/* Mapped and cached bytes of the parts, by the tier whose settings apply; index 0: the sum. */
static void sum_tiers(struct tm_snapshot *s)
{
	for (unsigned i = 0; i < TM_PART_COUNT; i++) {
		struct tm_snapshot_tier *t = &s->tier[tm_tier_of_part((enum tm_part)i)];
		uint64_t stand[TM_HUGE_STEPS];

		t->cached_bytes += s->part[i].cached_bytes;
		t->mapped_bytes += s->part[i].mapped_bytes;
		tm_huge_stats((enum tm_part)i, stand);
		for (unsigned k = 0; k < TM_HUGE_STEPS; k++)
			t->stand_bytes[k] += stand[k];
	}
	for (unsigned i = TM_TIER_ALL + 1; i < TM_TIER_COUNT; i++) {
		struct tm_snapshot_tier *all = &s->tier[TM_TIER_ALL], *t = &s->tier[i];

		t->peak_bytes = atomic_load_explicit(&tm_tiers[i].peak_bytes, memory_order_relaxed);
		t->refused = tm_tier_refused((enum tm_tier)i);
		t->peak_bytes = tm_bits_max(t->peak_bytes, t->live_bytes);
		all->live_bytes += t->live_bytes;
		all->slot_bytes += t->slot_bytes;
		all->cached_bytes += t->cached_bytes;
		all->mapped_bytes += t->mapped_bytes;
		all->blocks += t->blocks;
		all->refused += t->refused;
		for (unsigned k = 0; k < TM_HUGE_STEPS; k++)
			all->stand_bytes[k] += t->stand_bytes[k];
	}
	s->tier[TM_TIER_ALL].peak_bytes = tm_bits_max(
		atomic_load_explicit(&tm_tiers[TM_TIER_ALL].peak_bytes, memory_order_relaxed),
		s->tier[TM_TIER_ALL].live_bytes);
	s->peak_live_bytes = s->tier[TM_TIER_ALL].peak_bytes;
}

/* Walks the page map, not the heaps' lists, which belong to running threads. */
static void count_granules(struct tm_snapshot *s)
{
	size_t count = tm_zone.len >> TM_GRANULE_SHIFT;

	for (size_t i = 0; (i = tm_zone_pass(i, count)) < count; i++) {
		const struct tm_granule *g = &tm_zone.granules[i];
		uintptr_t owner = tm_granule_owner(g);

		if (owner == TM_OWNER_LARGE) {
			struct tm_snapshot_part *part = &s->part[g->large.part];

			part->blocks++;
			part->live_bytes += g->large.requested;
			part->slot_bytes += g->large.pages << TM_PAGE_SHIFT;
			add_to_tier(s, g,
				    &(struct tm_snapshot_part){.live_bytes = g->large.requested,
							       .slot_bytes = g->large.pages
									     << TM_PAGE_SHIFT,
							       .blocks = 1});
			s->large_blocks++;
			s->large_bytes += g->large.pages << TM_PAGE_SHIFT;
		} else if (owner != TM_OWNER_NONE && g->head == i + 1 && g->carved != 0) {
			struct tm_snapshot_part span = {0};

			count_span(g, &span);
			add_to_tier(s, g, &span);
			struct tm_snapshot_part *part =
				&s->part[tm_zone.units[i / TM_UNIT_GRANULES].part];

			part->blocks += span.blocks;
			part->live_bytes += span.live_bytes;
			part->slot_bytes += span.slot_bytes;
		}
	}
}

static void take_snapshot(struct tm_snapshot *s)
{
	static const char *const names[TM_PART_COUNT] = {"slots", "blocks", "growing", "persistent",
							 "temporary"};
	size_t meta_mapped, meta_used;

	__builtin_memset(s, 0, sizeof(*s));
	count_granules(s);
	for (unsigned i = 0; i < TM_PART_COUNT; i++) {
		struct tm_part_stats stats;

		tm_extent_stats((enum tm_part)i, &stats);
		s->part[i].name = names[i];
		s->part[i].mapped_bytes = stats.mapped_bytes;
		s->part[i].cached_bytes = stats.retained_bytes + stats.sparse_bytes +
					  tm_pool_idle_bytes((enum tm_part)i);
		s->live_bytes += s->part[i].live_bytes;
		s->slot_bytes += s->part[i].slot_bytes;
		s->cached_bytes += s->part[i].cached_bytes;
		s->mapped_bytes += s->part[i].mapped_bytes;
		s->blocks += s->part[i].blocks;
	}
	sum_tiers(s);
	tm_meta_stats(&meta_mapped, &meta_used);
	s->meta_bytes = meta_mapped + tm_account_side_mapped();
	s->zone_start = tm_zone.base;
	s->zone_end = tm_zone.base + tm_zone.len;
}

int tm_account_snapshot(struct tm_snapshot *s)
{
	if (tm_zone.base == 0)
		return -ENOSYS;
	/*
	 * A signal handler that interrupted an allocation must not wait for its thread's own locks.
	 */
	struct tm_thread_heap held = tm_thread_enter();
	if (held.hold == TM_THREAD_NONE)
		return -EDEADLK;
	take_snapshot(s);
	tm_thread_leave(held);
	return 0;
}
