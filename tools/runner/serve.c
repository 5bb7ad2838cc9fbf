/* SPDX-License-Identifier: MIT */
#include "tools/runner/serve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/runner/device.h"
#include "tools/runner/leak_demo.h"
#include "tools/runner/mem.h"
#include "tools/runner/model_check.h"
#include "tools/runner/scheduler.h"
#include "tools/runner/stop.h"

/* Default context of a session: prompts and answers of a load are short. */
#define DEFAULT_CONTEXT 512

struct serve {
	struct yi_options options;
	struct yi_error error;
	struct yi_model *model;
	struct yi_vocab *vocab;
	struct yi_scheduler scheduler;
};

static int no_memory(struct serve *serve)
{
	if (serve->options.memory_limit)
		return yi_error_set(&serve->error, YI_EXIT_TROUBLE, -ENOMEM,
				    "no memory to start with, --memory-limit leaves too little");
	return yi_error_set(&serve->error, YI_EXIT_TROUBLE, -ENOMEM, "no memory");
}

static int load(struct serve *serve)
{
	struct yi_options *options = &serve->options;
	const struct yi_hparams *hp;

	serve->model =
		yi_model_load(options->model, options->load, options->populate, &serve->error);
	if (!serve->model)
		return -EINVAL;
	hp = &serve->model->hp;
	serve->vocab = yi_vocab_load(serve->model->file, hp->n_vocab, &serve->error);
	if (!serve->vocab)
		return -EINVAL;
	if (options->kv_type == YI_Q8_0 && hp->head_dim % 32)
		return yi_error_set(&serve->error, YI_EXIT_TROUBLE, -EINVAL,
				    "--kv q8_0 needs heads of a multiple of 32, not %u",
				    hp->head_dim);
	if (!options->context)
		options->context =
			hp->n_ctx_train < DEFAULT_CONTEXT ? hp->n_ctx_train : DEFAULT_CONTEXT;
	return 0;
}

static int make_requests(struct serve *serve)
{
	const struct yi_options *options = &serve->options;
	struct yi_requests *requests = &serve->scheduler.requests;
	struct yi_request_mix mix = {
		.seed = options->sampling.seed,
		.count = options->sessions ? options->sessions : 1,
		.n_vocab = serve->vocab->n_tokens,
		.context = options->context,
		.n = options->n,
		.rate = options->rate,
		.share = options->share,
	};

	if (!options->requests)
		return yi_requests_draw(&mix, requests, &serve->error);
	if (yi_requests_read(options->requests, serve->vocab->n_tokens, requests, &serve->error))
		return -EINVAL;
	return options->sessions ? yi_requests_take(requests, options->sessions, &serve->error) : 0;
}

static size_t longest_token(const struct yi_vocab *vocab)
{
	size_t most = 1;

	for (uint32_t id = 0; id < vocab->n_tokens; id++) {
		size_t len = vocab->text_at[id + 1] - vocab->text_at[id];

		most = len > most ? len : most;
	}
	return most;
}

static int prepare(struct serve *serve)
{
	struct yi_options *options = &serve->options;
	struct yi_scheduler *scheduler = &serve->scheduler;

	scheduler->env.options = options;
	scheduler->env.vocab = serve->vocab;
	scheduler->env.max_piece = longest_token(serve->vocab);
	scheduler->env.kv = (struct yi_kv_config){
		.model = serve->model,
		.type = options->kv_type,
		.alloc = options->kv_alloc,
		.max_tokens = options->context,
	};
	if (options->pool_bytes) {
		scheduler->env.kv.pool = yi_kv_pool_create(options->pool_bytes);
		if (!scheduler->env.kv.pool)
			return no_memory(serve);
	}
	scheduler->workers = yi_workers_create(options->threads ? options->threads : 1);
	if (!scheduler->workers)
		return yi_error_set(&serve->error, YI_EXIT_TROUBLE, -errno,
				    "threads can't be started: %s", strerror(errno));
	scheduler->forward = yi_forward_create(serve->model, scheduler->workers,
					       options->exact ? YI_EXACT : YI_FAST);
	if (!scheduler->forward)
		return no_memory(serve);
	yi_forward_watch(scheduler->forward, &scheduler->stats.tiers);
	if (options->leak_demo)
		scheduler->ended = yi_leak_demo_session;
	if (!options->quiet && isatty(STDERR_FILENO))
		scheduler->progress = stderr;
	if (!options->answers)
		return 0;
	scheduler->answers = fopen(options->answers, "we");
	if (!scheduler->answers)
		return yi_error_set(&serve->error, YI_EXIT_TROUBLE, -errno,
				    "%s: cannot be written: %s", options->answers, strerror(errno));
	return 0;
}

static int set_limit(struct serve *serve)
{
	const struct yi_options *options = &serve->options;
	struct rlimit limit = {options->memory_limit, RLIM_INFINITY};

	if (!options->memory_limit)
		return 0;
	if (options->limit_by == YI_LIMIT_LIVE) {
		yi_mem_set_limit(options->memory_limit);
		return 0;
	}
	if (getrlimit(RLIMIT_DATA, &limit) == 0) {
		limit.rlim_cur = options->memory_limit;
		if (setrlimit(RLIMIT_DATA, &limit) == 0)
			return 0;
	}
	return yi_error_set(&serve->error, YI_EXIT_TROUBLE, -errno,
			    "the memory limit can't be set: %s", strerror(errno));
}

static int serve_all(struct serve *serve)
{
	struct yi_scheduler *scheduler = &serve->scheduler;
	struct yi_stats *stats = &scheduler->stats;
	int code = set_limit(serve);

	if (code)
		return code;
	stats->kv_bytes_per_token =
		yi_kv_bytes_per_token(&serve->model->hp, serve->options.kv_type);
	stats->weight_bytes = serve->model->weight_bytes;
	stats->mapped_bytes =
		serve->model->load == YI_LOAD_MMAP ? serve->model->file->file_bytes : 0;
	yi_stop_watch();
	code = yi_scheduler_run(scheduler);
	if (code)
		return no_memory(serve);
	if (scheduler->not_finite && yi_model_check_data(serve->model, &serve->error))
		return -EINVAL;
	code = yi_scheduler_report(scheduler);
	if (code)
		code = yi_error_set(&serve->error, YI_EXIT_TROUBLE, code,
				    "%s: cannot be written: %s", serve->options.stats,
				    strerror(-code));
	errno = EIO;
	if (scheduler->answers && (fflush(scheduler->answers) || ferror(scheduler->answers)))
		code = yi_error_set(&serve->error, YI_EXIT_TROUBLE, -errno,
				    "%s: cannot be written: %s", serve->options.answers,
				    strerror(errno));
	return code;
}

static void release(struct serve *serve)
{
	struct yi_scheduler *scheduler = &serve->scheduler;

	if (scheduler->answers)
		fclose(scheduler->answers);
	yi_scheduler_clear(scheduler);
	yi_forward_free(scheduler->forward);
	yi_workers_free(scheduler->workers);
	yi_kv_pool_free(scheduler->env.kv.pool);
	yi_vocab_free(serve->vocab);
	yi_model_free(serve->model);
}

int yi_serve_main(int argc, char **argv)
{
	struct serve serve = {0};
	int code = yi_options_parse(YI_VERB_SERVE, argc, argv, 2, &serve.options, &serve.error);

	if (code == 0 && serve.options.device == YI_DEVICE_CUDA)
		code = yi_device_open(&serve.error);
	if (code == 0)
		code = load(&serve);
	if (code == 0) {
		/* Whether mapped or read, an engine uploads them in one piece. */
		yi_device_mirror(YI_MEM_WEIGHTS, serve.model->data, serve.model->weight_bytes);
		yi_device_upload(serve.model->data, serve.model->data, serve.model->weight_bytes);
	}
	if (code == 0)
		code = make_requests(&serve);
	if (code == 0)
		code = prepare(&serve);
	if (code == 0)
		code = serve_all(&serve);
	release(&serve);
	code = yi_device_end(code, serve.options.quiet, &serve.error);
	if (code == 0)
		return yi_stop_status();
	fprintf(stderr, "yi-coder-run: %s\n", serve.error.text);
	return serve.error.status ? serve.error.status : YI_EXIT_TROUBLE;
}
