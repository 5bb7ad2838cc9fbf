/* SPDX-License-Identifier: MIT */
/*
 * H50: below a program with TIERMALLOC_REPORT and TIERMALLOC_TARGET, a tree of shells and programs
 * runs. Exactly the programs whose name matches report, each once and in its own file; small
 * ones (below 4 MiB) keep no ledger; the other entry of LD_PRELOAD reaches every child.
 * Failure: a report per shell (33 for one python3 under pyenv), or a list cut down to us.
 */
#include "probe.h"
#include <dirent.h>
#include <sys/stat.h>

static int count_files(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
		n += e->d_name[0] != '.';
	if (dir != NULL)
		closedir(dir);
	return n;
}

static int leaf(char **argv)
{
	const char *list = getenv("LD_PRELOAD");

	probe_require(list != NULL && strstr(list, "libatfork_allocates.so") != NULL,
		      "%s: LD_PRELOAD is '%s'", argv[0], list ? list : "");
	void *p = malloc(16 * MIB);
	memset(p, 1, 16 * MIB);
	for (int i = 0; i < 20000; i++)
		if (malloc((size_t)i % 1000) == NULL)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	char list[8192], lib[4096], command[512];
	const char *ours = getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "";

	if (argc > 1)
		return leaf(argv);
	probe_limit();
	probe_beside(lib, sizeof(lib), "libatfork_allocates.so");
	snprintf(list, sizeof(list), "%s:%s", ours, lib);
	ssize_t n = readlink("/proc/self/exe", command, sizeof(command) - 1);
	command[n > 0 ? n : 0] = 0;
	probe_require(symlink(command, "llama-wanted") == 0 && symlink(command, "other") == 0,
		      "no link");
	mkdir("reports", 0700);
	mkdir("ledgers", 0700);
	setenv("LD_PRELOAD", list, 1);
	setenv("TIERMALLOC_REPORT", "exit", 1);
	setenv("TIERMALLOC_REPORT_FILE", "reports/%p.txt", 1);
	setenv("TIERMALLOC_DIR", "ledgers", 1);
	setenv("TIERMALLOC_TARGET", "python*,llama-*", 1);
	int status = system("sh -c './other x && (./llama-wanted x; ./other x) && /bin/true &&"
			    " sh -c \"./llama-wanted x && exec ./other x\" && ls >/dev/null'");
	probe_require(status == 0, "the tree ended with %#x", (unsigned)status);
	int reports = count_files("reports");
	probe_require(reports == 2, "%d reports of 2 targets", reports);
	int ledgers = count_files("ledgers");
	probe_require(ledgers <= 2, "%d ledgers of 2 targets", ledgers);
	return 0;
}
