/* SPDX-License-Identifier: MIT */
/*
 * H61, H60: a NUMA policy that the program or numactl set decides for our memory too (we bind
 * nothing by ourselves), and a program kept on one processor, whose number may be any, works.
 * Failure: a block has a policy of its own (the thread's decides where none is set); a crash with
 * one processor.
 */
#include "probe.h"
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

static void *thread(void *arg)
{
	probe_visit_allocator(1);
	return arg;
}

static void pin_to_last(void)
{
	cpu_set_t all, one;
	pthread_t t[32];

	CPU_ZERO(&one);
	probe_require(sched_getaffinity(0, sizeof(all), &all) == 0, "sched_getaffinity");
	for (size_t cpu = CPU_SETSIZE; cpu-- > 0;)
		if (CPU_ISSET(cpu, &all)) {
			CPU_SET(cpu, &one);
			break;
		}
	sched_setaffinity(0, sizeof(one), &one);
	for (int i = 0; i < 32; i++)
		probe_require(pthread_create(&t[i], NULL, thread, NULL) == 0, "no thread");
	for (int i = 0; i < 32; i++)
		pthread_join(t[i], NULL);
}

int main(void)
{
	static const size_t sizes[] = {100, 5000, 70000, 3 * MIB, 20 * MIB};
	unsigned long nodes = 1;
	int policy;

	probe_limit();
	pin_to_last();
	if (syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &nodes, 64UL) != 0)
		probe_skip("no NUMA policies: %s", strerror(errno));
	for (size_t i = 0; i < 5; i++) {
		unsigned char *p = malloc(sizes[i]);
		memset(p, 1, sizes[i]);
		long r = syscall(SYS_get_mempolicy, &policy, NULL, 0UL, p, (long)MPOL_F_ADDR);
		probe_require(r == 0 && policy == MPOL_DEFAULT, "%zu bytes were bound: policy %d",
			      sizes[i], policy);
		free(p);
	}
	return 0;
}
