/* SPDX-License-Identifier: MIT */
/* run_account: see run_account.h. */
#include "tools/run_account.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/base/parse.h"
#include "tools/cmd.h"

/*
 * A script starts many processes (one python3 behind pyenv: 33), of which one or two do the work: of
 * the others only those are printed that came to this, and to half of the largest.
 */
#define PEAK_PRINTED ((uint64_t)16 << 20)
#define OTHERS_PRINTED 8

int tm_run_account_open(struct tm_run_account *account)
{
	const char *base = getenv("TMPDIR");
	char pattern[PATH_MAX + 16];

	account->active = true;
	account->folder[0] = '\0';
	if (setenv("TIERMALLOC_REPORT", "exit", 1) != 0)
		return TM_EXIT_TROUBLE;
	if (getenv("TIERMALLOC_REPORT_FILE"))
		return 0; /* the user wants it elsewhere */
	if (base == NULL || base[0] != '/')
		base = "/tmp";
	if (snprintf(account->folder, sizeof(account->folder), "%s/tiermalloc-XXXXXX", base) >=
		    (int)sizeof(account->folder) - 16 ||
	    mkdtemp(account->folder) == NULL) {
		tm_say("run: no folder for the report in '%s': %s", base, strerror(errno));
		account->folder[0] = '\0';
		return TM_EXIT_TROUBLE;
	}
	/* A '%' in the folder's name would be taken for a field. */
	if (strchr(account->folder, '%')) {
		tm_say("run: TMPDIR '%s' holds a '%%', choose another", base);
		return TM_EXIT_TROUBLE;
	}
	snprintf(pattern, sizeof(pattern), "%s/%%p", account->folder);
	return setenv("TIERMALLOC_REPORT_FILE", pattern, 1) == 0 ? 0 : TM_EXIT_TROUBLE;
}

/* False when there is none. */
static bool print_file(const struct tm_run_account *account, const char *name)
{
	char path[PATH_MAX + 300], part[4096];
	size_t got;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", account->folder, name);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	while ((got = fread(part, 1, sizeof(part), file)) > 0)
		fwrite(part, 1, got, stderr);
	fclose(file);
	return true;
}

struct other {
	char name[32]; /* of its file: the process id */
	uint64_t peak_bytes;
};

/* The line "  peak RSS   2.5 MiB  of the process" of a report; 0 where there is none. */
static uint64_t peak_of(const struct tm_run_account *account, const char *name)
{
	char path[PATH_MAX + 300], line[256], number[32], unit[8];
	uint64_t peak = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", account->folder, name);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char amount[48];

		if (sscanf(line, " peak RSS %31s %7s", number, unit) != 2)
			continue;
		snprintf(amount, sizeof(amount), "%s%s", number, unit);
		(void)tm_parse_size(tm_str_of(amount), &peak);
	}
	if (file)
		fclose(file);
	return peak;
}

/* Keeps the largest, in order; what falls out is counted by the caller's total. */
static void insert(struct other *others, size_t *count, struct other new)
{
	size_t at = *count < OTHERS_PRINTED ? (*count)++ : OTHERS_PRINTED;

	while (at > 0 && others[at - 1].peak_bytes < new.peak_bytes) {
		if (at < OTHERS_PRINTED)
			others[at] = others[at - 1];
		at--;
	}
	if (at < OTHERS_PRINTED)
		others[at] = new;
}

static void print_others(const struct tm_run_account *account, const char *own)
{
	DIR *folder = opendir(account->folder);
	struct other others[OTHERS_PRINTED];
	size_t count = 0, total = 0, printed = 0;
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		struct other one = {.peak_bytes = 0};

		if (entry->d_name[0] == '.' || strcmp(entry->d_name, own) == 0)
			continue;
		snprintf(one.name, sizeof(one.name), "%.31s", entry->d_name);
		one.peak_bytes = peak_of(account, entry->d_name);
		insert(others, &count, one);
		total++;
	}
	if (folder)
		closedir(folder);
	for (size_t i = 0; i < count; i++) {
		if (others[i].peak_bytes >= PEAK_PRINTED &&
		    others[i].peak_bytes >= others[0].peak_bytes / 2)
			printed += print_file(account, others[i].name);
	}
	if (total > printed)
		fprintf(stderr, "tiermalloc: %zu smaller processes are not shown\n",
			total - printed);
}

static void explain_absence(const struct tm_run_end *end)
{
	if (WIFSIGNALED(end->status))
		tm_say("run: no report, the command was ended by signal %d (%s)",
		       WTERMSIG(end->status), strsignal(WTERMSIG(end->status)));
	else if (end->seen)
		tm_say("run: no report, the command ended without running exit handlers");
	else
		tm_say("run: no report, the library was not in the command or the command ended without exit");
}

void tm_run_account_print(const struct tm_run_account *account, const struct tm_run_end *end)
{
	char own[32];

	if (!account->active || account->folder[0] == '\0')
		return;
	fflush(stdout);
	snprintf(own, sizeof(own), "%d", (int)end->pid);
	if (!print_file(account, own))
		explain_absence(end);
	print_others(account, own);
}

void tm_run_account_close(struct tm_run_account *account)
{
	char path[PATH_MAX + 300];
	DIR *folder = account->folder[0] ? opendir(account->folder) : NULL;
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "%s/%s", account->folder, entry->d_name);
		unlink(path);
	}
	if (folder)
		closedir(folder);
	if (account->folder[0])
		rmdir(account->folder);
	account->folder[0] = '\0';
}
