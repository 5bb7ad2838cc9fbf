/* SPDX-License-Identifier: MIT */
/*
 * filter: seccomp filters of the tests. A filter is a list of rules, the first that matches a
 * system call decides; a call that no rule names gets the default action.
 */
#ifndef TESTS_PRELOAD_FILTER_H
#define TESTS_PRELOAD_FILTER_H

#include "probe.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

struct filter_rule {
	long nr;
	uint32_t action;
	/* where not 0: only when argument 1, a size below 4 GiB, is larger ... */
	uint32_t more_than;
	/* ... and argument 2 has one of these bits */
	uint32_t bits;
};

#define FILTER_LOW(n) ((uint32_t)offsetof(struct seccomp_data, args[n]))
#define FILTER_ERROR(e) (SECCOMP_RET_ERRNO | (uint32_t)(e))

/* Returns seccomp(2)'s result: 0 or a listener, -1 with errno. */
static inline int filter_install(const struct filter_rule *rule, size_t rules, uint32_t otherwise,
				 unsigned flags)
{
	static struct sock_filter code[512];
	unsigned short n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 (uint32_t)offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < rules; i++) {
		struct filter_rule r = rule[i];
		bool sized = r.more_than != 0, masked = r.bits != 0;
		uint8_t skip = (uint8_t)(1 + (sized ? 2 : 0) + (masked ? 2 : 0) +
					 (sized || masked ? 1 : 0));
		uint8_t left = (uint8_t)(skip - 1);

		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r.nr,
							 0, skip);
		if (sized) {
			code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
								 FILTER_LOW(1));
			left = (uint8_t)(left - 2);
			code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K,
								 r.more_than, 0, left);
		}
		if (masked) {
			code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
								 FILTER_LOW(2));
			left = (uint8_t)(left - 2);
			code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, r.bits,
								 0, left);
		}
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, r.action);
		if (sized || masked)
			code[n++] = (struct sock_filter)BPF_STMT(
				BPF_LD | BPF_W | BPF_ABS,
				(uint32_t)offsetof(struct seccomp_data, nr));
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);

	struct sock_fprog program = {n, code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

#endif
