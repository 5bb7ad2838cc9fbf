/* SPDX-License-Identifier: MIT */
/*
 * dlsym and dlopen of what is no name of the tables are jumps: they allocate nothing. What they cost is
 * counted by other_lookups_take_few_instructions.
 */
#include "config.h"
#include "tests/preload/claim.h"

#define CALLS 20000

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

static void look_up(void *handle, const char *name, bool open)
{
	for (int i = 0; i < CALLS; i++)
		if (open ? dlopen(name, RTLD_NOW | RTLD_NOLOAD) == NULL
			 : dlsym(handle, name) == NULL)
			exit(2);
}

int main(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	uint64_t before;

	look_up(libc, "strtol", false);
	before = live_bytes();
	claim(before > 0, "no figures");
	look_up(libc, "strtol", false);
	look_up(RTLD_DEFAULT, "strtol", false);
	look_up(libc, "cuserid", false);
	look_up(NULL, "libc.so.6", true);
	claim(live_bytes() == before, "lookups hold %lld bytes",
	      (long long)(live_bytes() - before));
	return claim_end();
}
