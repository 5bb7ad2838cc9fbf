/* SPDX-License-Identifier: MIT */
/* build: -static */
/*
 * H23: a statically linked program is started with us in LD_PRELOAD; nothing of ours is in it,
 * and it starts a dynamic one, which has us. Failure: noise on stderr or a crash.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	for (int i = 0; i < 10000; i++)
		free(memset(malloc((size_t)i + 1), 1, (size_t)i + 1));
	fflush(stdout);
	int ends[2], status;
	char text[4096];
	if (pipe(ends))
		return 1;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], 1);
		execlp("cat", "cat", "/proc/self/maps", (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	int found = 0;
	FILE *f = fdopen(ends[0], "r");
	const char *list = getenv("LD_PRELOAD");
	while (fgets(text, sizeof(text), f))
		if (list && *list && strstr(text, list))
			found = 1;
	waitpid(pid, &status, 0);
	return status || (list && *list && !found);
}
