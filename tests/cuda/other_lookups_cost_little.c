/* SPDX-License-Identifier: MIT */
/*
 * dlsym and dlopen of what is no name of the tables are jumps: they allocate nothing and add little. The
 * least of seven turns; times are printed, and judged only by a bound that no jump comes near.
 */
/* preload: none */
#include "config.h"
#include "tests/preload/claim.h"

#define CALLS 20000

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct stats {
	uint64_t struct_bytes, live[4], slot[4], cached[4], resident, peak, sessions;
};

/* Live bytes as the library counts them; 0 without it. */
static uint64_t live_bytes(void)
{
	int (*get)(struct stats *);
	struct stats s = {.struct_bytes = sizeof(s)};
	void *fn = dlsym(RTLD_DEFAULT, "tiermalloc_stats");
	memcpy(&get, &fn, sizeof(fn));
	return fn != NULL && get(&s) == 0 ? s.live[0] : 0;
}

static uint64_t least(void *handle, const char *name, bool open)
{
	uint64_t best = UINT64_MAX, took;
	int turn, i;
	for (turn = 0; turn < 7; turn++) {
		took = now_ns();
		for (i = 0; i < CALLS; i++)
			if (open ? dlopen(name, RTLD_NOW | RTLD_NOLOAD) == NULL
				 : dlsym(handle, name) == NULL)
				exit(2);
		took = (now_ns() - took) / CALLS;
		best = took < best ? took : best;
	}
	return best;
}

static int part(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	uint64_t before, by_handle, by_default, cuda_like, opened;
	least(libc, "strtol", false);
	before = live_bytes();
	by_handle = least(libc, "strtol", false);
	by_default = least(RTLD_DEFAULT, "strtol", false);
	cuda_like = least(libc, "cuserid", false);
	opened = least(NULL, "libc.so.6", true);
	claim(live_bytes() == before, "lookups hold %lld bytes",
	      (long long)(live_bytes() - before));
	printf("%llu %llu %llu %llu\n", (unsigned long long)by_handle,
	       (unsigned long long)by_default, (unsigned long long)cuda_like,
	       (unsigned long long)opened);
	return claim_end();
}

int main(int argc, char **argv)
{
	static const char *const what[] = {"dlsym of a handle", "dlsym of RTLD_DEFAULT",
					   "a name with cu", "dlopen"};
	long long least_ns[2][4] = {{1 << 30, 1 << 30, 1 << 30, 1 << 30},
				    {1 << 30, 1 << 30, 1 << 30, 1 << 30}};
	int turn, m, i;
	(void)argv;
	if (argc > 1)
		return part();
	for (turn = 0; turn < 3; turn++)
		for (m = 0; m < 2; m++) {
			struct claim_output out;
			long long ns[4];
			int status = claim_again(m ? getenv("TM_LIB") : "", "part", &out, 30);
			claim(status == 0 && sscanf(out.text, "%lld %lld %lld %lld", &ns[0], &ns[1],
						    &ns[2], &ns[3]) == 4,
			      "%d %s", status, out.text);
			for (i = 0; i < 4 && status == 0; i++)
				least_ns[m][i] = ns[i] < least_ns[m][i] ? ns[i] : least_ns[m][i];
		}
	for (i = 0; i < 4; i++) {
		printf("%s: %lld ns, with the library %+lld\n", what[i], least_ns[0][i],
		       least_ns[1][i] - least_ns[0][i]);
		claim(least_ns[1][i] < least_ns[0][i] + 1000, "%s", what[i]);
	}
	return claim_end();
}
