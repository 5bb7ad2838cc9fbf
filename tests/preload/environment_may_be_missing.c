/* SPDX-License-Identifier: MIT */
/*
 * H04, log 8: a process may have no environment but LD_PRELOAD, or lose it while it runs, and
 * argv may be empty of meaning. Failure: a crash on a NULL environ (heaptrace#18).
 */
#include "claim.h"

static void run(const char *what, char *const env[], char *const argv[])
{
	static struct claim_output out;
	int status = claim_run_env(env, argv, &out);

	claim(status == 0, "%s: %s: status %d, %.200s", what, argv[0], status, out.text);
}

int main(int argc, char **argv)
{
	static char list[4 * PATH_MAX], self[PATH_MAX];

	if (argc > 1) {
		free(malloc(10));
		clearenv();
		for (int i = 0; i < 2000; i++)
			free(malloc((size_t)i * 100));
		environ = NULL;
		for (int i = 0; i < 2000; i++)
			free(malloc((size_t)i * 100));
		setenv("TM_TEST", "value", 1);
		return strcmp(getenv("TM_TEST"), "value") != 0;
	}
	snprintf(list, sizeof(list), "LD_PRELOAD=%s", claim_preload());
	snprintf(self, sizeof(self), "%s", claim_beside(strrchr(argv[0], '/') + 1));
	char *only[] = {list, NULL}, *odd[] = {(char[]){"="},
					       (char[]){""},
					       (char[]){"TIERMALLOC"},
					       (char[]){"TIERMALLOC_CONF="},
					       (char[]){"TIERMALLOC="},
					       (char[]){"=x=y"},
					       list,
					       NULL};
	char *none[] = {NULL};
	char *truth[] = {(char[]){"/bin/true"}, NULL};
	char *child[] = {self, (char[]){"child"}, NULL}, *bare[] = {self, (char[]){""}, NULL};
	run("LD_PRELOAD alone", only, truth);
	run("LD_PRELOAD alone", only, child);
	run("LD_PRELOAD alone", only, bare);
	run("odd entries", odd, truth);
	run("odd entries", odd, child);
	run("nothing", none, child);
	return claim_end();
}
