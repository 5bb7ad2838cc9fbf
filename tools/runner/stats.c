/* SPDX-License-Identifier: MIT */
/* See stats.h. */
#include "tools/runner/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tools/runner/mem.h"

/*
 * Bins of values in nanoseconds: exact below 128, then 128 bins for each power of two up to 2^50.
 */
#define BIN_BITS 7u
#define BIN_POWERS 44u
#define BINS ((size_t)BIN_POWERS << BIN_BITS)

static size_t bin_of(uint64_t ns)
{
	unsigned power = 0;

	if (ns >= UINT64_C(1) << 50)
		ns = (UINT64_C(1) << 50) - 1;
	while (ns >> power >= 2u << BIN_BITS)
		power++;
	return ns < 1u << BIN_BITS ? (size_t)ns
				   : ((size_t)power << BIN_BITS) + (size_t)(ns >> power);
}

/* Middle of a bin. */
static double bin_value(size_t bin)
{
	size_t power = bin >> BIN_BITS ? (bin >> BIN_BITS) - 1 : 0;

	return ((double)(bin - (power << BIN_BITS)) + .5) * (double)(UINT64_C(1) << power);
}

void yi_samples_add(struct yi_samples *samples, double value)
{
	if (!samples->bins) {
		samples->bins = yi_mem_alloc(YI_MEM_OTHER, BINS * sizeof(*samples->bins));
		if (!samples->bins)
			return;
		memset(samples->bins, 0, BINS * sizeof(*samples->bins));
		samples->min = samples->max = value;
	}
	samples->bins[bin_of(value > 0 ? (uint64_t)(value * 1e6) : 0)]++;
	samples->min = value < samples->min ? value : samples->min;
	samples->max = value > samples->max ? value : samples->max;
	samples->count++;
}

double yi_samples_quantile(const struct yi_samples *samples, double fraction)
{
	uint64_t rank, seen = 0;
	size_t bin = 0;
	double value;

	if (samples->count == 0)
		return 0;
	if (fraction <= 0)
		return samples->min;
	/* Nearest rank: the smallest sample that at least that fraction does not exceed. */
	rank = (uint64_t)(fraction * (double)samples->count + 0.999999);
	if (rank >= samples->count)
		return samples->max;
	while ((seen += samples->bins[bin]) < rank)
		bin++;
	value = bin_value(bin) * 1e-6;
	value = value < samples->min ? samples->min : value;
	return value > samples->max ? samples->max : value;
}

void yi_samples_clear(struct yi_samples *samples)
{
	yi_mem_free(YI_MEM_OTHER, samples->bins);
	memset(samples, 0, sizeof(*samples));
}

double yi_stats_now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double yi_stats_cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

uint64_t yi_stats_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_minflt;
}

/* A "Name:  123 kB" line of /proc/self/status in bytes; 0 if there is none.  (getrusage's largest
 * RSS is also that of the process this one was forked from.) */
static uint64_t status_bytes(const char *name)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t kib = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
			kib = strtoull(line + strlen(name) + 1, NULL, 10);
	fclose(file);
	return kib * 1024;
}

static double cpu_s(const struct rusage *usage)
{
	return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
	       (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1e-6;
}

static void write_quantiles(FILE *out, const char *name, const struct yi_samples *samples)
{
	fprintf(out,
		"  \"%s\": {\"min\": %.3f, \"p50\": %.3f, \"p90\": %.3f, \"p99\": %.3f, \"p999\": %.3f, "
		"\"max\": %.3f},\n",
		name, yi_samples_quantile(samples, 0), yi_samples_quantile(samples, .5),
		yi_samples_quantile(samples, .9), yi_samples_quantile(samples, .99),
		yi_samples_quantile(samples, .999), yi_samples_quantile(samples, 1));
}

static void write_memory(FILE *out)
{
	fputs("  \"memory\": {", out);
	for (int i = 0; i < YI_MEM_CLASSES; i++) {
		struct yi_mem_count count;

		yi_mem_read((enum yi_mem_class)i, &count);
		fprintf(out,
			"%s\n    \"%s\": {\"live_bytes\": %llu, \"peak_bytes\": %llu, "
			"\"blocks\": %llu, \"allocs\": %llu, \"frees\": %llu, \"refused\": %llu}",
			i ? "," : "", yi_mem_class_name((enum yi_mem_class)i),
			(unsigned long long)count.live_bytes, (unsigned long long)count.peak_bytes,
			(unsigned long long)count.blocks, (unsigned long long)count.allocs,
			(unsigned long long)count.frees, (unsigned long long)count.refused);
	}
	fputs("\n  }", out);
}

static double per_second(uint64_t tokens, double seconds)
{
	return seconds > 0 ? (double)tokens / seconds : 0;
}

int yi_stats_write(struct yi_stats *stats, const char *path, void (*more)(FILE *, void *),
		   void *arg)
{
	struct rusage usage;
	FILE *out = strcmp(path, "-") ? fopen(path, "we") : stdout;
	int failed;

	if (!out)
		return -errno;
	getrusage(RUSAGE_SELF, &usage);
	fprintf(out,
		"{\n  \"prompt_tokens\": %llu,\n  \"generated_tokens\": %llu,\n"
		"  \"prefill_tokens_per_s\": %.3f,\n  \"decode_tokens_per_s\": %.3f,\n",
		(unsigned long long)stats->prompt_tokens,
		(unsigned long long)stats->generated_tokens,
		per_second(stats->prompt_tokens, stats->prefill_s),
		per_second(stats->generated_tokens, stats->decode_s));
	write_quantiles(out, "latency_ms", &stats->latency_ms);
	write_quantiles(out, "first_token_ms", &stats->first_token_ms);
	write_quantiles(out, "token_cpu_ms", &stats->token_cpu_ms);
	fprintf(out,
		"  \"peak_rss_bytes\": %llu,\n  \"peak_vsz_bytes\": %llu,\n"
		"  \"minor_faults\": %ld,\n  \"major_faults\": %ld,\n  \"cpu_s\": %.3f,\n"
		"  \"start_minor_faults\": %llu,\n  \"warm_tokens\": %llu,\n"
		"  \"warm_minor_faults\": %llu,\n",
		(unsigned long long)status_bytes("VmHWM"),
		(unsigned long long)status_bytes("VmPeak"), usage.ru_minflt, usage.ru_majflt,
		cpu_s(&usage), (unsigned long long)stats->start_faults,
		(unsigned long long)stats->warm_tokens, (unsigned long long)stats->warm_faults);
	fprintf(out,
		"  \"sessions\": {\"started\": %llu, \"finished\": %llu, \"failed\": %llu},\n"
		"  \"kv_bytes_per_token\": %llu,\n  \"weight_bytes\": %llu,\n"
		"  \"mapped_bytes\": %llu,\n  \"steps\": %llu,\n  \"peak_live_bytes\": %llu,\n",
		(unsigned long long)stats->sessions_started,
		(unsigned long long)stats->sessions_finished,
		(unsigned long long)stats->sessions_failed,
		(unsigned long long)stats->kv_bytes_per_token,
		(unsigned long long)stats->weight_bytes, (unsigned long long)stats->mapped_bytes,
		(unsigned long long)stats->steps, (unsigned long long)yi_mem_peak_bytes());
	write_memory(out);
	yi_tiers_write(&stats->tiers, out);
	if (more) {
		fputs(",\n", out);
		more(out, arg);
	}
	fputs("\n}\n", out);
	/* Any of the writes may have failed; its errno may be lost. */
	errno = EIO;
	failed = fflush(out) || ferror(out) ? -errno : 0;
	if (out != stdout && fclose(out) && !failed)
		failed = -errno;
	return failed;
}

static void print_memory(const struct yi_stats *stats, FILE *out)
{
	fprintf(out, "%-12s %-11s %12s %12s %10s %10s %12s\n", "memory", "tier", "live MiB",
		"peak MiB", "blocks", "allocs", "allocs/token");
	for (int i = 0; i < YI_MEM_CLASSES; i++) {
		struct yi_mem_count count;
		uint64_t tokens = stats->prompt_tokens + stats->generated_tokens;

		yi_mem_read((enum yi_mem_class)i, &count);
		fprintf(out, "%-12s %-11s %12.2f %12.2f %10llu %10llu %12.2f\n",
			yi_mem_class_name((enum yi_mem_class)i),
			yi_tiers_name(yi_tiers_of_class(i)), (double)count.live_bytes / 1048576,
			(double)count.peak_bytes / 1048576, (unsigned long long)count.blocks,
			(unsigned long long)count.allocs,
			tokens ? (double)count.allocs / (double)tokens : 0);
	}
	if (stats->mapped_bytes)
		fprintf(out, "%-12s %-11s %12.2f\n", "weights", "(mapped)",
			(double)stats->mapped_bytes / 1048576);
}

void yi_stats_print(struct yi_stats *stats, FILE *out)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	fprintf(out, "prefill      %10llu tokens %10.2f tokens/s\n",
		(unsigned long long)stats->prompt_tokens,
		per_second(stats->prompt_tokens, stats->prefill_s));
	fprintf(out, "decode       %10llu tokens %10.2f tokens/s\n",
		(unsigned long long)stats->generated_tokens,
		per_second(stats->generated_tokens, stats->decode_s));
	fprintf(out, "latency ms   p50 %.2f  p90 %.2f  p99 %.2f  p99.9 %.2f  max %.2f\n",
		yi_samples_quantile(&stats->latency_ms, .5),
		yi_samples_quantile(&stats->latency_ms, .9),
		yi_samples_quantile(&stats->latency_ms, .99),
		yi_samples_quantile(&stats->latency_ms, .999),
		yi_samples_quantile(&stats->latency_ms, 1));
	fprintf(out, "first token  p50 %.2f  p99 %.2f  max %.2f ms\n",
		yi_samples_quantile(&stats->first_token_ms, .5),
		yi_samples_quantile(&stats->first_token_ms, .99),
		yi_samples_quantile(&stats->first_token_ms, 1));
	fprintf(out,
		"process      RSS %.1f MiB, VSZ %.1f MiB, faults %ld minor %ld major, "
		"CPU %.2f s\n",
		(double)status_bytes("VmHWM") / 1048576, (double)status_bytes("VmPeak") / 1048576,
		usage.ru_minflt, usage.ru_majflt, cpu_s(&usage));
	print_memory(stats, out);
	yi_tiers_print(&stats->tiers, out);
}

void yi_stats_clear(struct yi_stats *stats)
{
	yi_samples_clear(&stats->latency_ms);
	yi_samples_clear(&stats->first_token_ms);
	yi_samples_clear(&stats->token_cpu_ms);
	memset(stats, 0, sizeof(*stats));
}
