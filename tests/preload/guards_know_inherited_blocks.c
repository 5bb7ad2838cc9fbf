/* SPDX-License-Identifier: MIT */
/*
 * TIERMALLOC_GUARD=all in a forked child: the account doesn't say any more how long a block of the parent
 * is. It is resized, looked at and freed as one of the child's own, and mistakes are found.
 */
/* env: TIERMALLOC_DIR=ledgers TIERMALLOC_GUARD=all TIERMALLOC_REPORT=exit */
/* stderr: tiermalloc: written behind the end: a block of 1500 bytes at 0x[0-9a-f]+ */
/* stderr: .*overruns +1  found by guards */
#include "inherited.h"

int main(void)
{
	struct inherited all;

	probe_limit();
	inherited_make(&all);
	pid_t pid = fork();
	if (pid == 0) {
		inherited_resize(&all);
		inherited_hide(all.longer)[1500] = 1;
		free(all.longer);
		exit(0);
	}
	probe_child_ok(pid, "child");
	inherited_resize(&all);
	free(all.longer);
	inherited_by_raw_child();
	return 0;
}
