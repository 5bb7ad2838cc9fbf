/* SPDX-License-Identifier: MIT */
/*
 * The command line of `run` (no verb) and `serve-load`: one table, one struct.
 */
#ifndef YI_OPTIONS_H
#define YI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/runner/kv.h"
#include "tools/runner/sampler.h"

enum yi_verb { YI_VERB_RUN = 1, YI_VERB_SERVE = 2 };

enum yi_limit_by {
	YI_LIMIT_LIVE,  /* bytes of live blocks, as the allocator sizes them */
	YI_LIMIT_MAPPED /* the process's writable memory, by RLIMIT_DATA: what the allocator keeps */
};

enum yi_device { YI_DEVICE_CPU, YI_DEVICE_CUDA };

struct yi_options {
	const char *model, *prompt, *prompt_file, *token_list, *tokenize;
	const char *save, *restore, *logits, *stats, *requests, *answers;
	uint32_t n; /* tokens to generate */
	bool n_given;
	uint32_t context; /* 0: not given */
	uint32_t threads; /* 0: not given */
	bool chat, exact, quiet, leak_demo;
	struct yi_sampling sampling;
	enum yi_load load;
	enum yi_populate populate;
	enum yi_type kv_type;
	enum yi_kv_alloc kv_alloc;
	enum yi_device device;
	uint32_t sessions; /* 0: not given */
	uint32_t concurrency, batch;
	uint64_t memory_limit; /* 0: none */
	enum yi_limit_by limit_by;
	uint64_t pool_bytes; /* idle buffers kept for the next sessions */
	double rate;         /* sessions that arrive in a second; 0: all at once */
	double share;        /* part of the generated sessions that stand on a shared prompt */
};

/* Reads argv[first] .. ; 0, or -EINVAL with a line for the user in error (status 2). */
int yi_options_parse(enum yi_verb verb, int argc, char **argv, int first,
		     struct yi_options *ret_options, struct yi_error *error);

/* "1,2,3": calls `add` for each id; -EINVAL with error where one is none or not below limit. */
int yi_options_tokens(const char *list, uint32_t limit, int (*add)(void *arg, uint32_t id),
		      void *arg, struct yi_error *error);

#endif
