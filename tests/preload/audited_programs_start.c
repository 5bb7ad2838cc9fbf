/* SPDX-License-Identifier: MIT */
/*
 * H12: LD_AUDIT and LD_PRELOAD together: the auditor has its own namespace and the start is
 * earlier and odder than usual (jemalloc#2472 crashed on its first lock). Failure: a crash, or
 * static thread-local memory exhausted.
 */
#include "claim.h"

#include <pthread.h>

static void *work(void *unused)
{
	for (int i = 0; i < 20000; i++)
		free(malloc((size_t)i));
	return unused;
}

int main(int argc, char **argv)
{
	static struct claim_output out;
	pthread_t thread;
	char *ls[] = {(char[]){"ls"}, (char[]){"/"}, NULL};

	(void)argv;
	if (argc > 1) {
		pthread_create(&thread, NULL, work, NULL);
		work(NULL);
		pthread_join(thread, NULL);
		void *h = dlopen("libtls_512.so", RTLD_NOW);
		claim(h, "dlopen: %s", dlerror());
		free(strdup("x"));
		return claim_end();
	}
	setenv("LD_AUDIT", claim_beside("libaudit.so"), 1);
	int status = claim_run(claim_preload(), ls, &out);
	claim(status == 0 && strstr(out.text, "proc"), "ls: %d, %.300s", status, out.text);
	status = claim_again(claim_preload(), "child", &out);
	claim(status == 0, "child: %d, %.300s", status, out.text);
	return claim_end();
}
