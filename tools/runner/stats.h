/* SPDX-License-Identifier: MIT */
/*
 * Measurements of a run: latencies, counts, the process's own figures; printed as JSON or a table.
 *
 * Latencies are counted in bins, 128 for each power of two, so that a run of any length uses the
 * same memory and touches no new pages (after G. Tene's HdrHistogram). One thread at a time.
 */
#ifndef YI_STATS_H
#define YI_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/runner/tiers.h"

struct yi_samples {
	uint32_t *bins; /* owned; from the first sample on */
	uint64_t count;
	double min, max;
};

struct yi_stats {
	uint64_t prompt_tokens, generated_tokens;
	double prefill_s, decode_s;       /* time spent, for tokens per second */
	struct yi_samples latency_ms;     /* one per generated token */
	struct yi_samples first_token_ms; /* one per session */
	struct yi_samples token_cpu_ms;   /* processor time of the process, one per decoding step */
	uint64_t sessions_started, sessions_finished, sessions_failed;
	uint64_t kv_bytes_per_token;
	uint64_t weight_bytes, mapped_bytes; /* parameters; of them mapped, not allocated */
	uint64_t steps;                      /* evaluations */
	uint64_t start_faults;               /* minor faults before the first evaluation */
	uint64_t warm_tokens, warm_faults; /* decoding steps after warm-up, minor faults in them */
	struct yi_tiers tiers;
};

/* Adds a sample; dropped if there is no memory. */
void yi_samples_add(struct yi_samples *samples, double value);
/* fraction 0 .. 1: the least and the largest are exact, the others within .4 %; 0 without samples. */
double yi_samples_quantile(const struct yi_samples *samples, double fraction);
void yi_samples_clear(struct yi_samples *samples);

double yi_stats_now_s(void);    /* monotonic */
double yi_stats_cpu_s(void);    /* of all threads */
uint64_t yi_stats_faults(void); /* minor ones of the process */
/* The JSON object of --stats; members the caller adds are written by `more` before the end. */
int yi_stats_write(struct yi_stats *stats, const char *path, void (*more)(FILE *, void *),
		   void *arg);
/* The table at the end of a run: figures, then memory by class. */
void yi_stats_print(struct yi_stats *stats, FILE *out);
void yi_stats_clear(struct yi_stats *stats);

#endif
