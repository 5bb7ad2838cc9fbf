/* SPDX-License-Identifier: MIT */
/* Output of a load: a progress line on a terminal, answers as JSON lines, the final table. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/runner/json.h"
#include "tools/runner/mem.h"
#include "tools/runner/scheduler.h"

#define PROGRESS_S .2

static double resident_mib(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*u %lu", &pages) != 1)
		pages = 0;
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

void yi_scheduler_progress(struct yi_scheduler *scheduler, double now_s)
{
	const struct yi_stats *stats = &scheduler->stats;
	struct winsize size;
	char line[160];
	int width;

	if (now_s - scheduler->progress_s < PROGRESS_S)
		return;
	scheduler->progress_s = now_s;
	width = ioctl(fileno(scheduler->progress), TIOCGWINSZ, &size) == 0 && size.ws_col > 1
			? size.ws_col - 1
			: 79;
	snprintf(line, sizeof(line),
		 "sessions %llu/%zu, %u running, %u parked, %llu failed, %.0f tokens/s, %.0f MiB",
		 (unsigned long long)(stats->sessions_finished + stats->sessions_failed),
		 scheduler->requests.count, scheduler->n_running, scheduler->n_parked,
		 (unsigned long long)stats->sessions_failed,
		 (double)(stats->prompt_tokens + stats->generated_tokens) /
			 (now_s - scheduler->start_s),
		 resident_mib());
	fprintf(scheduler->progress, "\r%.*s\x1b[K", width, line);
	fflush(scheduler->progress);
}

void yi_scheduler_write_answer(struct yi_scheduler *scheduler, const struct yi_session *session)
{
	FILE *out = scheduler->answers;

	fputs("{\"session\": ", out);
	yi_json_print(out, session->request->session, strlen(session->request->session));
	fprintf(out, ", \"generated\": %u, \"text\": ", session->generated);
	yi_json_print(out, session->answer ? session->answer : "", session->answer_bytes);
	/* A shift drops tokens of the answer too; then the list would be misleading. */
	if (!session->dropped) {
		fputs(", \"tokens\": [", out);
		for (size_t i = session->n_prompt; i < session->ids.count; i++)
			fprintf(out, "%s%u", i > session->n_prompt ? ", " : "",
				session->ids.ids[i]);
		fputc(']', out);
	}
	if (session->why)
		fprintf(out, ", \"failed\": \"%s\"", session->why);
	fputs("}\n", out);
}

static double faults_per_token(const struct yi_scheduler *scheduler)
{
	return scheduler->warm_tokens
		       ? (double)scheduler->warm_faults / (double)scheduler->warm_tokens
		       : 0;
}

static void write_more(FILE *out, void *arg)
{
	const struct yi_scheduler *scheduler = arg;
	const struct yi_options *options = scheduler->env.options;

	fprintf(out,
		"  \"serve\": {\n    \"concurrency\": %u,\n    \"batch\": %u,\n"
		"    \"seconds\": %.3f,\n    \"waits\": %llu,\n    \"parks\": %llu,\n"
		"    \"context_shifts\": %llu,\n    \"prefix_hits\": %llu,\n"
		"    \"shared_tokens\": %llu,\n    \"pooled_bytes\": %llu,\n"
		"    \"memory_limit_bytes\": %llu,\n    \"warm_tokens\": %llu,\n"
		"    \"warm_minor_faults\": %llu\n  }",
		options->concurrency, options->batch, yi_stats_now_s() - scheduler->start_s,
		(unsigned long long)scheduler->waits, (unsigned long long)scheduler->parks,
		(unsigned long long)scheduler->shifts, (unsigned long long)scheduler->prefix_hits,
		(unsigned long long)scheduler->shared_tokens,
		(unsigned long long)(scheduler->env.kv.pool
					     ? yi_kv_pool_bytes(scheduler->env.kv.pool)
					     : 0),
		(unsigned long long)options->memory_limit,
		(unsigned long long)scheduler->warm_tokens,
		(unsigned long long)scheduler->warm_faults);
}

int yi_scheduler_report(struct yi_scheduler *scheduler)
{
	struct yi_stats *stats = &scheduler->stats;
	const struct yi_options *options = scheduler->env.options;

	if (scheduler->progress)
		fputs("\r\x1b[K", scheduler->progress);
	if (!options->quiet) {
		fprintf(stderr,
			"sessions     %10llu finished %llu failed, %llu waits, %llu parked, "
			"%llu on a shared prompt, %llu shifted\n",
			(unsigned long long)stats->sessions_finished,
			(unsigned long long)stats->sessions_failed,
			(unsigned long long)scheduler->waits, (unsigned long long)scheduler->parks,
			(unsigned long long)scheduler->prefix_hits,
			(unsigned long long)scheduler->shifts);
		fprintf(stderr, "warm         %10llu tokens %10.4f faults/token\n",
			(unsigned long long)scheduler->warm_tokens, faults_per_token(scheduler));
		yi_stats_print(stats, stderr);
	}
	return options->stats ? yi_stats_write(stats, options->stats, write_more, scheduler) : 0;
}
