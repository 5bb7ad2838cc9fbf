/* SPDX-License-Identifier: MIT */
/*
 * modes: one program, every way in which the library can treat CUDA memory. The program starts
 * itself again under the library for each mode and hands the mode's name to its body. Header lines of such a
 * program say `preload: none`: this does the preloading.
 */
#ifndef TM_TEST_CUDA_MODES_H
#define TM_TEST_CUDA_MODES_H

#include "config.h"
#include "tests/cuda/claim.h"

enum {
	MODE_BARE = 1, /* without the library */
	MODE_OFF = 2,  /* TIERMALLOC_CUDA=off */
	MODE_OBSERVE = 4,
	MODE_AUTO = 8,
	MODE_CACHE = 16,
	MODE_SLAB = 32,
	MODE_VMM = 64,
	MODE_EVENT = 128, /* the pools among them by event too */
	MODES_POOL = MODE_CACHE | MODE_SLAB | MODE_VMM,
	MODES_ALL = 255
};

static const struct {
	int bit;
	const char *name, *cuda, *pool;
} modes_table[] = {
	{MODE_BARE, "bare", NULL, NULL},
	{MODE_OFF, "off", "off", "auto"},
	{MODE_OBSERVE, "observe", "observe", "auto"},
	{MODE_AUTO, "auto", "pool", "auto"},
	{MODE_CACHE, "cache", "pool", "cache"},
	{MODE_SLAB, "slab", "pool", "slab"},
	{MODE_VMM, "vmm", "pool", "vmm"},
};

/* Is the mode at hand one of the pools, and which? */
__attribute__((unused)) static bool modes_is(const char *mode, const char *pool)
{
	return strncmp(mode, pool, strlen(pool)) == 0;
}

static void modes_one(const char *name, bool bare, const char *sync)
{
	struct claim_output out;
	char full[64];
	const char *only = getenv("TM_MODE");
	snprintf(full, sizeof(full), "%s%s", name, sync);
	if (only != NULL && strcmp(only, full) != 0)
		return;
	setenv("TIERMALLOC_CUDA_FREE_SYNC", *sync ? "event" : "strict", 1);
	int status = claim_again(bare ? "" : getenv("TM_LIB"), full, &out);
	printf("%s", out.text);
	fflush(stdout);
	claim(status == 0, "%s: status %d", full, status);
}

/*
 * Runs the body in every mode of the set. TM_MODE=slab-event: in that one only. Without hooks in
 * the library only the modes without them.
 */
__attribute__((unused)) static int modes_run(int argc, char **argv, void (*body)(const char *mode),
					     int set)
{
	size_t i;
	if (argc > 1) {
		body(argv[1]);
		return claim_end();
	}
	if (!TM_HAVE_CUDA && !(set & (MODE_BARE | MODE_OFF)))
		return claim_skip("built without the CUDA hooks");
	for (i = 0; i < sizeof(modes_table) / sizeof(modes_table[0]); i++) {
		if (!(set & modes_table[i].bit) || (!TM_HAVE_CUDA && i > 1))
			continue;
		setenv("TIERMALLOC_CUDA", modes_table[i].cuda ? modes_table[i].cuda : "", 1);
		setenv("TIERMALLOC_CUDA_POOL", modes_table[i].pool ? modes_table[i].pool : "auto",
		       1);
		if (modes_table[i].cuda == NULL)
			unsetenv("TIERMALLOC_CUDA");
		modes_one(modes_table[i].name, modes_table[i].bit == MODE_BARE, "");
		if ((set & MODE_EVENT) && i >= 3)
			modes_one(modes_table[i].name, false, "-event");
	}
	return claim_end();
}

#endif
