/* SPDX-License-Identifier: MIT */
/* Admission of sessions, and giving memory back when it is short. */
#include <errno.h>
#include <string.h>

#include "tools/runner/mem.h"
#include "tools/runner/scheduler.h"

bool yi_scheduler_reclaim(struct yi_scheduler *scheduler)
{
	struct yi_kv_pool *pool = scheduler->env.kv.pool;
	bool found = false;

	if (pool && yi_kv_pool_bytes(pool)) {
		yi_kv_pool_trim(pool);
		return true;
	}
	/* A prompt kept for later sessions can be evaluated again. */
	for (size_t i = 0; i < scheduler->next; i++) {
		if (!scheduler->places[i].kept)
			continue;
		yi_kv_free(scheduler->places[i].kept);
		scheduler->places[i].kept = NULL;
		found = true;
	}
	if (pool && found)
		yi_kv_pool_trim(pool);
	return found;
}

/* Rings can't be shared: their rows are overwritten. */
static struct yi_kv *fork_cache(struct yi_kv *kv, uint32_t tokens)
{
	struct yi_kv *fork = yi_kv_share(kv, tokens);

	return !fork && errno == EINVAL ? yi_kv_copy(kv) : fork;
}

void yi_scheduler_keep_prompt(struct yi_scheduler *scheduler, struct yi_session *session)
{
	struct yi_place *place = &scheduler->places[session->number];

	if (place->ended || session->evaluated < session->n_prompt || !session->kv)
		return;
	if (place->sharers)
		place->kept = fork_cache(session->kv, (uint32_t)session->n_prompt);
	place->ended = true;
}

void yi_scheduler_end_place(struct yi_scheduler *scheduler, uint32_t number)
{
	int64_t prefix = scheduler->requests.list[number].prefix;
	struct yi_place *place;

	scheduler->places[number].ended = true;
	if (prefix < 0)
		return;
	place = &scheduler->places[prefix];
	if (place->sharers && --place->sharers == 0) {
		yi_kv_free(place->kept);
		place->kept = NULL;
	}
}

/* Appends the request's own prompt. */
static int add_prompt(const struct yi_scheduler *scheduler, const struct yi_request *request,
		      struct yi_ids *ids)
{
	enum yi_tokenize how = ids->count ? YI_TOKENIZE_PLAIN : YI_TOKENIZE_ADD_SPECIAL;

	if (request->prompt)
		return yi_tokenizer_encode(scheduler->env.vocab, request->prompt,
					   request->prompt_bytes, how, ids);
	if (yi_ids_reserve(ids, request->ids.count))
		return -ENOMEM;
	memcpy(ids->ids + ids->count, request->ids.ids, request->ids.count * sizeof(*ids->ids));
	ids->count += request->ids.count;
	return 0;
}

/* The whole prompt: those of all sessions that it continues, oldest first, and its own. */
static int whole_prompt(const struct yi_scheduler *scheduler, uint32_t number, struct yi_ids *ids)
{
	const struct yi_request *list = scheduler->requests.list;
	struct yi_ids chain = {NULL, 0, 0};
	int code = 0;

	for (int64_t at = number; code == 0 && at >= 0; at = list[at].prefix)
		code = yi_ids_add(&chain, (uint32_t)at);
	while (code == 0 && chain.count)
		code = add_prompt(scheduler, &list[chain.ids[--chain.count]], ids);
	yi_ids_clear(&chain);
	if (code)
		yi_ids_clear(ids);
	return code;
}

/* Creates a session's cache, on the shared prompt if that is kept. */
static int give_cache(struct yi_scheduler *scheduler, struct yi_session *session)
{
	int64_t prefix = session->request->prefix;
	struct yi_kv *kept = prefix < 0 ? NULL : scheduler->places[prefix].kept;

	if (!kept || session->generated) {
		session->kv = yi_kv_create(&scheduler->env.kv);
		return session->kv ? 0 : -ENOMEM;
	}
	session->kv = fork_cache(kept, yi_kv_len(kept));
	if (!session->kv)
		return -ENOMEM;
	session->evaluated = yi_kv_len(kept);
	scheduler->prefix_hits++;
	scheduler->shared_tokens += session->evaluated;
	return 0;
}

static int start(struct yi_scheduler *scheduler, uint32_t number, double now_s)
{
	struct yi_request *request = &scheduler->requests.list[number];
	struct yi_ids ids = {NULL, 0, 0};
	struct yi_session *session;
	int code = whole_prompt(scheduler, number, &ids);

	if (code)
		return code;
	if (ids.count == 0 ||
	    (ids.count >= scheduler->env.kv.max_tokens && scheduler->env.kv.alloc != YI_KV_RING)) {
		yi_ids_clear(&ids);
		return -ENOSPC;
	}
	session = yi_session_create(&scheduler->env, request, number, &ids);
	if (!session) {
		yi_ids_clear(&ids);
		return -ENOMEM;
	}
	code = give_cache(scheduler, session);
	if (code) {
		yi_session_free(session);
		return code;
	}
	session->start_s =
		request->arrive_ms > 0 ? scheduler->start_s + request->arrive_ms / 1000 : now_s;
	session->last_s = session->start_s;
	scheduler->running[scheduler->n_running++] = session;
	scheduler->stats.sessions_started++;
	/* From now on the session itself holds the rows that it shares. */
	if (request->prefix >= 0) {
		struct yi_place *place = &scheduler->places[request->prefix];

		if (place->sharers && --place->sharers == 0) {
			yi_kv_free(place->kept);
			place->kept = NULL;
		}
	}
	return 0;
}

/* Reports a session that never started in the answers, like all others. */
static void refuse(struct yi_scheduler *scheduler, uint32_t number, const char *why)
{
	const struct yi_session none = {
		.request = &scheduler->requests.list[number],
		.number = number,
		.why = why,
	};

	scheduler->stats.sessions_started++;
	scheduler->stats.sessions_failed++;
	if (scheduler->answers)
		yi_scheduler_write_answer(scheduler, &none);
	yi_scheduler_end_place(scheduler, number);
}

static int resume(struct yi_scheduler *scheduler)
{
	struct yi_session *session = scheduler->parked[0];

	if (give_cache(scheduler, session))
		return -ENOMEM;
	session->state = YI_SESSION_RUNNING;
	scheduler->n_parked--;
	memmove(scheduler->parked, scheduler->parked + 1,
		scheduler->n_parked * sizeof(*scheduler->parked));
	scheduler->running[scheduler->n_running++] = session;
	return 0;
}

/* Returns 0: one was admitted; 1: none is due now; -ENOMEM; -ENOSPC: its prompt can't be served. */
static int admit_one(struct yi_scheduler *scheduler, double now_s)
{
	const struct yi_request *request = &scheduler->requests.list[scheduler->next];
	const struct yi_place *prefix;

	if (scheduler->n_parked)
		return resume(scheduler);
	if (scheduler->next == scheduler->requests.count ||
	    now_s < scheduler->start_s + request->arrive_ms / 1000)
		return 1;
	prefix = request->prefix < 0 ? NULL : &scheduler->places[request->prefix];
	/* The session that it continues is still evaluating its prompt. */
	if (prefix && !prefix->ended)
		return 1;
	return start(scheduler, (uint32_t)scheduler->next, now_s);
}

void yi_scheduler_admit(struct yi_scheduler *scheduler, double now_s)
{
	/*
	 * Running sessions that wait for memory come first: new ones would take what is given back.
	 */
	for (uint32_t i = 0; i < scheduler->n_running; i++)
		if (scheduler->running[i]->state == YI_SESSION_WAITING)
			return;
	while (scheduler->n_running < scheduler->env.options->concurrency) {
		bool fresh = scheduler->n_parked == 0;
		int code = admit_one(scheduler, now_s);

		if (code == -ENOMEM && yi_scheduler_reclaim(scheduler))
			continue;
		if (code == -ENOMEM && scheduler->n_running) {
			scheduler->waits++;
			return;
		}
		if (code == 1)
			return;
		if (code && !fresh) {
			/* No other session is running, and still there is not enough memory. */
			struct yi_session *session = scheduler->parked[0];

			yi_session_fail(session, "no memory");
			scheduler->running[scheduler->n_running++] = session;
			memmove(scheduler->parked, scheduler->parked + 1,
				--scheduler->n_parked * sizeof(*scheduler->parked));
			return;
		}
		if (code)
			refuse(scheduler, (uint32_t)scheduler->next,
			       code == -ENOSPC ? "prompt fits no context" : "no memory");
		if (fresh)
			scheduler->next++;
	}
}
