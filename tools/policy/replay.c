/* SPDX-License-Identifier: MIT */
/*
 * replay: see replay.h. Two passes: the first determines when each block dies, the second makes the
 * decisions.
 */
#include "tools/policy/replay.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"
#include "tools/policy/replay_arena.h"

#define NEVER UINT64_MAX
#define SLACK_BYTES (UINT64_C(2) << 20)

struct object {
	uint64_t end_ns;
	uint64_t size; /* size while it lives; 0: not above 1 KiB, or dead */
	uint16_t site;
	uint16_t thread;
	uint8_t epoch;
	struct tm_arena_place place;
};

struct thread {
	struct tm_route_thread route;
	struct tm_arena arena;
};

struct run {
	const struct tm_trace *trace;
	const struct tm_replay_options *options;
	struct tm_replay *out;
	struct tm_route route;
	struct object *objects;
	struct thread **threads; /* 65536 */
	uint64_t *marks;
	uint32_t mark_count;
	uint64_t now_ns;
	uint64_t held_bytes, live_bytes; /* totals of all arenas */
	void *sites, *site_rules;
};

static bool is_birth(const struct tm_trace_event *e)
{
	return e->op >= TM_TRACE_MALLOC && e->op <= TM_TRACE_NEW && e->object != 0;
}

/* Object that an event frees; 0: none. */
static uint32_t death_of(const struct tm_trace_event *e)
{
	if (e->op == TM_TRACE_FREE || e->op == TM_TRACE_DELETE)
		return e->object;
	return e->op == TM_TRACE_REALLOC ? e->previous : 0;
}

static int first_pass(struct run *r)
{
	uint32_t marks = 0;

	for (uint32_t i = 0; i <= r->trace->object_count; i++)
		r->objects[i].end_ns = NEVER;
	for (uint64_t i = 0; i < r->trace->event_count; i++) {
		struct tm_trace_event e = tm_trace_event_at(r->trace, i);
		uint32_t dead = death_of(&e);

		if (dead)
			r->objects[dead].end_ns = e.time_ns;
		marks += e.op == TM_TRACE_MARK && e.object == 1;
		r->out->end_ns = e.time_ns;
	}
	r->marks = calloc(marks + 1, sizeof(*r->marks));
	if (r->marks == NULL)
		return -1;
	for (uint64_t i = 0; i < r->trace->event_count; i++) {
		struct tm_trace_event e = tm_trace_event_at(r->trace, i);

		if (e.op == TM_TRACE_MARK && e.object == 1)
			r->marks[r->mark_count++] = e.time_ns;
	}
	r->out->steps = r->mark_count;
	r->out->first_step_ns = r->mark_count ? r->marks[0] : NEVER;
	return 0;
}

/* Number of the step at that time; 0: before the first. */
static uint32_t step_at(const struct run *r, uint64_t time_ns)
{
	uint32_t low = 0, high = r->mark_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (r->marks[middle] <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static enum tm_replay_truth truth_of(const struct run *r, uint64_t born_ns, uint64_t end_ns)
{
	uint64_t first = r->marks[0], last = r->marks[r->mark_count - 1];

	if (end_ns != NEVER && born_ns >= first && step_at(r, end_ns) - step_at(r, born_ns) <= 1)
		return TM_TRUTH_TEMPORARY;
	if (end_ns != NEVER && end_ns < first)
		return TM_TRUTH_SCRATCH;
	if (born_ns < first && (end_ns == NEVER || end_ns >= last))
		return TM_TRUTH_PERSISTENT;
	return TM_TRUTH_SESSION;
}

static bool is_right(enum tm_replay_truth truth, uint8_t tier)
{
	switch (truth) {
	case TM_TRUTH_TEMPORARY: return tier == TM_TIER_TEMPORARY;
	case TM_TRUTH_SESSION: return tier == TM_TIER_SESSION;
	case TM_TRUTH_PERSISTENT: return tier == TM_TIER_PERSISTENT;
	case TM_TRUTH_SCRATCH: return tier != TM_TIER_SESSION;
	case TM_TRUTH_COUNT: break;
	}
	return false;
}

/*
 * Whether the block lies in a wrong place: in an arena though it does not die soon, outside of
 * arenas though it does, or in the part for weights though it is something else.
 */
static bool is_misplaced(enum tm_replay_truth truth, uint64_t size, struct tm_route_decision d)
{
	if (d.tier == TM_TIER_PERSISTENT && d.authority != TM_AUTHORITY_PHASE)
		return size > TM_ARENA_BLOCK_BYTES && truth != TM_TRUTH_PERSISTENT;
	if (size > TM_ARENA_MAX_BYTES || truth == TM_TRUTH_SCRATCH)
		return false;
	return (d.tier == TM_TIER_TEMPORARY) != (truth == TM_TRUTH_TEMPORARY);
}

static void add(struct tm_replay_sum *sum, uint64_t bytes)
{
	sum->requests++;
	sum->bytes += bytes;
}

/* --- what the policies ask -------------------------------------------------------------------- */

static uint64_t clock_ms(void *context)
{
	const struct run *r = context;

	return r->now_ns / 1000000 + 1;
}

static uintptr_t address_of(const struct run *r, uint32_t stack)
{
	uint32_t top = stack < r->trace->stack_count ? r->trace->stack_top[stack] : 0;

	return ((uintptr_t)top + 1) << 12;
}

static void where(void *context, uintptr_t return_address, struct tm_rules_place *place)
{
	const struct run *r = context;
	uint32_t frame = (uint32_t)(return_address >> 12) - 1;

	if (frame == 0)
		return;
	place->module = r->trace->frames[frame - 1].module;
	place->build_id = r->trace->frames[frame - 1].build_id;
	place->offset = r->trace->frames[frame - 1].offset;
}

/* --- the second pass -------------------------------------------------------------------------- */

static struct thread *thread_of(struct run *r, uint16_t number)
{
	if (r->threads[number] == NULL)
		r->threads[number] = calloc(1, sizeof(struct thread));
	return r->threads[number];
}

/* Adds the change of one arena's totals to those of all arenas. */
static void account(struct run *r, const struct tm_arena *before, const struct tm_arena *after)
{
	struct tm_replay *out = r->out;
	uint64_t dead;

	r->held_bytes += after->held_bytes - before->held_bytes;
	r->live_bytes += after->live_bytes - before->live_bytes;
	dead = r->held_bytes - r->live_bytes;
	uint64_t limit = r->live_bytes > SLACK_BYTES ? r->live_bytes : SLACK_BYTES;

	if (r->held_bytes > out->arena_held_bytes)
		out->arena_held_bytes = r->held_bytes;
	if (dead > out->arena_dead_bytes) {
		out->arena_dead_bytes = dead;
		out->arena_live_bytes = r->live_bytes;
	}
	if (dead > limit && dead - limit > out->arena_over_bytes)
		out->arena_over_bytes = dead - limit;
}

static int die(struct run *r, uint32_t id, uint16_t by)
{
	struct object *o = &r->objects[id];
	struct thread *mine = thread_of(r, by);

	if (mine == NULL)
		return -1;
	if (o->size == 0)
		return 0;
	tm_route_freed(&r->route, &mine->route,
		       (struct tm_route_death){o->site, o->epoch, o->size});
	if (o->place.block) {
		struct tm_arena *arena = &r->threads[o->thread]->arena;
		struct tm_arena before = *arena;

		tm_arena_give(arena, &o->place, o->size);
		account(r, &before, arena);
		o->place.block = NULL;
	}
	o->size = 0;
	return 0;
}

static void judge(struct run *r, const struct tm_trace_event *e, struct tm_route_decision d,
		  struct tm_replay_site *site)
{
	struct tm_replay *out = r->out;
	enum tm_replay_truth truth;
	bool right;

	if (r->mark_count == 0)
		return;
	truth = truth_of(r, e->time_ns, r->objects[e->object].end_ns);
	right = is_right(truth, d.tier);
	add(&out->judged, e->size);
	if (right) {
		add(&out->right, e->size);
	} else {
		site->wrong_bytes += e->size;
		out->mistaken[truth][d.tier] += e->size;
	}
	if (is_misplaced(truth, e->size, d))
		out->misplaced_bytes += e->size;
	if (e->time_ns < r->marks[0])
		return;
	add(&out->judged_serving, e->size);
	if (right)
		add(&out->right_serving, e->size);
	if (tm_phase_now(&r->route.phase) == TM_PHASE_LOAD)
		out->loading_bytes += e->size;
}

static int born(struct run *r, const struct tm_trace_event *e)
{
	struct tm_replay *out = r->out;
	struct thread *mine = thread_of(r, e->thread);
	struct object *o = &r->objects[e->object];
	uint32_t top = e->stack < r->trace->stack_count ? r->trace->stack_top[e->stack] : 0;
	struct tm_replay_site *site = &out->sites[top];

	if (mine == NULL)
		return -1;
	if (e->size <= TM_ROUTE_MIN_BYTES) {
		out->small++;
		return 0;
	}
	struct tm_route_request request = {
		.size = e->size,
		.align = (size_t)1 << (e->align_log2 & 63),
		.return_address = address_of(r, e->stack),
		.height = e->height / 16,
	};
	struct tm_route_decision d = tm_route_decide(&r->route, &mine->route, &request);

	add(&out->tier[0], e->size);
	add(&out->tier[d.tier], e->size);
	add(&out->by[d.authority], e->size);
	add(&site->tier[d.tier], e->size);
	site->bytes += e->size;
	site->authority = d.authority;
	judge(r, e, d, site);
	o->size = e->size;
	o->site = d.site;
	o->epoch = d.epoch;
	o->thread = e->thread;
	if (d.tier == TM_TIER_TEMPORARY && e->size <= TM_ARENA_MAX_BYTES) {
		struct tm_arena before = mine->arena;

		if (!tm_arena_take(&mine->arena, e->size, &o->place))
			return -1;
		account(r, &before, &mine->arena);
	}
	return 0;
}

static int second_pass(struct run *r)
{
	enum tm_phase_kind phase = TM_PHASE_LOAD;

	r->out->serving_from_ns = NEVER;
	for (uint64_t i = 0; i < r->trace->event_count; i++) {
		struct tm_trace_event e = tm_trace_event_at(r->trace, i);
		uint32_t dead = death_of(&e);

		r->now_ns = e.time_ns;
		if (r->options->steps && e.op == TM_TRACE_MARK && e.object == 1)
			tm_route_step(&r->route);
		if (dead && die(r, dead, e.thread) != 0)
			return -1;
		if (is_birth(&e) && born(r, &e) != 0)
			return -1;
		if (tm_phase_now(&r->route.phase) != phase) {
			phase = tm_phase_now(&r->route.phase);
			r->out->phase_changes++;
			if (phase == TM_PHASE_SERVE)
				r->out->serving_from_ns = e.time_ns;
		}
	}
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	const struct tm_replay_site *x = a, *y = b;

	return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

static void name_sites(struct run *r)
{
	struct tm_replay *out = r->out;

	for (uint32_t i = 1; i < out->site_count; i++)
		out->sites[i].frame = r->trace->frames[i - 1];
	qsort(out->sites, out->site_count, sizeof(*out->sites), by_bytes);
	while (out->site_count > 0 && out->sites[out->site_count - 1].bytes == 0)
		out->site_count--;
}

static int set_up(struct run *r, struct tm_rules *rules)
{
	r->objects = calloc((size_t)r->trace->object_count + 1, sizeof(*r->objects));
	r->threads = calloc(UINT16_MAX + 1, sizeof(struct thread *));
	r->sites = calloc(1, TM_SITES_BYTES);
	r->site_rules = rules ? calloc(1, TM_ROUTE_SITE_RULES_BYTES) : NULL;
	r->out->site_count = r->trace->frame_count + 1;
	r->out->sites = calloc(r->out->site_count, sizeof(*r->out->sites));
	if (!r->objects || !r->threads || !r->sites || (rules && !r->site_rules) || !r->out->sites)
		return -1;
	tm_route_init(&r->route, &(struct tm_route_memory){r->sites, r->site_rules});
	r->route.rules = rules;
	r->route.where = where;
	r->route.clock = clock_ms;
	r->route.context = r;
	return 0;
}

static void tear_down(struct run *r)
{
	for (unsigned i = 0; r->threads && i <= UINT16_MAX; i++) {
		if (r->threads[i])
			tm_arena_clear(&r->threads[i]->arena);
		free(r->threads[i]);
	}
	free(r->threads);
	free(r->objects);
	free(r->marks);
	free(r->sites);
	free(r->site_rules);
}

int tm_replay_run(struct tm_replay *ret, const struct tm_trace *trace,
		  const struct tm_replay_options *options)
{
	struct run r = {.trace = trace, .out = ret, .options = options};
	int err;

	*ret = (struct tm_replay){0};
	err = set_up(&r, options->rules);
	if (err == 0)
		err = first_pass(&r);
	if (err == 0)
		err = second_pass(&r);
	if (err == 0)
		name_sites(&r);
	else
		tm_say("there is not enough memory for this trace");
	tear_down(&r);
	if (err != 0)
		tm_replay_free(ret);
	return err;
}

void tm_replay_free(struct tm_replay *replay)
{
	free(replay->sites);
	replay->sites = NULL;
	replay->site_count = 0;
}
