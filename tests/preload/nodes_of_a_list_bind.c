/* SPDX-License-Identifier: MIT */
/*
 * TIERMALLOC_NUMA=0: every block lies in memory that is bound to node 0, from its first touch on and
 * after it was given back. Failure: the kernel names another policy. (With one node the other values
 * do nothing; they are tested on a machine that is not there.)
 */
/* env: TIERMALLOC_NUMA=0 */
#include <linux/mempolicy.h>
#include <malloc.h>
#include <sys/syscall.h>

#include "probe.h"

int main(void)
{
	static const size_t sizes[] = {100, 5000, 70000, 3 * MIB, 20 * MIB};

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < 5; i++) {
			char *p = malloc(sizes[i]);
			unsigned long nodes[16] = {0};
			int policy = -1;

			memset(p, 1, sizes[i]);
			if (syscall(SYS_get_mempolicy, &policy, nodes, 1024UL, p,
				    (long)MPOL_F_ADDR) != 0)
				probe_skip("no NUMA policies: %s", strerror(errno));
			probe_require(policy == MPOL_BIND && nodes[0] == 1,
				      "%zu bytes: policy %d on nodes %lx", sizes[i], policy,
				      nodes[0]);
			free(p);
		}
		malloc_trim(0);
	}
	return 0;
}
