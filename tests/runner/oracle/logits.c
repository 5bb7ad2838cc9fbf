/* SPDX-License-Identifier: MIT */
/*
 * llama.cpp as an oracle: evaluates tokens on one named CPU back end, flash attention off, and
 * writes what `yi-coder-run --logits` writes.  Compiled by oracle.sh against the library's own
 * headers once the packages are there.
 *
 *	logits BACKEND.so|FOLDER MODEL.gguf OUT TOKENS N BATCH THREADS [bench]
 *
 * TOKENS: ids separated by commas.  N: tokens to generate greedily after them.  BATCH: prompt
 * tokens evaluated at once.  FOLDER: the back end in it that suits the processor best.  Prints
 * the generated ids.  bench: prints milliseconds per generated token (least and median) instead
 * of writing logits.
 */
#include <llama.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define MAX_TOKENS 8192

static llama_token ids[MAX_TOKENS];
static double times_ms[MAX_TOKENS];
static int n_ids;

static void silent(enum ggml_log_level level, const char *text, void *arg)
{
	(void)arg;
	if (level == GGML_LOG_LEVEL_ERROR)
		fputs(text, stderr);
}

static void fail(const char *what)
{
	fprintf(stderr, "oracle: %s\n", what);
	exit(1);
}

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec * 1e-6;
}

/* Evaluates ids[from .. to) and returns the last row. */
static const float *eval(struct llama_context *ctx, int from, int to, int n_vocab, FILE *out)
{
	struct llama_batch batch = llama_batch_init(to - from, 0, 1);
	const float *row = NULL;

	for (int i = from; i < to; i++) {
		batch.token[i - from] = ids[i];
		batch.pos[i - from] = i;
		batch.n_seq_id[i - from] = 1;
		batch.seq_id[i - from][0] = 0;
		batch.logits[i - from] = out != NULL || i + 1 == to;
	}
	batch.n_tokens = to - from;
	if (llama_decode(ctx, batch))
		fail("decode failed");
	for (int i = out ? from : to - 1; i < to; i++) {
		row = llama_get_logits_ith(ctx, i - from);
		if (!row)
			fail("no logits");
		if (out)
			fwrite(row, sizeof(float), (size_t)n_vocab, out);
	}
	llama_batch_free(batch);
	return row;
}

static llama_token likeliest(const float *row, int n_vocab)
{
	int best = 0;

	for (int i = 1; i < n_vocab; i++)
		if (row[i] > row[best])
			best = i;
	return best;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct llama_context *open_model(const char *path, int n_ctx, int batch, int threads)
{
	struct llama_model_params mp = llama_model_default_params();
	struct llama_context_params cp = llama_context_default_params();
	struct llama_model *model;
	struct llama_context *ctx;

	mp.n_gpu_layers = 0;
	model = llama_model_load_from_file(path, mp);
	if (!model)
		fail("model cannot be loaded");
	cp.n_ctx = (uint32_t)n_ctx;
	cp.n_batch = cp.n_ubatch = (uint32_t)batch;
	cp.n_threads = cp.n_threads_batch = threads;
	cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
	if (getenv("ORACLE_KV_F32"))
		cp.type_k = cp.type_v = GGML_TYPE_F32;
	ctx = llama_init_from_model(model, cp);
	if (!ctx)
		fail("context cannot be made");
	return ctx;
}

int main(int argc, char **argv)
{
	int n, batch, n_vocab, bench;
	struct llama_context *ctx;
	const float *row = NULL;
	FILE *out = NULL;
	struct stat st;

	if (argc < 8)
		fail("usage: logits BACKEND.so MODEL.gguf OUT TOKENS N BATCH THREADS [bench]");
	llama_log_set(silent, NULL);
	if (stat(argv[1], &st) == 0 && S_ISDIR(st.st_mode))
		ggml_backend_load_all_from_path(argv[1]);
	else if (!ggml_backend_load(argv[1]))
		fail("back end cannot be loaded");
	for (char *at = argv[4]; *at && n_ids < MAX_TOKENS; at += *at == ',')
		ids[n_ids++] = (llama_token)strtol(at, &at, 10);
	n = atoi(argv[5]);
	batch = atoi(argv[6]);
	bench = argc > 8 && strcmp(argv[8], "bench") == 0;
	ctx = open_model(argv[2], n_ids + n + 8, batch, atoi(argv[7]));
	n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(ctx)));
	if (!bench && !(out = fopen(argv[3], "wb")))
		fail("logits cannot be written");
	for (int from = 0; from < n_ids; from += batch)
		row = eval(ctx, from, from + batch < n_ids ? from + batch : n_ids, n_vocab, out);
	for (int i = 0; i < n; i++) {
		const double start = now_ms();

		ids[n_ids++] = likeliest(row, n_vocab);
		if (i + 1 < n)
			row = eval(ctx, n_ids - 1, n_ids, n_vocab, out);
		times_ms[i] = now_ms() - start;
	}
	if (out && fclose(out))
		fail("logits cannot be written");
	if (bench) {
		qsort(times_ms, (size_t)n - 1, sizeof(times_ms[0]), compare);
		printf("%.3f %.3f\n", times_ms[0], times_ms[(n - 1) / 2]);
		return 0;
	}
	for (int i = n_ids - n; i < n_ids; i++)
		printf("%s%d", i > n_ids - n ? "," : "", ids[i]);
	putchar('\n');
	return 0;
}
