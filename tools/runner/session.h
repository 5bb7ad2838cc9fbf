/* SPDX-License-Identifier: MIT */
/*
 * One session of a load: its tokens, its cache, its sampler, its answer so far.
 *
 * The scheduler (serve.c) owns all sessions and is one thread.  Between two evaluations the
 * worker threads each take some sessions through yi_session_advance; a session is touched by one
 * thread at a time.
 */
#ifndef YI_SESSION_H
#define YI_SESSION_H

#include "tools/runner/forward.h"
#include "tools/runner/options.h"
#include "tools/runner/request.h"

enum yi_session_state {
	YI_SESSION_RUNNING,
	YI_SESSION_WAITING, /* no memory for its next step */
	YI_SESSION_DONE,
	YI_SESSION_FAILED
};

struct yi_session {
	struct yi_request *request;
	uint32_t number; /* of the request */
	enum yi_session_state state;
	struct yi_ids ids; /* prompt and answer; those in the cache come first */
	size_t n_prompt;
	size_t evaluated;            /* ids that are in the cache */
	uint32_t generated, dropped; /* dropped: by shifts of the context */
	struct yi_kv *kv;
	struct yi_sampler *sampler;
	struct yi_detok detok;
	char *answer;
	size_t answer_bytes, answer_room;
	double start_s, last_s;
	double token_ms; /* since the token before, < 0: none was drawn */
	double first_ms; /* of the first token, < 0: it was not drawn just now */
	uint64_t mark;   /* tiermalloc_session_begin's */
	const char *why; /* FAILED: the reason */
	/* The step in work. */
	uint32_t planned; /* ids in the batch */
	float *logits;    /* row to draw from; NULL: the prompt goes on */
};

struct yi_session_env {
	const struct yi_options *options;
	const struct yi_vocab *vocab;
	struct yi_kv_config kv;
	size_t max_piece; /* bytes of the longest token */
};

/* Makes a session for the request; ids are the whole prompt, whose memory it takes over.  NULL:
 * no memory (ids are then untouched). */
struct yi_session *yi_session_create(const struct yi_session_env *env, struct yi_request *request,
				     uint32_t number, struct yi_ids *ids);
/* Draws from the logits, adds to the answer, ends what is complete.  Any worker. */
void yi_session_advance(const struct yi_session_env *env, struct yi_session *session, double now_s);
/* Frees the cache; what is left must be evaluated again. */
void yi_session_park(struct yi_session *session);
void yi_session_fail(struct yi_session *session, const char *why);
void yi_session_free(struct yi_session *session);

/* Marks for the library, where it is loaded: a step of the engine has ended. */
void yi_session_step_mark(void);

#endif
