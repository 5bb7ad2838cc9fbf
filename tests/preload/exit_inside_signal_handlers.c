/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_REPORT=exit TIERMALLOC_REPORT_FILE=$TMPDIR/report */
/*
 * H19, log 48: SIGTERM at a random moment, inside malloc and inside an exit handler's free, whose
 * handler allocates and calls exit. 200 times. Failure: a hang or crash: report and fini code entered
 * twice, or a lock held by the interrupted malloc. (libc's own exit may not be interrupted by
 * exit, so the handler leaves that alone; libc's malloc may not either: no claim without us.)
 */
#include "claim.h"

enum { HANGS_MS = 300000 };
static volatile sig_atomic_t may_leave;

static void leave(int signal_number)
{
	(void)signal_number;
	if (!may_leave)
		return;
	free(malloc(100));
	may_leave = 0;
	exit(0);
}

static void late(void)
{
	may_leave = 1;
	for (int i = 0; i < 30000; i++)
		free(malloc((size_t)i % 40000));
	may_leave = 0;
}

static void child(void)
{
	static void *block[1000];

	/* a second one may come while the first one's exit runs its handlers */
	sigaction(SIGTERM, &(struct sigaction){.sa_handler = leave, .sa_flags = SA_NODEFER}, NULL);
	atexit(late);
	may_leave = 1;
	if (write(1, "r", 1) != 1)
		_exit(3);
	for (unsigned round = 0; round < 40; round++)
		for (unsigned i = 0; i < 1000; i++) {
			free(block[i]);
			block[i] = malloc((i * 77 + round) % 3000);
		}
	may_leave = 0;
	exit(0);
}

int main(void)
{
	int hung = 0, crashed = 0;

	for (unsigned i = 0; i < 200; i++) {
		int ends[2], status;
		char ready;
		if (pipe(ends))
			return 1;
		pid_t pid = fork();
		if (pid == 0) {
			dup2(ends[1], 1);
			child();
		}
		claim(read(ends[0], &ready, 1) == 1, "the child did not start");
		usleep(i * 37 % 4000);
		kill(pid, SIGTERM);
		usleep(i * 53 % 400);
		kill(pid, SIGTERM);
		int waited = 0;
		while (waitpid(pid, &status, WNOHANG) == 0) {
			usleep(1000);
			if (++waited == HANGS_MS) {
				hung++;
				kill(pid, SIGKILL);
			}
		}
		crashed += waited < HANGS_MS && (!WIFEXITED(status) || WEXITSTATUS(status));
		close(ends[0]);
		close(ends[1]);
	}
	claim(!claim_ours() || (!hung && !crashed), "of 200 runs %d hung, %d crashed", hung,
	      crashed);
	return claim_end();
}
