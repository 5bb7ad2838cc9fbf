/* SPDX-License-Identifier: MIT */
/*
 * Continuous batching: which sessions run, what each step evaluates, who waits for memory.
 *
 * One thread.  Sessions are admitted in the order of arrival while fewer than `concurrency` run.
 * Each step takes one token of every session that answers and `batch` tokens of prompts.
 * A session whose step gets no memory waits; idle buffers are given back first, then shared
 * prompts that nobody uses yet; when all wait, the youngest is parked (its tokens are evaluated
 * again later), and a session that finds no memory alone is refused.
 */
#ifndef YI_SCHEDULER_H
#define YI_SCHEDULER_H

#include "tools/runner/session.h"
#include "tools/runner/stats.h"

/* State of a request for those that continue it. */
struct yi_place {
	uint32_t sharers;   /* later requests that continue it and have not started */
	bool ended;         /* will not provide a shared prompt any more */
	struct yi_kv *kept; /* its prompt, for the sharers; NULL: not available (yet) */
};

struct yi_scheduler {
	struct yi_session_env env;
	struct yi_forward *forward;
	struct yi_workers *workers;
	struct yi_requests requests;
	struct yi_place *places; /* one a request */
	struct yi_session **running;
	uint32_t n_running;
	struct yi_session **parked; /* first in, first out */
	uint32_t n_parked;
	size_t next;     /* request to admit */
	bool not_finite; /* a result was not a number: the model may be to blame */
	struct yi_item *items;
	struct yi_session **planned; /* sessions with items in this step */
	uint32_t n_planned, n_items, n_rows;
	double start_s;
	struct yi_stats stats;
	uint64_t waits, parks, shifts, shared_tokens, prefix_hits;
	uint64_t warm_tokens, warm_faults; /* counted from when a tenth of the sessions had ended */
	long warm_start_faults;
	FILE *answers;  /* NULL: not wanted */
	FILE *progress; /* NULL: not wanted */
	double progress_s;
	/* callback for ended sessions; NULL: none */
	void (*ended)(const struct yi_session *session);
};

/* Runs all requests to completion. 0; -ENOMEM: not even memory for the first step's lists. */
int yi_scheduler_run(struct yi_scheduler *scheduler);
/* Frees what is left after a run. */
void yi_scheduler_clear(struct yi_scheduler *scheduler);

/* scheduler_admit.c: starts sessions while there are places and memory. */
void yi_scheduler_admit(struct yi_scheduler *scheduler, double now_s);
/* Gives back memory that is not needed now; false: there was none. */
bool yi_scheduler_reclaim(struct yi_scheduler *scheduler);
/* Keeps the prompt of a session for those that continue it. */
void yi_scheduler_keep_prompt(struct yi_scheduler *scheduler, struct yi_session *session);
/* Marks that a request will not provide a prompt to share any more. */
void yi_scheduler_end_place(struct yi_scheduler *scheduler, uint32_t number);
/* scheduler_report.c */
void yi_scheduler_progress(struct yi_scheduler *scheduler, double now_s);
void yi_scheduler_write_answer(struct yi_scheduler *scheduler, const struct yi_session *session);
int yi_scheduler_report(struct yi_scheduler *scheduler);

#endif
