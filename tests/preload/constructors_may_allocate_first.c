/* SPDX-License-Identifier: MIT */
/*
 * H01 H18: other libraries' constructors and static objects allocate before ours has run, and
 * free after our destructor, whichever comes first in LD_PRELOAD. gdb made 1500 and clang 4338
 * allocations before a preload's constructor. Failure: a crash before main or after it.
 */
#include "claim.h"

static void run_real(const char *list, char *program)
{
	char *argv[] = {program, (char[]){"--version"}, NULL};
	static struct claim_output out;
	int status = claim_run(list, argv, &out);

	if (status != 127)
		claim(status == 0 && out.length > 10, "%s under '%s': %d, %.200s", program, list,
		      status, out.text);
}

int main(int argc, char **argv)
{
	static struct claim_output out;
	const char *lib = claim_beside("libconstructor_first.so");

	(void)argv;
	if (argc > 1) {
		free(malloc(100));
		return 0;
	}
	const char *lists[] = {claim_preload(), claim_join(claim_preload(), lib),
			       claim_join(lib, claim_preload())};
	for (int i = 0; i < 3; i++) {
		int status = claim_again(lists[i], "child", &out);
		claim(status == 0, "'%s': %d, %.200s", lists[i], status, out.text);
		run_real(lists[i], (char[]){"gdb"});
		run_real(lists[i], (char[]){"clang"});
		run_real(lists[i], (char[]){"python3"});
		run_real(lists[i], (char[]){"bash"});
	}
	return claim_end();
}
