/* SPDX-License-Identifier: MIT */
/*
 * H83: with glibc's restartable sequences switched off, threads register their own; the library
 * neither registers any nor depends on them.
 * Failure: the program's registration is refused because the library took it, or a crash.
 */
/* env: GLIBC_TUNABLES=glibc.pthread.rseq=0 */
#include "probe.h"
#include <linux/rseq.h>
#include <pthread.h>
#include <sys/syscall.h>

static void *thread(void *arg)
{
	static __thread struct rseq area __attribute__((aligned(32)));

	probe_visit_allocator(1);
	long r = syscall(SYS_rseq, &area, (uint32_t)sizeof(area), 0, 0x53053053U);
	if (r != 0 && errno == ENOSYS)
		probe_skip("no rseq in this kernel");
	probe_require(r == 0, "rseq: %s", strerror(errno));
	probe_visit_allocator(2);
	syscall(SYS_rseq, &area, (uint32_t)sizeof(area), 1, 0x53053053U);
	return arg;
}

int main(void)
{
	pthread_t t[8];

	probe_limit();
	thread(NULL);
	for (int i = 0; i < 8; i++)
		probe_require(pthread_create(&t[i], NULL, thread, NULL) == 0, "no thread");
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	return 0;
}
