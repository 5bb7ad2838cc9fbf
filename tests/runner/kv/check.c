/* SPDX-License-Identifier: MIT */
/*
 * Caches hold what was written, however they are grown, shared, copied, cut, shifted, saved and
 * restored.  Rows are told apart by value: key = 1000 * sequence + position (+ layer / 64), and a
 * shadow list of what each cache should hold is kept beside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/runner/kv.h"
#include "tools/runner/mem.h"
#include "tools/runner/quant.h"

#define CHECK(holds)                                                                               \
	do {                                                                                       \
		if (!(holds)) {                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds);                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define LAYERS 2
#define DIM 64
#define MAX 96

static struct yi_model model = {
	.hp = {.n_vocab = 1 << 20,
	       .n_layer = LAYERS,
	       .n_head_kv = 2,
	       .head_dim = 32,
	       .kv_dim = DIM,
	       .rope_base = 1e4f},
};

/* A cache and what it should hold. */
struct seq {
	struct yi_kv *kv;
	uint32_t len;
	float tags[4096];
};

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static int add(struct seq *seq, float tag)
{
	float keys[DIM], values[DIM];
	int code = yi_kv_reserve(seq->kv, 1);

	if (code)
		return code;
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		for (uint32_t i = 0; i < DIM; i++) {
			keys[i] = 0;
			values[i] = tag + (float)layer / 2;
		}
		yi_kv_write(seq->kv, layer, seq->len, keys, values);
	}
	yi_kv_append(seq->kv, 1);
	seq->tags[seq->len++] = tag;
	return 0;
}

static float first_value(const struct yi_kv *kv, const uint8_t *row)
{
	float values[DIM];

	yi_type_find(yi_kv_type(kv))->dequant(row, values, DIM);
	return values[0];
}

static void verify(const struct seq *seq)
{
	uint32_t first = seq->len ? yi_kv_first(seq->kv, seq->len - 1) : 0;

	CHECK(yi_kv_len(seq->kv) == seq->len);
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		struct yi_kv_rows rows;
		uint32_t seen = first;

		for (uint32_t at = first; yi_kv_next(seq->kv, layer, &at, seq->len, &rows);) {
			CHECK(rows.position == seen && rows.count);
			for (uint32_t i = 0; i < rows.count; i++) {
				const uint8_t *row = rows.values + i * yi_kv_row_bytes(seq->kv);
				float want = seq->tags[seen + i] + (float)layer / 2;

				CHECK(fabsf(first_value(seq->kv, row) - want) <= fabsf(want) / 200);
			}
			seen += rows.count;
		}
		CHECK(seen == seq->len);
	}
}

static void drop(struct seq *seq)
{
	yi_kv_free(seq->kv);
	seq->kv = NULL;
}

static struct seq *fork_of(struct seq *from, struct seq *to, struct yi_kv *kv, uint32_t tokens)
{
	CHECK(kv);
	memcpy(to->tags, from->tags, sizeof(to->tags));
	to->len = tokens;
	to->kv = kv;
	return to;
}

/* Random life of many sequences that come from each other. */
static void shuffle(struct yi_kv_config config, uint32_t steps)
{
	enum { SEQS = 12 };
	static struct seq seqs[SEQS];
	bool ring = config.alloc == YI_KV_RING;

	memset(seqs, 0, sizeof(seqs));
	for (uint32_t step = 0; step < steps; step++) {
		struct seq *seq = &seqs[draw(SEQS)], *other = &seqs[draw(SEQS)];
		uint32_t tokens;

		if (!seq->kv) {
			seq->kv = yi_kv_create(&config);
			seq->len = 0;
			CHECK(seq->kv);
		}
		tokens = draw(seq->len + 1);
		switch (draw(8)) {
		case 0:
			if (other != seq && !ring) {
				drop(other);
				fork_of(seq, other, yi_kv_share(seq->kv, tokens), tokens);
			}
			break;
		case 1:
			if (other != seq) {
				drop(other);
				fork_of(seq, other, yi_kv_copy(seq->kv), seq->len);
			}
			break;
		case 2:
			if (yi_kv_cut(seq->kv, tokens) == 0)
				seq->len = tokens < seq->len ? tokens : seq->len;
			else
				CHECK(ring);
			break;
		case 3:
			if (!ring && draw(2)) {
				uint32_t count = draw(seq->len - tokens + 1);

				CHECK(yi_kv_shift(seq->kv, tokens, count) == 0);
				memmove(seq->tags + tokens, seq->tags + tokens + count,
					(seq->len - tokens - count) * sizeof(float));
				seq->len -= count;
			}
			break;
		case 4:
			if (draw(4) == 0)
				drop(seq);
			break;
		default:
			for (uint32_t i = draw(20); i > 0 && seq->len < 4000; i--) {
				int code = add(seq, (float)(1 + draw(2000)));

				CHECK(code == 0 || (code == -ENOSPC && !ring && seq->len == MAX));
			}
		}
		for (uint32_t i = 0; i < SEQS; i++)
			if (seqs[i].kv)
				verify(&seqs[i]);
	}
	for (uint32_t i = 0; i < SEQS; i++)
		drop(&seqs[i]);
}

/* A shifted key is the key of the earlier position: turning is undone exactly as it was done. */
static void shift_turns(void)
{
	struct yi_kv_config config = {.model = &model, .type = YI_F32, .max_tokens = MAX};
	struct yi_kv *kv = yi_kv_create(&config);
	float keys[DIM], values[DIM] = {0};
	struct yi_kv_rows rows;
	uint32_t at = 20;

	for (uint32_t position = 0; position < 40; position++) {
		for (uint32_t i = 0; i < DIM / 2; i++) {
			double turn = position * pow(1e4, -2.0 * (i % 16) / 32);

			keys[2 * i] = (float)(2 * cos(turn));
			keys[2 * i + 1] = (float)(2 * sin(turn));
		}
		CHECK(yi_kv_reserve(kv, 1) == 0);
		yi_kv_write(kv, 0, position, keys, values);
		yi_kv_write(kv, 1, position, keys, values);
		yi_kv_append(kv, 1);
	}
	CHECK(yi_kv_shift(kv, 5, 10) == 0 && yi_kv_len(kv) == 30);
	CHECK(yi_kv_next(kv, 1, &at, 21, &rows));
	memcpy(keys, rows.keys, sizeof(keys));
	for (uint32_t i = 0; i < DIM / 2; i++) {
		double turn = 20 * pow(1e4, -2.0 * (i % 16) / 32);

		CHECK(fabs(keys[2 * i] - 2 * cos(turn)) < 1e-4);
		CHECK(fabs(keys[2 * i + 1] - 2 * sin(turn)) < 1e-4);
	}
	yi_kv_free(kv);
}

static int write_copy(const char *bytes, size_t len)
{
	int fd = open("state.bad", O_RDWR | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0 && write(fd, bytes, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

/* A changed or missing byte of a state is noticed, wherever it is. */
static void states(struct yi_kv_config config, uint32_t tokens)
{
	struct seq seq = {.kv = yi_kv_create(&config)};
	struct yi_error error = {0, ""};
	int fd = open("state", O_RDWR | O_CREAT | O_TRUNC, 0600);
	static char bytes[1 << 20];
	uint32_t ids[4 * MAX], *got, n_ids;
	struct yi_kv *kv;
	ssize_t len;

	for (uint32_t i = 0; i < tokens; i++)
		CHECK(add(&seq, (float)(i + 1)) == 0);
	for (uint32_t i = 0; i <= tokens; i++)
		ids[i] = 3 * i;
	CHECK(fd >= 0 && yi_kv_save(seq.kv, ids, tokens + 1, fd, &error) == 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && yi_kv_peek(fd, &n_ids, &error) == 0);
	CHECK(n_ids == tokens + 1);
	kv = yi_kv_restore(&config, fd, &got, &n_ids, &error);
	CHECK(kv && n_ids == tokens + 1 && memcmp(got, ids, n_ids * sizeof(*ids)) == 0);
	yi_mem_free(YI_MEM_REQUESTS, got);
	drop(&seq);
	seq.kv = kv;
	verify(&seq);
	CHECK(config.alloc == YI_KV_RING || seq.len >= MAX || add(&seq, 7) == 0);
	verify(&seq);
	drop(&seq);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	len = read(fd, bytes, sizeof(bytes));
	close(fd);
	CHECK(len > 64 && len < (ssize_t)sizeof(bytes));
	for (ssize_t i = 0; i < len; i += i < 64 ? 1 : 1009) {
		bytes[i] ^= 1;
		fd = write_copy(bytes, (size_t)len);
		error.status = 0;
		CHECK(!yi_kv_restore(&config, fd, &got, &n_ids, &error) && error.status == 1);
		close(fd);
		bytes[i] ^= 1;
		fd = write_copy(bytes, (size_t)i);
		error.status = 0;
		CHECK(!yi_kv_restore(&config, fd, &got, &n_ids, &error) && error.status == 1);
		close(fd);
	}
}

int main(void)
{
	static const enum yi_type types[] = {YI_F32, YI_F16, YI_Q8_0};

	for (int alloc = YI_KV_GROW; alloc <= YI_KV_RING; alloc++) {
		for (int i = 0; i < 3; i++) {
			struct yi_kv_config config = {&model, types[i], (enum yi_kv_alloc)alloc,
						      MAX, NULL};

			shuffle(config, 400);
			states(config, 50);
			states(config, alloc == YI_KV_RING ? 3 * MAX + 5 : MAX);
			CHECK(yi_mem_live_bytes() == 0);
			config.pool = yi_kv_pool_create(1 << 16);
			shuffle(config, 400);
			CHECK(yi_kv_pool_bytes(config.pool) <= 1 << 16);
			yi_kv_pool_free(config.pool);
			CHECK(yi_mem_live_bytes() == 0);
		}
	}
	shift_turns();
	CHECK(yi_mem_live_bytes() == 0);
	return 0;
}
