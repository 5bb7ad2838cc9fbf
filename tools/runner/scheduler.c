/* SPDX-License-Identifier: MIT */
#include "tools/runner/scheduler.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "tools/runner/mem.h"
#include "tools/runner/stop.h"

/* Tokens at the start of a context that a shift keeps: models depend on them. */
#define SHIFT_KEEP 4
#define LONGEST_SLEEP_S 1

/* Drops half of a full context, in the cache and in the list of ids. */
static int shift(struct yi_scheduler *scheduler, struct yi_session *session)
{
	uint32_t len = yi_kv_len(session->kv);
	uint32_t keep = len > 2 * SHIFT_KEEP ? SHIFT_KEEP : 0;
	uint32_t drop = (len - keep) / 2 ? (len - keep) / 2 : 1;
	struct yi_ids *ids = &session->ids;

	if (yi_kv_shift(session->kv, keep, drop))
		return -ENOMEM;
	memmove(ids->ids + keep, ids->ids + keep + drop,
		(ids->count - keep - drop) * sizeof(*ids->ids));
	ids->count -= drop;
	session->evaluated -= drop;
	session->dropped += drop;
	scheduler->shifts++;
	return 0;
}

/* Reserves room in the session's cache for `tokens`; gives back idle memory if needed. */
static int reserve(struct yi_scheduler *scheduler, struct yi_session *session, uint32_t tokens)
{
	int code;

	do {
		code = yi_kv_reserve(session->kv, tokens);
		if (code == -ENOSPC)
			code = shift(scheduler, session);
		if (code == 0)
			code = yi_kv_reserve(session->kv, tokens);
	} while (code == -ENOMEM && yi_scheduler_reclaim(scheduler));
	return code;
}

static void wait(struct yi_scheduler *scheduler, struct yi_session *session)
{
	session->planned = 0;
	if (session->state != YI_SESSION_WAITING)
		scheduler->waits++;
	session->state = YI_SESSION_WAITING;
}

/* Adds up to `room` of the session's tokens to the step; returns how many. */
static uint32_t plan_session(struct yi_scheduler *scheduler, struct yi_session *session,
			     uint32_t room)
{
	size_t left = session->ids.count - session->evaluated;
	uint32_t step = yi_kv_step(session->kv);
	uint32_t tokens = left < room ? (uint32_t)left : room;

	tokens = step && tokens > step ? step : tokens;
	if (reserve(scheduler, session, tokens)) {
		wait(scheduler, session);
		return 0;
	}
	session->state = YI_SESSION_RUNNING;
	session->planned = tokens;
	scheduler->planned[scheduler->n_planned++] = session;
	return tokens;
}

/*
 * Plans one token of every answer, and prompts up to the batch's size. The oldest session has the
 * first claim on memory and on the batch.
 */
static void plan(struct yi_scheduler *scheduler)
{
	uint32_t room = scheduler->env.options->batch;

	scheduler->n_planned = 0;
	for (uint32_t i = 0; i < scheduler->n_running; i++) {
		struct yi_session *session = scheduler->running[i];
		bool answers = session->generated && session->ids.count - session->evaluated == 1;

		session->planned = 0;
		if (answers)
			plan_session(scheduler, session, 1);
		else if (room)
			room -= plan_session(scheduler, session, room);
	}
}

static bool wants_logits(const struct yi_session *session)
{
	return session->evaluated + session->planned == session->ids.count;
}

/* Lists the planned sessions as items of one evaluation, with their rows of logits in one block. */
static float *list_items(struct yi_scheduler *scheduler)
{
	uint32_t n_vocab = scheduler->env.vocab->n_tokens, rows = 0;
	float *logits, *row;

	for (uint32_t i = 0; i < scheduler->n_planned; i++)
		rows += wants_logits(scheduler->planned[i]);
	logits = yi_mem_array(YI_MEM_ACTIVATIONS, rows, (size_t)n_vocab * sizeof(*logits));
	row = logits;
	scheduler->n_items = 0;
	for (uint32_t i = 0; logits && i < scheduler->n_planned; i++) {
		struct yi_session *session = scheduler->planned[i];

		session->logits = wants_logits(session) ? row : NULL;
		if (session->logits)
			row += n_vocab;
		for (uint32_t j = 0; j < session->planned; j++)
			scheduler->items[scheduler->n_items++] = (struct yi_item){
				session->kv, session->ids.ids[session->evaluated + j],
				j + 1 == session->planned ? session->logits : NULL};
	}
	return logits;
}

/*
 * Evaluates the plan, or less of it if memory is short. Returns the logits; NULL: nothing was
 * evaluated.
 */
static float *evaluate(struct yi_scheduler *scheduler)
{
	while (scheduler->n_planned) {
		float *logits = list_items(scheduler);
		int code = logits ? yi_forward_eval(scheduler->forward, scheduler->items,
						    scheduler->n_items)
				  : -ENOMEM;

		if (code == 0)
			return logits;
		yi_mem_free(YI_MEM_ACTIVATIONS, logits);
		if (code == -ENOMEM && yi_scheduler_reclaim(scheduler))
			continue;
		if (scheduler->n_planned > 1) {
			uint32_t keep = scheduler->n_planned / 2;

			while (scheduler->n_planned > keep)
				wait(scheduler, scheduler->planned[--scheduler->n_planned]);
		} else if (code == -ENOMEM && scheduler->planned[0]->planned > 1) {
			scheduler->planned[0]->planned /= 2;
		} else {
			if (code == -ENOMEM)
				wait(scheduler, scheduler->planned[0]);
			else
				yi_session_fail(scheduler->planned[0], "evaluation failed");
			scheduler->not_finite |= code == -EDOM;
			return NULL;
		}
	}
	return NULL;
}

struct advance {
	struct yi_scheduler *scheduler;
	double now_s;
};

static void advance(void *arg, uint32_t number, uint32_t count)
{
	const struct advance *work = arg;
	struct yi_scheduler *scheduler = work->scheduler;

	for (uint32_t i = number; i < scheduler->n_planned; i += count)
		yi_session_advance(&scheduler->env, scheduler->planned[i], work->now_s);
}

/* Divides the step's time between prompts and answers by their tokens. */
static void count_step(struct yi_scheduler *scheduler, double seconds)
{
	uint32_t answers = 0;

	for (uint32_t i = 0; i < scheduler->n_planned; i++)
		answers += scheduler->planned[i]->generated > 0;
	scheduler->stats.steps++;
	scheduler->stats.prompt_tokens += scheduler->n_items - answers;
	scheduler->stats.decode_s += seconds * answers / scheduler->n_items;
	scheduler->stats.prefill_s += seconds * (scheduler->n_items - answers) / scheduler->n_items;
}

static void finish(struct yi_scheduler *scheduler, struct yi_session *session)
{
	if (session->state == YI_SESSION_DONE)
		scheduler->stats.sessions_finished++;
	else
		scheduler->stats.sessions_failed++;
	if (scheduler->answers)
		yi_scheduler_write_answer(scheduler, session);
	if (scheduler->ended)
		scheduler->ended(session);
	scheduler->places[session->number].ended = true;
	yi_session_free(session);
}

/* Takes samples, keeps prompts, and frees sessions that have ended. */
static void sweep(struct yi_scheduler *scheduler)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < scheduler->n_planned; i++) {
		struct yi_session *session = scheduler->planned[i];

		if (session->token_ms >= 0)
			yi_samples_add(&scheduler->stats.latency_ms, session->token_ms);
		if (session->first_ms >= 0)
			yi_samples_add(&scheduler->stats.first_token_ms, session->first_ms);
		if (session->token_ms >= 0 || session->first_ms >= 0) {
			scheduler->stats.generated_tokens++;
			scheduler->warm_tokens += scheduler->warm_start_faults >= 0;
		}
		session->token_ms = session->first_ms = -1;
		yi_scheduler_keep_prompt(scheduler, session);
	}
	for (uint32_t i = 0; i < scheduler->n_running; i++) {
		struct yi_session *session = scheduler->running[i];

		if (session->state == YI_SESSION_DONE || session->state == YI_SESSION_FAILED)
			finish(scheduler, session);
		else
			scheduler->running[kept++] = session;
	}
	scheduler->n_running = kept;
	if (scheduler->warm_start_faults < 0 &&
	    scheduler->stats.sessions_finished * 10 >= scheduler->requests.count)
		scheduler->warm_start_faults = (long)yi_stats_faults();
}

/* To be called if no session made progress: gives memory back, or parks or fails a session. */
static void unblock(struct yi_scheduler *scheduler)
{
	uint32_t last = scheduler->n_running - 1;

	if (yi_scheduler_reclaim(scheduler))
		return;
	if (scheduler->n_running > 1) {
		yi_session_park(scheduler->running[last]);
		scheduler->parked[scheduler->n_parked++] = scheduler->running[last];
		scheduler->n_running--;
		scheduler->parks++;
		return;
	}
	yi_session_fail(scheduler->running[0], "no memory");
}

static void sleep_until_arrival(const struct yi_scheduler *scheduler, double now_s)
{
	double left = scheduler->start_s - now_s +
		      scheduler->requests.list[scheduler->next].arrive_ms / 1000;
	struct timespec pause;

	if (left <= 0)
		return;
	/* Bounds the delay of a stop that came just before the sleep. */
	left = left < LONGEST_SLEEP_S ? left : LONGEST_SLEEP_S;
	pause.tv_sec = (time_t)left;
	pause.tv_nsec = (long)((left - (double)pause.tv_sec) * 1e9);
	nanosleep(&pause, NULL);
}

static bool halfway(const struct yi_scheduler *scheduler)
{
	const struct yi_stats *stats = &scheduler->stats;

	if (scheduler->requests.count == 1)
		return 2 * stats->generated_tokens >= scheduler->requests.list[0].n;
	return 2 * (stats->sessions_finished + stats->sessions_failed) >= scheduler->requests.count;
}

/* After a signal: sessions in progress end without their answers. */
static void end_all(struct yi_scheduler *scheduler)
{
	while (scheduler->n_running || scheduler->n_parked) {
		struct yi_session *session = scheduler->n_running
						     ? scheduler->running[--scheduler->n_running]
						     : scheduler->parked[--scheduler->n_parked];

		yi_session_fail(session, "stopped");
		finish(scheduler, session);
	}
}

static void step(struct yi_scheduler *scheduler, double now_s)
{
	bool progress = false;
	float *logits;

	plan(scheduler);
	scheduler->stats.tiers.due = !scheduler->stats.tiers.sampled && halfway(scheduler);
	logits = evaluate(scheduler);
	if (logits) {
		double then_s = yi_stats_now_s();
		struct advance work = {scheduler, then_s};

		count_step(scheduler, then_s - now_s);
		if (scheduler->n_planned > 1)
			yi_workers_run(scheduler->workers, advance, &work);
		else
			advance(&work, 0, 1);
		yi_mem_free(YI_MEM_ACTIVATIONS, logits);
		yi_session_step_mark();
	}
	for (uint32_t i = 0; i < scheduler->n_planned; i++)
		progress |= scheduler->planned[i]->state != YI_SESSION_WAITING;
	if (!progress)
		unblock(scheduler);
	sweep(scheduler);
}

static int make_lists(struct yi_scheduler *scheduler)
{
	uint32_t most = scheduler->env.options->concurrency;
	size_t count = scheduler->requests.count;

	scheduler->places = yi_mem_zeroed(YI_MEM_REQUESTS, count * sizeof(*scheduler->places));
	scheduler->running = yi_mem_array(YI_MEM_REQUESTS, most, sizeof(*scheduler->running));
	scheduler->parked = yi_mem_array(YI_MEM_REQUESTS, most, sizeof(*scheduler->parked));
	scheduler->planned = yi_mem_array(YI_MEM_REQUESTS, most, sizeof(*scheduler->planned));
	scheduler->items =
		yi_mem_array(YI_MEM_REQUESTS, (size_t)most + scheduler->env.options->batch,
			     sizeof(*scheduler->items));
	if (!scheduler->places || !scheduler->running || !scheduler->parked ||
	    !scheduler->planned || !scheduler->items)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (scheduler->requests.list[i].prefix >= 0)
			scheduler->places[scheduler->requests.list[i].prefix].sharers++;
	return 0;
}

int yi_scheduler_run(struct yi_scheduler *scheduler)
{
	double now_s = yi_stats_now_s();
	int code = make_lists(scheduler);

	scheduler->start_s = now_s;
	scheduler->warm_start_faults = -1;
	scheduler->stats.start_faults = yi_stats_faults();
	while (code == 0 && !yi_stop_wanted()) {
		yi_scheduler_admit(scheduler, now_s);
		if (scheduler->n_running)
			step(scheduler, now_s);
		else if (scheduler->next == scheduler->requests.count && !scheduler->n_parked)
			break;
		else if (!scheduler->n_parked)
			sleep_until_arrival(scheduler, now_s);
		now_s = yi_stats_now_s();
		if (scheduler->progress)
			yi_scheduler_progress(scheduler, now_s);
	}
	if (yi_stop_wanted())
		end_all(scheduler);
	if (scheduler->warm_start_faults >= 0)
		scheduler->warm_faults = yi_stats_faults() - (uint64_t)scheduler->warm_start_faults;
	return code;
}

void yi_scheduler_clear(struct yi_scheduler *scheduler)
{
	for (size_t i = 0; scheduler->places && i < scheduler->requests.count; i++)
		yi_kv_free(scheduler->places[i].kept);
	yi_mem_free(YI_MEM_REQUESTS, scheduler->places);
	yi_mem_free(YI_MEM_REQUESTS, scheduler->running);
	yi_mem_free(YI_MEM_REQUESTS, scheduler->parked);
	yi_mem_free(YI_MEM_REQUESTS, scheduler->planned);
	yi_mem_free(YI_MEM_REQUESTS, scheduler->items);
	yi_requests_clear(&scheduler->requests);
	yi_stats_clear(&scheduler->stats);
}
