/* SPDX-License-Identifier: MIT */
/*
 * H13 H14: 300 libraries with dynamic thread-local memory, opened and touched from 8 threads that
 * come and go: the loader allocates, grows and frees its vectors through malloc, also for memory
 * it took before malloc was ours. Failure: recursion, a crash in the loader, a lost value.
 */
#include "claim.h"

#include <pthread.h>

enum { LIBRARIES = 300, THREADS = 8 };

static char *(*touch[LIBRARIES])(void);

static void *run(void *which)
{
	unsigned seed = (unsigned)(uintptr_t)which;

	for (int round = 0; round < 3; round++)
		for (unsigned i = 0; i < LIBRARIES; i++) {
			unsigned at = (i * 7 + seed * 31) % LIBRARIES;
			if (!touch[at])
				continue;
			char *here = touch[at]();
			claim(here[0] == 1 && here[2999] == round + 1, "library %u: %d %d", at,
			      here[0], here[2999]);
			free(malloc(i * 20));
		}
	return NULL;
}

int main(void)
{
	void *handle[LIBRARIES];
	pthread_t thread[THREADS];
	char path[64];
	static char image[200000];
	int fd = open(claim_beside("libdynamic_tls.so"), O_RDONLY);
	ssize_t bytes = read(fd, image, sizeof(image));

	close(fd);
	for (int phase = 0; phase < 2; phase++) {
		for (int i = 0; i < LIBRARIES; i++) {
			snprintf(path, sizeof(path), "./tls%d.so", i);
			fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
			claim(write(fd, image, (size_t)bytes) == bytes, "write");
			close(fd);
			handle[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
			unlink(path);
			claim(handle[i], "dlopen: %s", dlerror());
			void *found = handle[i] ? dlsym(handle[i], "tls_touch") : NULL;
			memcpy(&touch[i], &found, sizeof(found));
			if (i % 40 == 39) {
				uintptr_t t = (uintptr_t)i / 40;
				pthread_create(&thread[t % THREADS], NULL, run, (void *)t);
				pthread_join(thread[t % THREADS], NULL);
			}
		}
		for (uintptr_t t = 0; t < THREADS; t++)
			pthread_create(&thread[t], NULL, run, (void *)t);
		for (int t = 0; t < THREADS; t++)
			pthread_join(thread[t], NULL);
		for (int i = 0; i < LIBRARIES; i++) {
			dlclose(handle[i]);
			touch[i] = NULL;
		}
	}
	return claim_end();
}
