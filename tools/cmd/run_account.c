/* SPDX-License-Identifier: MIT */
/* run_account: see run_account.h. */
#include "tools/cmd/run_account.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/cmd/select.h"
#include "tools/export/export_file.h"

/*
 * A script may start many processes (one python3 behind pyenv: 33), of which one or two do the
 * work: of the others only those are printed whose peak reaches this, and half of the largest.
 */
#define PEAK_PRINTED ((uint64_t)16 << 20)
#define OTHERS_PRINTED 8

/*
 * Creates the folder in memory if possible, so that a ledger's page faults do not wait for a disk.
 */
static int make_folder(struct tm_run_account *account)
{
	const char *base[3] = {"/dev/shm", getenv("TMPDIR"), "/tmp"};

	for (size_t i = 0; i < TM_ARRAY_LEN(base); i++) {
		if (base[i] == NULL || base[i][0] != '/' || strlen(base[i]) > PATH_MAX / 2)
			continue;
		snprintf(account->folder, sizeof(account->folder), "%s/tiermalloc-XXXXXX", base[i]);
		if (mkdtemp(account->folder)) {
			account->folder_is_ours = true;
			return 0;
		}
	}
	tm_say("run: no folder for the ledgers in /dev/shm or '/tmp': %s", strerror(errno));
	account->folder[0] = '\0';
	return TM_EXIT_TROUBLE;
}

int tm_run_account_open(struct tm_run_account *account, const char *dir)
{
	const char *usual = getenv("TIERMALLOC_DIR");
	int status = 0;

	account->active = true;
	if (getenv("TIERMALLOC_REPORT_FILE")) {
		/* The user wants the account of each process in a file of this name. */
		if (setenv("TIERMALLOC_REPORT", "exit", 1) != 0)
			return TM_EXIT_TROUBLE;
		account->kind = 0;
	}
	if (dir == NULL && usual && *usual)
		dir = usual;
	if (dir)
		snprintf(account->folder, sizeof(account->folder), "%s", dir);
	else
		status = make_folder(account);
	if (status)
		return status;
	return setenv("TIERMALLOC_DIR", account->folder, 1) == 0 ? 0 : TM_EXIT_TROUBLE;
}

static bool is_ledger(const char *name)
{
	size_t len = strlen(name);

	return len > 3 && strcmp(name + len - 3, ".tm") == 0;
}

/* The newest ledger of a process id, which may have been used twice. */
static bool find_ledger(const struct tm_run_account *account, pid_t pid, char *name, size_t size)
{
	unsigned long long newest = 0, start;
	DIR *folder = opendir(account->folder);
	struct dirent *entry;
	int number;

	while (folder && (entry = readdir(folder))) {
		if (!is_ledger(entry->d_name) ||
		    sscanf(entry->d_name, "%d-%llu", &number, &start) != 2 || number != pid ||
		    start < newest)
			continue;
		newest = start;
		snprintf(name, size, "%s", entry->d_name);
	}
	if (folder)
		closedir(folder);
	return newest != 0;
}

static int print_ledger(struct tm_run_account *account, const char *name, bool is_own)
{
	struct tm_document doc;
	struct tm_ledger ledger;
	struct tm_select s;
	const struct tm_export_options options = {.top_sites = 0};
	char path[PATH_MAX + 300];
	int status = 0;

	tm_select_init(&s, account->kind ? account->kind : TM_DOC_FULL);
	s.out = account->kind ? stderr : NULL;
	if (is_own && (account->json || account->html))
		s.analysis.symbol_sites = TM_ANALYSIS_ALL;
	if (is_own)
		s.fail_on = account->fail_on;
	snprintf(path, sizeof(path), "%s/%s", account->folder, name);
	if (tm_ledger_open(&ledger, path) != 0)
		return TM_EXIT_TROUBLE;
	tm_document_init(&doc);
	tm_analysis_fill(&doc, &ledger, &s.analysis);
	if (is_own && account->json)
		status = tm_export_to(&doc, "json", &options, account->json);
	if (is_own && account->html && status == 0)
		status = tm_export_to(&doc, "html", &options, account->html);
	int found = tm_report_write(&s, &doc);
	tm_document_clear(&doc);
	tm_ledger_close(&ledger);
	/* A finding changes the exit status of "run" only if the user asked for that. */
	return status ? status : is_own && s.fail_on.count && found == TM_EXIT_FOUND ? found : 0;
}

/* --- the other processes ---------------------------------------------------------------------- */

struct other {
	char name[64];
	uint64_t peak_bytes;
};

/* Peak of a ledger; 0 if it can't be read. */
static uint64_t peak_of(const struct tm_run_account *account, const char *name)
{
	char path[PATH_MAX + 300];
	struct tm_ledger_counters counters;
	struct tm_ledger_header header;
	uint64_t peak = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", account->folder, name);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	if (fread(&header, sizeof(header), 1, file) == 1 && header.magic == TM_LEDGER_MAGIC &&
	    fseek(file, (long)TM_LEDGER_COUNTERS_AT, SEEK_SET) == 0 &&
	    fread(&counters, sizeof(counters), 1, file) == 1)
		peak = counters.peak_rss_bytes;
	fclose(file);
	return peak;
}

/* Keeps the largest, sorted; the caller's total counts those dropped. */
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

static void print_others(struct tm_run_account *account, const char *own)
{
	DIR *folder = opendir(account->folder);
	struct other others[OTHERS_PRINTED];
	size_t count = 0, total = 0, printed = 0;
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		struct other one = {.peak_bytes = 0};

		if (!is_ledger(entry->d_name) || strcmp(entry->d_name, own) == 0)
			continue;
		snprintf(one.name, sizeof(one.name), "%.63s", entry->d_name);
		one.peak_bytes = peak_of(account, entry->d_name);
		insert(others, &count, one);
		total++;
	}
	if (folder)
		closedir(folder);
	for (size_t i = 0; i < count; i++) {
		if (others[i].peak_bytes < PEAK_PRINTED ||
		    others[i].peak_bytes < others[0].peak_bytes / 2)
			break;
		fputc('\n', stderr);
		print_ledger(account, others[i].name, false);
		printed++;
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
	else
		tm_say("run: no report, the command left no ledger%s",
		       end->seen ? "" : ": the library was not in it");
}

int tm_run_account_print(struct tm_run_account *account, const struct tm_run_end *end)
{
	char own[256] = "";
	int status = 0;

	if (!account->active)
		return 0;
	fflush(stdout);
	if (account->kind == 0 && account->json == NULL && account->html == NULL &&
	    account->fail_on.count == 0)
		return 0;
	if (find_ledger(account, end->pid, own, sizeof(own)))
		status = print_ledger(account, own, true);
	else
		explain_absence(end);
	if (account->folder_is_ours && account->kind)
		print_others(account, own);
	return status;
}

void tm_run_account_close(struct tm_run_account *account)
{
	char path[PATH_MAX + 300];
	DIR *folder = account->folder_is_ours ? opendir(account->folder) : NULL;
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "%s/%s", account->folder, entry->d_name);
		unlink(path);
	}
	if (folder)
		closedir(folder);
	if (account->folder_is_ours)
		rmdir(account->folder);
	account->folder_is_ours = false;
}
