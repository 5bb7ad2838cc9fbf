/* SPDX-License-Identifier: MIT */
/*
 * What a load of sessions asks for: read from a file of JSON lines, or drawn from a seed.
 *
 * A line is one object: `prompt` (string) or `tokens` (list of ids), `n` (tokens to generate, 64),
 * `session` (name, its own), `arrive_ms` (0), `prefix` (name of an earlier session: this prompt
 * continues that session's, whose keys and values are shared).
 */
#ifndef YI_REQUEST_H
#define YI_REQUEST_H

#include "tools/runner/error.h"
#include "tools/runner/tokenizer.h"

struct yi_request {
	char *session;
	char *prompt; /* text not tokenized yet; NULL: `ids` hold the prompt */
	size_t prompt_bytes;
	struct yi_ids ids;
	uint32_t n;
	double arrive_ms;
	int64_t prefix; /* number of the earlier request, -1: none */
};

struct yi_requests {
	struct yi_request *list;
	size_t count, room;
};

/* error->status is 2 and names file, line and key where a line is bad. */
int yi_requests_read(const char *path, uint32_t n_vocab, struct yi_requests *ret_requests,
		     struct yi_error *error);

/* Makes it `count` requests: the first ones, or all of them over and over. */
int yi_requests_take(struct yi_requests *requests, size_t count, struct yi_error *error);

struct yi_request_mix {
	uint32_t seed, count, n_vocab;
	uint32_t context; /* prompt and answer fit together */
	uint32_t n;       /* most tokens of an answer */
	double rate;      /* arrivals in a second, 0: all at once */
	double share;     /* part that continues one of a few common prompts */
};

int yi_requests_draw(const struct yi_request_mix *mix, struct yi_requests *ret_requests,
		     struct yi_error *error);
void yi_requests_clear(struct yi_requests *requests);

#endif
