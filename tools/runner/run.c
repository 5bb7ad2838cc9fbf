/* SPDX-License-Identifier: MIT */
/* One prompt, one answer: the verb without a name. */
#include "tools/runner/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/runner/device.h"
#include "tools/runner/forward.h"
#include "tools/runner/mem.h"
#include "tools/runner/model_check.h"
#include "tools/runner/options.h"
#include "tools/runner/prompt.h"
#include "tools/runner/sampler.h"
#include "tools/runner/stats.h"
#include "tools/runner/stop.h"
#include "tools/runner/tokenizer.h"

/* Prompt tokens evaluated at once. */
#define PREFILL 256
/* The same where every row of logits is kept. */
#define PREFILL_LOGITS 32

struct run {
	struct yi_options options;
	struct yi_error error;
	struct yi_model *model;
	struct yi_vocab *vocab;
	struct yi_workers *workers;
	struct yi_forward *forward;
	struct yi_kv *kv;
	struct yi_sampler *sampler;
	struct yi_ids ids; /* the prompt, then what was drawn */
	float *logits;     /* one row, or PREFILL_LOGITS rows where all are wanted */
	FILE *logits_out;
	struct yi_stats stats;
};

static int no_memory(struct run *run)
{
	return yi_error_set(&run->error, YI_EXIT_TROUBLE, -ENOMEM, "no memory");
}

/* Reports a write error; to be called right after the failed call, for errno. */
static int cannot_write(struct run *run, const char *what)
{
	return yi_error_set(&run->error, YI_EXIT_TROUBLE, -EIO, "%s: cannot be written: %s", what,
			    strerror(errno));
}

/* Tokenizes a text, in ChatML if requested. */
static int encode(struct run *run, const char *text, size_t len)
{
	/* A continuation of a restored session gets no second begin token. */
	enum yi_tokenize how = run->options.restore ? YI_TOKENIZE_PLAIN : YI_TOKENIZE_ADD_SPECIAL;
	char *chat = NULL;
	int error;

	if (run->options.chat && !run->vocab->chatml)
		return yi_error_set(&run->error, YI_EXIT_USAGE, -EINVAL,
				    "--chat needs a model that chats in ChatML");
	if (run->options.chat) {
		chat = yi_tokenizer_chat(text, len, &len);
		if (!chat)
			return no_memory(run);
		text = chat;
		how |= YI_TOKENIZE_PARSE_SPECIAL;
	}
	error = yi_tokenizer_encode(run->vocab, text, len, how, &run->ids);
	yi_mem_free(YI_MEM_REQUESTS, chat);
	return error ? no_memory(run) : 0;
}

static int add_id(void *arg, uint32_t id)
{
	return yi_ids_add(arg, id);
}

static int read_ids(struct run *run)
{
	const struct yi_options *options = &run->options;
	char *text;
	size_t len = 0;
	int error;

	if (options->token_list)
		return yi_options_tokens(options->token_list, run->model->hp.n_vocab, add_id,
					 &run->ids, &run->error);
	if (options->restore && !options->prompt && !options->prompt_file)
		return 0;
	if (!options->prompt_file)
		return encode(run, options->prompt ? options->prompt : "",
			      options->prompt ? strlen(options->prompt) : 0);
	text = yi_prompt_read(options->prompt_file, &len, &run->error);
	error = text ? encode(run, text, len) : -1;
	yi_mem_free(YI_MEM_REQUESTS, text);
	return error;
}

static int eval(struct run *run, const uint32_t *ids, uint32_t n)
{
	const size_t n_vocab = run->model->hp.n_vocab;
	struct yi_item items[PREFILL];
	int error;

	for (uint32_t i = 0; i < n; i++) {
		items[i] = (struct yi_item){run->kv, ids[i], NULL};
		if (run->logits_out)
			items[i].logits = run->logits + i * n_vocab;
		else if (i + 1 == n)
			items[i].logits = run->logits;
	}
	error = yi_forward_eval(run->forward, items, n);
	yi_device_upload(run->logits, run->logits, run->model->hp.n_vocab * sizeof(float));
	run->stats.steps++;
	if (error == -EDOM && yi_model_check_data(run->model, &run->error) == 0)
		yi_error_set(&run->error, YI_EXIT_TROUBLE, -EDOM, "a result is not a number");
	else if (error == -ENOSPC)
		yi_error_set(&run->error, YI_EXIT_TROUBLE, -ENOSPC, "context of %u tokens is full",
			     run->options.context);
	else if (error)
		no_memory(run);
	if (!error && run->logits_out &&
	    fwrite(run->logits, sizeof(float) * n_vocab, n, run->logits_out) != n)
		error = cannot_write(run, run->options.logits);
	return error;
}

/* Evaluates the prompt from where the cache ends; ret_last is the last token's row. */
static int prefill(struct run *run, const float **ret_last)
{
	const double start = yi_stats_now_s();
	const uint32_t most = run->logits_out ? PREFILL_LOGITS : PREFILL;
	uint32_t done = yi_kv_len(run->kv), n = 0;

	while (done < run->ids.count) {
		const size_t left = run->ids.count - done;
		int error;

		if (yi_stop_wanted())
			return yi_error_set(&run->error, yi_stop_status(), -EINTR,
					    "stopped before the first token");
		n = left < most ? (uint32_t)left : most;
		error = eval(run, run->ids.ids + done, n);
		if (error)
			return error;
		done += n;
		run->stats.prompt_tokens += n;
	}
	*ret_last = run->logits_out ? run->logits + (size_t)(n - 1) * run->model->hp.n_vocab
				    : run->logits;
	run->stats.prefill_s = yi_stats_now_s() - start;
	return 0;
}

static int put_text(struct run *run, struct yi_detok *detok, uint32_t id)
{
	if (yi_detok_print(detok, run->vocab, id, stdout))
		return no_memory(run);
	if (fflush(stdout))
		return cannot_write(run, "the answer");
	return 0;
}

/* The second half of the answer counts as warm. */
static void count_warm(struct run *run, uint32_t n)
{
	if (n == run->options.n / 2)
		run->stats.warm_faults = yi_stats_faults();
	run->stats.warm_tokens += n >= run->options.n / 2;
}

static int generate(struct run *run, const float *logits)
{
	struct yi_detok detok = {0};
	char rest[16];
	const double start = yi_stats_now_s();
	double last = start;
	uint32_t id;

	for (uint32_t n = 0; n < run->options.n; n++) {
		double now, cpu;
		int error = yi_sampler_draw(run->sampler, logits, &id);

		if (error)
			return no_memory(run);
		yi_sampler_accept(run->sampler, id);
		if (yi_ids_add(&run->ids, id))
			return no_memory(run);
		run->stats.generated_tokens++;
		if (run->vocab->flags[id] & YI_TOKEN_EOG)
			break;
		error = put_text(run, &detok, id);
		now = yi_stats_now_s();
		if (n == 0)
			yi_samples_add(&run->stats.first_token_ms,
				       (now - start + run->stats.prefill_s) * 1e3);
		else
			yi_samples_add(&run->stats.latency_ms, (now - last) * 1e3);
		last = now;
		if (error || n + 1 == run->options.n || yi_stop_wanted())
			break;
		if (n == run->options.n / 2)
			run->stats.tiers.due = true;
		count_warm(run, n);
		cpu = yi_stats_cpu_s();
		error = eval(run, &id, 1);
		if (error)
			return error;
		yi_samples_add(&run->stats.token_cpu_ms, (yi_stats_cpu_s() - cpu) * 1e3);
		logits = run->logits;
	}
	run->stats.decode_s = yi_stats_now_s() - start;
	if (run->stats.warm_tokens)
		run->stats.warm_faults = yi_stats_faults() - run->stats.warm_faults;
	fwrite(rest, 1, yi_detok_end(&detok, rest), stdout);
	if (fputc('\n', stdout) == EOF || fflush(stdout))
		return cannot_write(run, "the answer");
	return run->error.status ? -1 : 0;
}

/* Adds the file's name to a refusal. */
static int about(struct run *run, const char *path, const struct yi_error *why)
{
	return yi_error_set(&run->error, why->status, -EINVAL, "%s: %s", path, why->text);
}

/* Saves the state; an earlier state in the file stays intact until the new one is complete. */
static int save(struct run *run)
{
	const char *path = run->options.save;
	struct yi_error why = {0};
	struct stat st = {0};
	char next[4096];
	/*
	 * A file that is not regular, such as a pipe, is written in place; a file without write
	 * permission is not replaced either.
	 */
	const bool fresh = lstat(path, &st) && errno == ENOENT;
	const bool beside = fresh || (S_ISREG(st.st_mode) && access(path, W_OK) == 0);
	const char *to = beside ? next : path;
	int fd, error;

	if (beside &&
	    snprintf(next, sizeof(next), "%s.%ld", path, (long)getpid()) >= (int)sizeof(next)) {
		errno = ENAMETOOLONG;
		return cannot_write(run, path);
	}
	fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return cannot_write(run, path);
	if (beside && !fresh)
		fchmod(fd, st.st_mode & 07777);
	error = yi_kv_save(run->kv, run->ids.ids, (uint32_t)run->ids.count, fd, &why);
	if (error)
		error = about(run, path, &why);
	if (close(fd) && !error)
		error = cannot_write(run, path);
	if (beside && !error && rename(to, path))
		error = cannot_write(run, path);
	if (beside && error)
		unlink(to);
	return error;
}

/* Restores a session: its cache, and its ids in front of the prompt's. */
static int restore(struct run *run, const struct yi_kv_config *config, int fd)
{
	struct yi_error why = {0};
	struct yi_ids ids = {0};
	uint32_t n_ids = 0;

	run->kv = yi_kv_restore(config, fd, &ids.ids, &n_ids, &why);
	if (!run->kv)
		return about(run, run->options.restore, &why);
	ids.count = ids.room = n_ids;
	for (size_t i = 0; i < run->ids.count; i++)
		if (yi_ids_add(&ids, run->ids.ids[i])) {
			yi_ids_clear(&ids);
			return no_memory(run);
		}
	yi_ids_clear(&run->ids);
	run->ids = ids;
	/* Logits aren't saved: the last token is evaluated again if none follows. */
	if (run->ids.count > yi_kv_len(run->kv))
		return 0;
	if (run->ids.count == 0 || yi_kv_cut(run->kv, (uint32_t)run->ids.count - 1))
		return yi_error_set(&run->error, YI_EXIT_USAGE, -EINVAL,
				    "the restored session needs a prompt, give one with -p");
	return 0;
}

/* An empty cache, or the restored one; the context defaults to what the run needs. */
static int make_kv(struct run *run)
{
	struct yi_options *options = &run->options;
	const struct yi_hparams *hp = &run->model->hp;
	struct yi_kv_config config = {
		.model = run->model,
		.type = options->kv_type,
		.alloc = options->kv_alloc,
	};
	struct yi_error why = {0};
	uint32_t before = 0;
	int fd = -1, error = 0;

	if (config.type == YI_Q8_0 && hp->head_dim % 32)
		return yi_error_set(&run->error, YI_EXIT_TROUBLE, -EINVAL,
				    "--kv q8_0 needs heads of a multiple of 32, not %u",
				    hp->head_dim);
	if (options->restore) {
		fd = open(options->restore, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return yi_error_set(&run->error, YI_EXIT_TROUBLE, -errno,
					    "%s: cannot be opened: %s", options->restore,
					    strerror(errno));
		error = yi_kv_peek(fd, &before, &why);
		if (error)
			error = about(run, options->restore, &why);
	}
	if (!options->context) {
		const uint64_t wanted = (uint64_t)before + run->ids.count + options->n;

		options->context = wanted < hp->n_ctx_train ? (uint32_t)wanted : hp->n_ctx_train;
	}
	config.max_tokens = options->context;
	if (!error && options->restore)
		error = restore(run, &config, fd);
	else if (!error)
		run->kv = yi_kv_create(&config);
	if (fd >= 0)
		close(fd);
	return error || run->kv ? error : no_memory(run);
}

static int load(struct run *run)
{
	const struct yi_options *options = &run->options;

	run->model = yi_model_load(options->model, options->load, options->populate, &run->error);
	if (!run->model)
		return -EINVAL;
	run->vocab = yi_vocab_load(run->model->file, run->model->hp.n_vocab, &run->error);
	return run->vocab ? 0 : -EINVAL;
}

static int print_ids(struct run *run)
{
	const char *text = run->options.tokenize;
	enum yi_tokenize how = YI_TOKENIZE_ADD_SPECIAL;

	if (run->options.chat)
		how = YI_TOKENIZE_ADD_SPECIAL | YI_TOKENIZE_PARSE_SPECIAL;
	if (yi_tokenizer_encode(run->vocab, text, strlen(text), how, &run->ids))
		return no_memory(run);
	for (size_t i = 0; i < run->ids.count; i++)
		printf("%s%u", i ? " " : "", run->ids.ids[i]);
	putchar('\n');
	return fflush(stdout) ? cannot_write(run, "the ids") : 0;
}

static int prepare(struct run *run)
{
	struct yi_options *options = &run->options;
	const struct yi_hparams *hp = &run->model->hp;
	const uint32_t rows = options->logits ? PREFILL_LOGITS : 1;
	int error = read_ids(run);

	if (error)
		return error;
	if (run->ids.count == 0 && !options->restore)
		return yi_error_set(&run->error, YI_EXIT_USAGE, -EINVAL,
				    "the prompt has no tokens, give one with -p, -f or --tokens");
	run->workers = yi_workers_create(options->threads ? options->threads : 1);
	if (!run->workers)
		return yi_error_set(&run->error, YI_EXIT_TROUBLE, -errno,
				    "threads can't be started: %s", strerror(errno));
	run->forward =
		yi_forward_create(run->model, run->workers, options->exact ? YI_EXACT : YI_FAST);
	run->sampler = yi_sampler_create(&options->sampling, hp->n_vocab);
	run->logits = yi_mem_array(YI_MEM_ACTIVATIONS, (size_t)rows * hp->n_vocab, sizeof(float));
	if (!run->forward || !run->sampler || !run->logits)
		return no_memory(run);
	yi_forward_watch(run->forward, &run->stats.tiers);
	if (options->logits) {
		run->logits_out = fopen(options->logits, "wbe");
		if (!run->logits_out)
			return yi_error_set(&run->error, YI_EXIT_TROUBLE, -errno,
					    "%s: cannot be written: %s", options->logits,
					    strerror(errno));
	}
	return make_kv(run);
}

static void count_run(struct run *run)
{
	run->stats.start_faults = yi_stats_faults();
	run->stats.kv_bytes_per_token =
		yi_kv_bytes_per_token(&run->model->hp, run->options.kv_type);
	run->stats.weight_bytes = run->model->weight_bytes;
	run->stats.mapped_bytes =
		run->model->load == YI_LOAD_MMAP ? run->model->file->file_bytes : 0;
	run->stats.sessions_started = 1;
}

static int answer(struct run *run)
{
	const float *last = NULL;
	int error;

	if (run->options.tokenize)
		return print_ids(run);
	error = prepare(run);
	if (error)
		return error;
	count_run(run);
	for (size_t i = 0; i < run->ids.count; i++)
		yi_sampler_accept(run->sampler, run->ids.ids[i]);
	yi_stop_watch();
	error = prefill(run, &last);
	if (!error)
		error = generate(run, last);
	if (!error && run->logits_out && fflush(run->logits_out))
		error = cannot_write(run, run->options.logits);
	if (!error && run->options.save)
		error = save(run);
	if (error)
		run->stats.sessions_failed = 1;
	else
		run->stats.sessions_finished = 1;
	return error;
}

static void release(struct run *run)
{
	if (run->logits_out)
		fclose(run->logits_out);
	yi_kv_free(run->kv);
	yi_mem_free(YI_MEM_ACTIVATIONS, run->logits);
	yi_sampler_free(run->sampler);
	yi_forward_free(run->forward);
	yi_workers_free(run->workers);
	yi_ids_clear(&run->ids);
	yi_vocab_free(run->vocab);
	yi_model_free(run->model);
	yi_stats_clear(&run->stats);
}

int yi_run_main(int argc, char **argv)
{
	struct run run = {0};
	int code = yi_options_parse(YI_VERB_RUN, argc, argv, 1, &run.options, &run.error);

	if (!code && run.options.device == YI_DEVICE_CUDA)
		code = yi_device_open(&run.error);
	if (!code)
		code = load(&run);
	if (!code) {
		/* Whether mapped or read, an engine uploads them in one piece. */
		yi_device_mirror(YI_MEM_WEIGHTS, run.model->data, run.model->weight_bytes);
		yi_device_upload(run.model->data, run.model->data, run.model->weight_bytes);
	}
	if (!code)
		code = answer(&run);
	if (!code && !run.options.tokenize && run.options.stats) {
		code = yi_stats_write(&run.stats, run.options.stats, NULL, NULL);
		errno = -code;
		if (code)
			code = cannot_write(&run, run.options.stats);
	}
	if (!code && !run.options.tokenize && !run.options.quiet)
		yi_stats_print(&run.stats, stderr);
	release(&run);
	code = yi_device_end(code, run.options.quiet, &run.error);
	if (code)
		fprintf(stderr, "yi-coder-run: %s\n", run.error.text);
	return code ? run.error.status : yi_stop_status();
}
