/* SPDX-License-Identifier: MIT */
/*
 * H09 H85: LD_PRELOAD names a tracer over RTLD_NEXT and another allocator beside us, in every
 * order, with three and more entries, blanks and colons. Failure: a crash, endless recursion
 * between the two, or the process not starting.
 */
#include "claim.h"

static const char *rivals[] = {"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
			       "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2",
			       "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4"};

static int child(void)
{
	static char *block[2000];
	void *h = dlopen("libm.so.6", RTLD_NOW);

	for (size_t i = 0; i < 2000; i++)
		block[i] = i % 3 ? malloc(i * 10 + 1) : calloc(i + 1, 9);
	for (size_t i = 0; i < 2000; i++) {
		block[i] = realloc(block[i], i * 15 + 2);
		block[i][i * 15] = 1;
		free(block[i]);
	}
	free(strdup("x"));
	free(realpath("/proc/self/exe", NULL));
	dlclose(h);
	return claim_end();
}

static void under(const char *list)
{
	static struct claim_output out;
	int status = claim_again(list, "child", &out);
	char *ls[] = {(char[]){"ls"}, (char[]){"/"}, NULL};

	claim(status == 0, "'%s': %d, %.200s", list, status, out.text);
	status = claim_run(list, ls, &out);
	claim(status == 0 && strstr(out.text, "proc"), "ls under '%s': %d, %.200s", list, status,
	      out.text);
}

int main(int argc, char **argv)
{
	const char *ours = claim_preload(), *trace = claim_beside("libtrace_next.so");
	char list[5 * PATH_MAX];

	(void)argv;
	if (argc > 1)
		return child();
	under(claim_join(trace, ours));
	under(claim_join(ours, trace));
	for (int i = 0; *ours && i < 3; i++) {
		if (access(rivals[i], R_OK))
			continue;
		under(claim_join(ours, rivals[i]));
		under(claim_join(rivals[i], ours));
		snprintf(list, sizeof(list), "%s %s:%s", ours, rivals[i], trace);
		under(list);
		snprintf(list, sizeof(list), "%s:%s %s", trace, ours, rivals[i]);
		under(list);
		snprintf(list, sizeof(list), "%s: %s:%s", rivals[i], trace, ours);
		under(list);
	}
	return claim_end();
}
