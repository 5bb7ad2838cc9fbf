/* SPDX-License-Identifier: MIT */
/* build: libyi.a libyiv3.a -lm -lpthread */
/*
 * The kernels that this CPU runs give the reference's bits: dot products of every type over random
 * and over extreme blocks, and attention over caches of every shape of run. The fast ones for
 * floats come close.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/runner/attention.h"
#include "tools/runner/half.h"
#include "tools/runner/make_model.h"

#define ROWS 8
#define MOST 4096

static struct yi_make_random random_state = {5};

static void must(bool holds, const char *what, const char *type, size_t n)
{
	if (holds)
		return;
	fprintf(stderr, "%s: %s, %zu elements\n", type, what, n);
	exit(1);
}

static float real(void)
{
	return (float)((double)(yi_make_next(&random_state) >> 11) * 0x1p-52 - 1);
}

/* Activations: ordinary, with an outlier, all alike, zeros. */
static void fill_acts(float *acts, size_t n, int kind)
{
	for (size_t i = 0; i < n; i++)
		acts[i] = kind == 2 ? -3.5f : kind == 3 ? 0.0f : real();
	if (kind == 1)
		acts[yi_make_next(&random_state) % n] = -1000;
	/* Ties of rounding and their neighbours: the largest is 127 steps. */
	for (size_t i = 0; kind == 4 && i < n; i++) {
		const float tie = (float)(int)(yi_make_next(&random_state) % 253) - 126.5f;

		acts[i] = i % 32 == 0 ? 127 : i % 2 ? tie : nextafterf(i % 4 ? tie : 0.5f, 0);
	}
}

/* Weights as made, or any bytes at all with finite scales. */
static void fill_rows(enum yi_type type, uint8_t *rows, size_t bytes, int kind)
{
	const struct yi_type_traits *traits = yi_type_find(type);
	uint8_t block[256];

	yi_make_weights(type, rows, bytes, 1, &random_state);
	if (kind == 0 || traits->block == 1)
		return;
	for (size_t at = 0; at < bytes; at += traits->block_bytes) {
		const uint8_t byte = (uint8_t)(kind == 1 ? 0x80 : kind == 2 ? 0x7f : 0xff);

		/* Keep the scales, which stand in front or behind. */
		memcpy(block, rows + at, traits->block_bytes);
		memset(rows + at, byte, traits->block_bytes);
		if (type == YI_Q2_K || type == YI_Q3_K || type == YI_Q6_K)
			memcpy(rows + at + traits->block_bytes - 4, block + traits->block_bytes - 4,
			       4);
		else
			memcpy(rows + at, block, 4);
	}
}

static void check_dot(enum yi_type type, size_t n, int kind)
{
	const struct yi_type_traits *traits = yi_type_find(type);
	const struct yi_kernels *exact = yi_dot_exact(), *fast = yi_dot_fastest();
	const size_t row_bytes = n / traits->block * traits->block_bytes;
	static uint8_t rows[ROWS * MOST * 4 + 64];
	static uint8_t plain[MOST * 8], packed[MOST * 8];
	static float acts[MOST];

	fill_acts(acts, n, kind % 5);
	fill_rows(type, rows, ROWS * row_bytes, kind / 5);
	yi_dot_reference.quant[traits->vec](acts, plain, n);
	exact->quant[traits->vec](acts, packed, n);
	for (size_t row = 0; row < ROWS; row++) {
		const uint8_t *at = rows + row * row_bytes;
		const float want = yi_dot_reference.dot[type](at, plain, n);
		const float got = exact->dot[type](at, packed, n);
		float four[YI_DOT_ROWS];

		must(memcmp(&want, &got, sizeof(want)) == 0, "differs", traits->name, n);
		if (exact->dot_rows[type] && row + YI_DOT_ROWS <= ROWS) {
			exact->dot_rows[type](at, row_bytes, packed, n, four);
			must(four[0] == want || (want != want && four[0] != four[0]), "rows differ",
			     traits->name, n);
		}
		if (traits->block == 1)
			must(fabsf(fast->dot[type](at, packed, n) - want) < 1e-3f * (float)n,
			     "fast is far off", traits->name, n);
	}
}

/* One head's attention with both sets, over a cache with a shared part or a ring that came round. */
static void check_attention(struct yi_model *model, enum yi_type type, enum yi_kv_alloc alloc,
			    uint32_t tokens)
{
	const struct yi_hparams *hp = &model->hp;
	const struct yi_kv_config config = {model, type, alloc, alloc == YI_KV_RING ? 20 : 200,
					    NULL};
	struct yi_kv *kv = yi_kv_create(&config), *base = NULL;
	const size_t room = yi_attention_scratch(hp, tokens);
	float *scratch = malloc(room * sizeof(float)), *row = malloc(hp->kv_dim * sizeof(float));
	float want[256], got[256], q[256];

	for (uint32_t at = 0; at < tokens; at++) {
		if (at == 13 && alloc != YI_KV_RING) {
			base = kv;
			kv = yi_kv_share(base, at);
		}
		must(kv && yi_kv_reserve(kv, 1) == 0, "no room", "cache", at);
		for (uint32_t i = 0; i < hp->kv_dim; i++)
			row[i] = real() * 3;
		yi_kv_write(kv, 0, at, row, row);
		yi_kv_append(kv, 1);
	}
	for (uint32_t i = 0; i < hp->head_dim; i++)
		q[i] = real();
	for (uint32_t head = 0; head < hp->n_head_kv; head++) {
		struct yi_attention attention = {hp, kv, 0, tokens - 1, head, q, want};

		yi_attention_run(&attention, &yi_dot_reference, scratch);
		attention.out = got;
		yi_attention_run(&attention, yi_dot_exact(), scratch);
		must(memcmp(want, got, hp->head_dim * sizeof(float)) == 0, "attention differs",
		     yi_type_find(type)->name, tokens);
	}
	free(scratch);
	free(row);
	yi_kv_free(kv);
	yi_kv_free(base);
}

/* Every half float there is survives, and floats around each round as the CPU rounds them. */
static void check_halves(void)
{
	for (uint32_t half = 0; half < 0x7c00; half++) {
		const float value = yi_half_to_float((uint16_t)half);
		const float next = yi_half_to_float((uint16_t)(half + 1));
		const float between[8] = {value,
					  value + (next - value) / 2,
					  nextafterf(next, 0),
					  nextafterf(value, 1e9f),
					  -value,
					  nextafterf(value + (next - value) / 2, 0),
					  nextafterf(value + (next - value) / 2, 1e9f),
					  next};
		uint16_t want[8], got[8];

		must(yi_half_of(value) == half, "does not survive", "F16", half);
		yi_dot_reference.quant[YI_F16](between, want, 8);
		yi_dot_exact()->quant[YI_F16](between, got, 8);
		must(memcmp(want, got, sizeof(want)) == 0, "rounds differently", "F16", half);
	}
}

int main(void)
{
	struct yi_model model = {.hp = {.n_layer = 1, .n_head = 2, .n_head_kv = 2}};
	static const uint32_t head_dims[] = {2, 6, 32, 64, 80, 128};
	static const uint32_t lengths[] = {1, 2, 7, 8, 9, 40, 150};

	printf("kernels: %s\n", yi_dot_exact()->name);
	for (uint32_t type = 0; type < YI_TYPE_LIMIT; type++) {
		if (!yi_type_find(type) || !yi_type_find(type)->weights)
			continue;
		for (int kind = 0; kind < 20; kind++)
			for (size_t n = yi_type_find(type)->block; n <= MOST; n *= 3)
				check_dot((enum yi_type)type, n, kind);
	}
	for (size_t d = 0; d < sizeof(head_dims) / sizeof(head_dims[0]); d++) {
		model.hp.head_dim = head_dims[d];
		model.hp.kv_dim = 2 * head_dims[d];
		for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
			check_attention(&model, YI_F16, YI_KV_GROW, lengths[l]);
			check_attention(&model, YI_F16, YI_KV_RING, lengths[l]);
			check_attention(&model, YI_F32, YI_KV_FULL, lengths[l]);
			if (head_dims[d] % 32 == 0)
				check_attention(&model, YI_Q8_0, YI_KV_GROW, lengths[l]);
		}
	}
	check_halves();
	return 0;
}
