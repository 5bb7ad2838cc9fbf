/* SPDX-License-Identifier: MIT */
/*
 * TIERMALLOC_GUARD=sample and FILL in a forked child: blocks of the parent are resized and freed, those of
 * no bytes too, sampled or not.
 */
/* env: TIERMALLOC_DIR=ledgers TIERMALLOC_GUARD=sample=2 TIERMALLOC_FILL=free=3 TIERMALLOC_ON_ERROR=abort */
#include "inherited.h"

int main(void)
{
	struct inherited all;

	probe_limit();
	inherited_make(&all);
	pid_t pid = fork();
	if (pid == 0) {
		inherited_resize(&all);
		exit(0);
	}
	probe_child_ok(pid, "child");
	inherited_resize(&all);
	inherited_by_raw_child();
	return 0;
}
