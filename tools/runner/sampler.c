/* SPDX-License-Identifier: MIT */
#include "tools/runner/sampler.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/runner/mem.h"

#define TWISTER_WORDS 624
#define TWISTER_SHIFT 397
/* Without top-k, top-p first sorts this many candidates, which is usually enough. */
#define FIRST_SORTED 256
#define SORT_ALL_UP_TO 1024

struct twister {
	uint32_t words[TWISTER_WORDS];
	uint32_t next;
};

struct candidate {
	uint32_t id;
	float logit, p;
};

struct candidates {
	struct candidate *list;
	uint32_t count;
	bool sorted; /* by logit, highest first */
};

struct yi_sampler {
	struct yi_sampling sampling;
	uint32_t n_vocab;
	struct twister twister;
	uint32_t *last; /* ring of the last tokens */
	uint32_t n_last, next_last;
};

/* Matsumoto and Nishimura, "Mersenne twister", ACM TOMACS 8 (1998). */
static void twister_seed(struct twister *twister, uint32_t seed)
{
	twister->words[0] = seed;
	for (uint32_t i = 1; i < TWISTER_WORDS; i++) {
		uint32_t before = twister->words[i - 1];

		twister->words[i] = 1812433253u * (before ^ before >> 30) + i;
	}
	twister->next = TWISTER_WORDS;
}

static void twister_turn(struct twister *twister)
{
	uint32_t *words = twister->words;

	for (uint32_t i = 0; i < TWISTER_WORDS; i++) {
		uint32_t y =
			(words[i] & 0x80000000u) | (words[(i + 1) % TWISTER_WORDS] & 0x7fffffffu);

		words[i] = words[(i + TWISTER_SHIFT) % TWISTER_WORDS] ^ y >> 1 ^
			   (y & 1 ? 0x9908b0dfu : 0);
	}
	twister->next = 0;
}

static uint32_t twister_draw(struct twister *twister)
{
	uint32_t y;

	if (twister->next == TWISTER_WORDS)
		twister_turn(twister);
	y = twister->words[twister->next++];
	y ^= y >> 11;
	y ^= y << 7 & 0x9d2c5680u;
	y ^= y << 15 & 0xefc60000u;
	return y ^ y >> 18;
}

/* Uniform in [0, 1): two draws, the first one is the low half. */
static double uniform(struct twister *twister)
{
	double low = twister_draw(twister);
	double both = low + twister_draw(twister) * 0x1p32;
	double u = both / 0x1p64;

	return u < 1 ? u : nextafter(1, 0);
}

struct yi_sampler *yi_sampler_create(const struct yi_sampling *sampling, uint32_t n_vocab)
{
	struct yi_sampler *sampler = yi_mem_zeroed(YI_MEM_REQUESTS, sizeof(*sampler));

	if (!sampler)
		return NULL;
	sampler->sampling = *sampling;
	sampler->n_vocab = n_vocab;
	twister_seed(&sampler->twister, sampling->seed);
	if (sampling->repeat_penalty == 1.0f || sampling->repeat_last == 0)
		return sampler;
	sampler->last =
		yi_mem_array(YI_MEM_REQUESTS, sampling->repeat_last, sizeof(*sampler->last));
	if (!sampler->last) {
		yi_sampler_free(sampler);
		return NULL;
	}
	return sampler;
}

void yi_sampler_free(struct yi_sampler *sampler)
{
	if (!sampler)
		return;
	yi_mem_free(YI_MEM_REQUESTS, sampler->last);
	yi_mem_free(YI_MEM_REQUESTS, sampler);
}

void yi_sampler_accept(struct yi_sampler *sampler, uint32_t token)
{
	if (!sampler->last)
		return;
	sampler->last[sampler->next_last] = token;
	sampler->next_last = (sampler->next_last + 1) % sampler->sampling.repeat_last;
	if (sampler->n_last < sampler->sampling.repeat_last)
		sampler->n_last++;
}

static bool seen_before(const struct yi_sampler *sampler, uint32_t number)
{
	for (uint32_t i = 0; i < number; i++)
		if (sampler->last[i] == sampler->last[number])
			return true;
	return false;
}

static float penalised(const struct yi_sampler *sampler, float logit)
{
	/* Dividing a negative logit would make the token more likely. */
	return logit <= 0 ? logit * sampler->sampling.repeat_penalty
			  : logit / sampler->sampling.repeat_penalty;
}

/* Lower ids first among equals, so that runs repeat. */
static bool above(const struct candidate *a, const struct candidate *b)
{
	return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

static int compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return above(x, y) ? -1 : above(y, x) ? 1 : 0;
}

/* Restores the heap (lowest candidate on top) below `at`. */
static void sift(struct candidate *heap, uint32_t count, uint32_t at)
{
	struct candidate moved = heap[at];
	uint32_t child;

	while ((child = 2 * at + 1) < count) {
		if (child + 1 < count && above(&heap[child], &heap[child + 1]))
			child++;
		if (!above(&moved, &heap[child]))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

/* Moves the highest `keep` candidates to the front, sorted; the rest keeps no order. */
static void sort_top(struct candidate *list, uint32_t count, uint32_t keep)
{
	if (keep < count) {
		for (uint32_t i = keep / 2; i-- > 0;)
			sift(list, keep, i);
		for (uint32_t i = keep; keep && i < count; i++) {
			if (above(&list[i], &list[0])) {
				struct candidate out = list[0];

				list[0] = list[i];
				list[i] = out;
				sift(list, keep, 0);
			}
		}
	}
	qsort(list, keep < count ? keep : count, sizeof(*list), compare);
}

static float highest(const struct candidates *candidates)
{
	float max = candidates->list[0].logit;

	for (uint32_t i = 1; !candidates->sorted && i < candidates->count; i++)
		if (candidates->list[i].logit > max)
			max = candidates->list[i].logit;
	return max;
}

static void keep_top_k(struct candidates *candidates, int32_t k)
{
	uint32_t keep = k > 0 && (uint32_t)k < candidates->count ? (uint32_t)k : candidates->count;

	if (k <= 0)
		return;
	sort_top(candidates->list, candidates->count, keep);
	candidates->count = keep;
	candidates->sorted = true;
}

/* Sums floats in the current order of candidates: another order would change the last bits. */
static void softmax(struct candidates *candidates)
{
	float max = highest(candidates), sum = 0;

	for (uint32_t i = 0; i < candidates->count; i++) {
		candidates->list[i].p = expf(candidates->list[i].logit - max);
		sum += candidates->list[i].p;
	}
	for (uint32_t i = 0; i < candidates->count; i++)
		candidates->list[i].p /= sum;
}

static void keep_top_p(struct candidates *candidates, float p)
{
	uint32_t count = candidates->count, sorted = count;
	float sum = 0;

	if (p >= 1.0f)
		return;
	softmax(candidates);
	if (!candidates->sorted) {
		sorted = count > SORT_ALL_UP_TO ? FIRST_SORTED : count;
		sort_top(candidates->list, count, sorted);
	}
	candidates->sorted = true;
	for (uint32_t i = 0; i < count; i++) {
		sum += candidates->list[i].p;
		if (sum >= p) {
			candidates->count = i + 1;
			return;
		}
		if (i + 1 == sorted && sorted < count) {
			sort_top(candidates->list, count, count);
			sorted = count;
		}
	}
}

static void keep_min_p(struct candidates *candidates, float p)
{
	float least;
	uint32_t kept = 0;

	if (p <= 0.0f)
		return;
	least = highest(candidates) + logf(p);
	for (uint32_t i = 0; i < candidates->count; i++)
		/* The most likely one of a sorted list is kept whatever the rounding. */
		if (candidates->list[i].logit >= least || (candidates->sorted && i == 0))
			candidates->list[kept++] = candidates->list[i];
	candidates->count = kept ? kept : candidates->count;
}

static void heat(struct candidates *candidates, float temperature)
{
	uint32_t best = 0;

	if (temperature > 0.0f) {
		for (uint32_t i = 0; i < candidates->count; i++)
			candidates->list[i].logit /= temperature;
		return;
	}
	for (uint32_t i = 1; i < candidates->count; i++)
		if (candidates->list[i].logit > candidates->list[best].logit)
			best = i;
	for (uint32_t i = 0; i < candidates->count; i++)
		if (i != best)
			candidates->list[i].logit = -INFINITY;
}

static uint32_t draw(struct yi_sampler *sampler, struct candidates *candidates)
{
	double u = uniform(&sampler->twister), sum = 0, run = 0;
	float max = highest(candidates);

	for (uint32_t i = 0; i < candidates->count; i++) {
		candidates->list[i].p = expf(candidates->list[i].logit - max);
		sum += (double)candidates->list[i].p;
	}
	for (uint32_t i = 0; i < candidates->count; i++) {
		run += (double)candidates->list[i].p;
		if (run >= sum * u)
			return candidates->list[i].id;
	}
	return candidates->list[candidates->count - 1].id;
}

/* The most likely token, without a list of candidates: penalties affect a few tokens only. */
static uint32_t draw_greedy(const struct yi_sampler *sampler, const float *logits)
{
	uint32_t best = 0;
	float most = 0;

	for (uint32_t id = 0; id < sampler->n_vocab; id++) {
		float logit = logits[id];

		if (id && !(logit > most) && sampler->n_last == 0)
			continue;
		for (uint32_t i = 0; i < sampler->n_last; i++)
			if (sampler->last[i] == id) {
				logit = penalised(sampler, logit);
				break;
			}
		if (id == 0 || logit > most) {
			best = id;
			most = logit;
		}
	}
	return best;
}

int yi_sampler_draw(struct yi_sampler *sampler, const float *logits, uint32_t *ret_token)
{
	const struct yi_sampling *sampling = &sampler->sampling;
	struct candidates candidates = {NULL, sampler->n_vocab, false};
	struct candidate *list;

	if (sampling->greedy) {
		*ret_token = draw_greedy(sampler, logits);
		return 0;
	}
	list = yi_mem_array(YI_MEM_ACTIVATIONS, sampler->n_vocab, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (uint32_t id = 0; id < sampler->n_vocab; id++)
		list[id] = (struct candidate){id, logits[id], 0};
	for (uint32_t i = 0; i < sampler->n_last; i++)
		if (!seen_before(sampler, i))
			list[sampler->last[i]].logit =
				penalised(sampler, list[sampler->last[i]].logit);
	candidates.list = list;
	keep_top_k(&candidates, sampling->top_k);
	keep_top_p(&candidates, sampling->top_p);
	keep_min_p(&candidates, sampling->min_p);
	heat(&candidates, sampling->temperature);
	*ret_token = draw(sampler, &candidates);
	yi_mem_free(YI_MEM_ACTIVATIONS, list);
	return 0;
}
