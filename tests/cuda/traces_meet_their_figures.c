/* SPDX-License-Identifier: MIT */
/*
 * Traces of allocations replayed on each pool, with what the driver's calls cost on the virtual clock:
 *   kv    1000 sessions at a time, context lengths lognormal, 16 KiB a token, in whole
 *         pages as frameworks' segments are
 *   mix   4 KiB to 512 MiB, log-uniform, 450 at a time
 *   grow  a buffer that grows by a little, the old one freed after the new one came
 * once with room, for fragmentation (1 - peak live / peak reserved), hits and driver calls, and once
 * on a device of 1.15 x the peak, where nothing may fail and what cuts memory hits as often. What slabs make of mix depends on when the few
 * largest blocks meet, so kv and mix are replayed on slabs with other seeds as well: each has the hits and
 * calls, nine of ten have the fragmentation. Times of hits that the driver had no part in are printed, not
 * judged; what reading the clock costs is taken off them. TM_TIMES=FILE: of a replay with room also what the
 * clock took and, for each allocation, 1 more than its time, 0 where it was no such hit (tests/bench/cuda.py).
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

#include <math.h>

#define STEPS 15000
#define SLOTS 1000

struct step {
	int slot;
	size_t bytes;
};

static struct step steps[STEPS];
static uint64_t state;

static double uniform(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (double)(state >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform() + 1e-12)) * cos(6.283185307179586 * uniform());
}

/* Fills steps; returns the peak of live bytes in whole pages of the device. */
static size_t generate(const char *trace)
{
	size_t live[SLOTS] = {0}, sum = 0, peak = 0;
	int i, slots = strcmp(trace, "kv") == 0 ? 1000 : strcmp(trace, "mix") == 0 ? 450 : 2;
	state = getenv("TM_SEED") ? strtoull(getenv("TM_SEED"), NULL, 10) : 42;
	for (i = 0; i < STEPS; i++) {
		double tokens;
		steps[i].slot = slots == 2 ? i % 2 : (int)(uniform() * slots);
		if (slots == 1000) {
			tokens = exp(6.9 + 0.9 * normal());
			tokens = tokens < 16 ? 16 : tokens > 16384 ? 16384 : tokens;
			steps[i].bytes = ((size_t)tokens * 16384 + 2 * MIB - 1) & ~(2 * MIB - 1);
		} else if (slots == 450) {
			steps[i].bytes =
				(size_t)exp(log(4096) + uniform() * log(131072)) & ~(size_t)511;
		} else {
			steps[i].bytes = 16 * MIB + (size_t)i * 4096;
		}
		sum -= live[steps[i].slot];
		live[steps[i].slot] = (steps[i].bytes + 2 * MIB - 1) & ~(2 * MIB - 1);
		sum += live[steps[i].slot];
		peak = sum > peak ? sum : peak;
	}
	return peak;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct outcome {
	size_t peak, hits, hit_count, failures;
	uint64_t calls, device_ns, clock_ns;
	uint32_t step_ns[STEPS]; /* 0: no hit, else 1 more than it took */
	uint32_t hit_ns[STEPS];
};

/* What lies between two readings of the clock. */
static uint64_t clock_ns(void)
{
	uint32_t took[1001];
	int i;
	for (i = 0; i < 1001; i++) {
		uint64_t before = now_ns();
		took[i] = (uint32_t)(now_ns() - before);
	}
	qsort(took, 1001, sizeof(uint32_t), by_value);
	return took[500];
}

static void replay(struct outcome *o)
{
	CUdeviceptr at[SLOTS] = {0};
	size_t live[SLOTS] = {0}, sum = 0;
	uint64_t start, before, took, growth, calls, clock = clock_ns();
	int i;
	memset(o, 0, sizeof(*o));
	o->clock_ns = clock;
	for (i = 0; i < STEPS; i++) {
		const struct step *s = &steps[i];
		if (at[s->slot] != 0) {
			start = tmfake_now();
			ok(cuMemFree_v2(at[s->slot]));
			o->device_ns += tmfake_now() - start;
			sum -= live[s->slot];
			at[s->slot] = 0;
		}
		growth = tmfake_calls("cuMemAlloc_v2") + tmfake_calls("cuMemCreate");
		calls = tmfake_memory_calls();
		start = tmfake_now();
		before = now_ns();
		CUresult rc = cuMemAlloc_v2(&at[s->slot], s->bytes);
		took = now_ns() - before;
		took -= took < clock ? took : clock;
		o->device_ns += tmfake_now() - start;
		if (rc != CUDA_SUCCESS) {
			o->failures++;
			at[s->slot] = 0;
			continue;
		}
		if (growth == tmfake_calls("cuMemAlloc_v2") + tmfake_calls("cuMemCreate")) {
			o->hits++;
			/* What chunks are mapped for anew takes no new memory, but the driver's time. */
			if (calls == tmfake_memory_calls()) {
				o->hit_ns[o->hit_count++] = (uint32_t)took;
				o->step_ns[i] = (uint32_t)took + 1;
			}
		}
		live[s->slot] = s->bytes;
		sum += s->bytes;
		o->peak = sum > o->peak ? sum : o->peak;
		ok(tmfake_fill(NULL, at[s->slot], 1, 16, 20000));
		tmfake_advance(200000);
	}
	o->calls = tmfake_memory_calls();
	qsort(o->hit_ns, o->hit_count, sizeof(uint32_t), by_value);
}

static void write_times(const struct outcome *o, const char *path)
{
	FILE *f = fopen(path, "we");
	int i;
	claim(f != NULL && fprintf(f, "%u\n", (unsigned)o->clock_ns) > 0);
	for (i = 0; f != NULL && i < STEPS; i++)
		fprintf(f, "%u\n", o->step_ns[i]);
	if (f != NULL)
		fclose(f);
}

static void body(const char *mode)
{
	static struct outcome o;
	const char *trace = getenv("TM_TRACE");
	bool tight = getenv("TM_TIGHT") != NULL;
	double frag, hits, calls;
	generate(trace);
	claim_context();
	replay(&o);
	frag = 100 * (1 - (double)o.peak / (double)tmfake_peak(0));
	hits = 100.0 * (double)o.hits / STEPS;
	calls = 100.0 * (double)o.calls / STEPS;
	printf("%-4s %-12s %s frag %5.1f %%  hits %6.2f %%  driver calls %7.2f %%  failures %zu  hit p50 %u ns p99 %u "
	       "ns  driver time %.0f ms\n",
	       trace, mode, tight ? "1.15x" : "room ", frag, hits, calls, o.failures,
	       o.hit_count ? o.hit_ns[o.hit_count / 2] : 0,
	       o.hit_count ? o.hit_ns[o.hit_count * 99 / 100] : 0, (double)o.device_ns / 1e6);
	claim(o.failures == 0, "%s %s: %zu failures", trace, mode, o.failures);
	claim(tmfake_misuse() == 0);
	if (!tight && getenv("TM_TIMES") != NULL)
		write_times(&o, getenv("TM_TIMES"));
	/* A budget that goes by the device's size is less than one block of grow there. */
	if (tight && (modes_is(mode, "slab") || strcmp(trace, "grow") == 0))
		claim(modes_is(mode, "cache") || hits >= 98,
		      "%s %s on a small device: hits %.2f %%", trace, mode, hits);
	if (tight && modes_is(mode, "vmm") && strcmp(trace, "grow") == 0)
		claim(calls <= 50, "%s %s on a small device: driver calls %.0f %%", trace, mode,
		      calls);
	/* By event memory waits for the device before it is used again: the figures are for strict. */
	if (tight || modes_is(mode, "bare") || modes_is(mode, "auto") ||
	    strstr(mode, "-event") != NULL)
		return;
	if (strcmp(trace, "grow") == 0) {
		claim(frag <= 50, "%s: %.1f %%", mode, frag);
		return;
	}
	if (modes_is(mode, "slab")) {
		claim(frag <= (getenv("TM_SEED") ? 18 : 16), "%s %s: fragmentation %.1f %%", trace,
		      mode, frag);
		claim(hits >= 99, "%s %s: hits %.2f %%", trace, mode, hits);
		claim(calls <= 1, "%s %s: driver calls %.2f %%", trace, mode, calls);
	}
	if (modes_is(mode, "vmm"))
		claim(frag <= 3, "%s %s: fragmentation %.1f %%", trace, mode, frag);
	/* Twice as many with small chunks alone. */
	if (modes_is(mode, "vmm") && strcmp(trace, "mix") == 0)
		claim(calls <= 1500, "%s %s: driver calls %.0f %%", trace, mode, calls);
	if (modes_is(mode, "cache"))
		claim(frag <= 18, "%s %s: more than its idle budget, %.1f %%", trace, mode, frag);
}

static void other_seeds(const char *trace, unsigned count)
{
	double sum = 0, most = 0;
	unsigned seed, over = 0;
	char number[16];
	unsetenv("TM_TIGHT");
	setenv("TM_TRACE", trace, 1);
	setenv("TMFAKE_CAPACITY", "400G", 1);
	setenv("TIERMALLOC_CUDA", "pool", 1);
	setenv("TIERMALLOC_CUDA_POOL", "slab", 1);
	setenv("TIERMALLOC_CUDA_FREE_SYNC", "strict", 1);
	for (seed = 1; seed <= count; seed++) {
		struct claim_output out;
		const char *at;
		double frag = 100;
		int status;
		snprintf(number, sizeof(number), "%u", seed);
		setenv("TM_SEED", number, 1);
		status = claim_again(getenv("TM_LIB"), "slab", &out);
		at = strstr(out.text, "frag");
		claim(status == 0 && at != NULL && sscanf(at, "frag %lf", &frag) == 1,
		      "seed %u: %d %s", seed, status, out.text);
		sum += frag;
		most = frag > most ? frag : most;
		over += frag > 16;
	}
	unsetenv("TM_SEED");
	printf("%-4s slab, %u other seeds: fragmentation %.1f %% on average, %.1f at most, %u above 16 %%\n",
	       trace, count, sum / count, most, over);
	claim(sum / count <= 14 && over * 10 <= count);
}

int main(int argc, char **argv)
{
	static const char *const traces[] = {"kv", "mix", "grow"};
	char text[32];
	size_t t, peak;
	if (argc > 1)
		return modes_run(argc, argv, body, 0);
	for (t = 0; t < 3; t++) {
		peak = generate(traces[t]);
		setenv("TM_TRACE", traces[t], 1);
		unsetenv("TM_TIGHT");
		setenv("TMFAKE_CAPACITY", "400G", 1);
		modes_run(argc, argv, body, MODE_BARE | MODE_AUTO | MODES_POOL | MODE_EVENT);
		setenv("TM_TIGHT", "1", 1);
		snprintf(text, sizeof(text), "%zu", (peak + peak / 100 * 15) & ~(2 * MIB - 1));
		setenv("TMFAKE_CAPACITY", text, 1);
		modes_run(argc, argv, body, MODE_AUTO | MODES_POOL);
	}
	if (TM_HAVE_CUDA) {
		other_seeds("kv", getenv("TM_LONG") ? 100 : 10);
		other_seeds("mix", getenv("TM_LONG") ? 100 : 20);
	}
	return claim_end();
}
