/* SPDX-License-Identifier: MIT */
#include "tools/runner/session.h"

#include <errno.h>
#include <string.h>

#include "tools/runner/mem.h"

/* If the library is preloaded, sessions are reported to it; nothing else changes. */
extern uint64_t tiermalloc_session_begin(const char *name) __attribute__((weak));
extern void tiermalloc_session_end(uint64_t session) __attribute__((weak));
extern void tiermalloc_step(void) __attribute__((weak));

void yi_session_step_mark(void)
{
	if (tiermalloc_step)
		tiermalloc_step();
}

struct yi_session *yi_session_create(const struct yi_session_env *env, struct yi_request *request,
				     uint32_t number, struct yi_ids *ids)
{
	struct yi_sampling sampling = env->options->sampling;
	struct yi_session *session = yi_mem_zeroed(YI_MEM_REQUESTS, sizeof(*session));

	if (!session)
		return NULL;
	sampling.seed += number;
	session->sampler = yi_sampler_create(&sampling, env->vocab->n_tokens);
	if (!session->sampler) {
		yi_mem_free(YI_MEM_REQUESTS, session);
		return NULL;
	}
	session->request = request;
	session->number = number;
	session->ids = *ids;
	session->n_prompt = ids->count;
	session->first_ms = session->token_ms = -1;
	for (size_t i = 0; i < ids->count; i++)
		yi_sampler_accept(session->sampler, ids->ids[i]);
	if (tiermalloc_session_begin)
		session->mark = tiermalloc_session_begin(request->session);
	return session;
}

void yi_session_park(struct yi_session *session)
{
	yi_kv_free(session->kv);
	session->kv = NULL;
	session->evaluated = 0;
}

/* Frees everything except the answer, which the scheduler may still write. */
static void end(struct yi_session *session, enum yi_session_state state)
{
	session->state = state;
	yi_session_park(session);
	yi_sampler_free(session->sampler);
	session->sampler = NULL;
	if (session->mark && tiermalloc_session_end)
		tiermalloc_session_end(session->mark);
	session->mark = 0;
}

void yi_session_fail(struct yi_session *session, const char *why)
{
	session->why = why;
	end(session, YI_SESSION_FAILED);
}

void yi_session_free(struct yi_session *session)
{
	if (!session)
		return;
	end(session, session->state);
	yi_ids_clear(&session->ids);
	yi_mem_free(YI_MEM_REQUESTS, session->answer);
	yi_mem_free(YI_MEM_REQUESTS, session);
}

/* Makes room for `bytes` more of the answer, by growing the buffer by half. */
static int answer_room(struct yi_session *session, size_t bytes)
{
	size_t room = session->answer_bytes + bytes;
	char *answer;

	if (room <= session->answer_room)
		return 0;
	room = room > session->answer_room * 3 / 2 ? room : session->answer_room * 3 / 2;
	room = room < 64 ? 64 : room;
	answer = yi_mem_resize(YI_MEM_REQUESTS, session->answer, room);
	if (!answer)
		return -ENOMEM;
	session->answer = answer;
	session->answer_room = room;
	return 0;
}

/* Makes room for any next token: its piece and, before it, the text that results from it. */
static int make_room(const struct yi_session_env *env, struct yi_session *session)
{
	if (answer_room(session, YI_DETOK_ROOM(env->max_piece) + env->max_piece))
		return -ENOMEM;
	return yi_ids_reserve(&session->ids, 1);
}

static void add_text(const struct yi_session_env *env, struct yi_session *session, uint32_t token)
{
	char *text = session->answer + session->answer_bytes;
	char *piece = text + YI_DETOK_ROOM(env->max_piece);
	size_t bytes = yi_tokenizer_piece(env->vocab, token, piece, env->max_piece);

	session->answer_bytes += yi_detok_add(&session->detok, piece, bytes, text);
}

/* Adds one drawn token; there is room. */
static void take(const struct yi_session_env *env, struct yi_session *session, uint32_t token)
{
	bool end = (env->vocab->flags[token] & YI_TOKEN_EOG) != 0;

	yi_ids_add(&session->ids, token);
	yi_sampler_accept(session->sampler, token);
	session->generated++;
	if (!end)
		add_text(env, session, token);
	if (end || session->generated == session->request->n)
		session->state = YI_SESSION_DONE;
}

/* Without memory the last token is evaluated again once there is some. */
static void wait_for_memory(struct yi_session *session)
{
	if (yi_kv_cut(session->kv, yi_kv_len(session->kv) - 1)) {
		yi_session_park(session);
	} else {
		session->evaluated--;
	}
	session->state = YI_SESSION_WAITING;
}

void yi_session_advance(const struct yi_session_env *env, struct yi_session *session, double now_s)
{
	uint32_t token;

	session->token_ms = -1;
	session->evaluated += session->planned;
	session->planned = 0;
	if (!session->logits)
		return;
	if (make_room(env, session) || yi_sampler_draw(session->sampler, session->logits, &token)) {
		wait_for_memory(session);
		return;
	}
	take(env, session, token);
	if (session->generated == 1)
		session->first_ms = (now_s - session->start_s) * 1000;
	else
		session->token_ms = (now_s - session->last_s) * 1000;
	session->last_s = now_s;
	if (session->state == YI_SESSION_DONE) {
		/* There is room: YI_DETOK_ROOM counts what is held back. */
		session->answer_bytes +=
			yi_detok_end(&session->detok, session->answer + session->answer_bytes);
		end(session, YI_SESSION_DONE);
	}
}
