/* SPDX-License-Identifier: MIT */
/* cmd_ls: ls lists the ledgers in a folder; gc removes those that nobody needs any more. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/parse.h"
#include "tools/cmd.h"
#include "tools/cmd/select.h"
#include "tools/ledger/ledger.h"

#define GC_AGE_MS ((uint64_t)24 * 3600 * 1000)
#define GC_BYTES ((uint64_t)256 << 20)

struct entry {
	char path[PATH_MAX];
	struct tm_ledger_header header;
	struct tm_ledger_counters counters;
	uint64_t disk_bytes, age_ms; /* age: since the last write */
	bool is_ledger, runs;
	/* left by another release, or by a process killed while it created the ledger */
	bool is_other;
	int error; /* why it cannot be read */
};

struct entries {
	struct entry *at;
	size_t count;
};

/*
 * Whether the file is named PID-STARTTIME.tm, as the library does, after a process that has ended.
 */
static bool is_of_the_dead(const char *path)
{
	unsigned long long start;
	const char *name = strrchr(path, '/') + 1;
	int end = 0;
	uint32_t pid;

	return sscanf(name, "%" SCNu32 "-%llu.tm%n", &pid, &start, &end) == 2 && end != 0 &&
	       name[end] == '\0' && tm_ledger_start_time(pid) != start;
}

static void look(struct entry *e)
{
	struct tm_ledger l = {.path = e->path};
	FILE *file = fopen(e->path, "re");

	if (file == NULL) {
		e->error = errno;
		return;
	}
	e->is_ledger = fread(&e->header, sizeof(e->header), 1, file) == 1 &&
		       e->header.magic == TM_LEDGER_MAGIC && e->header.version == TM_LEDGER_VERSION;
	if (e->is_ledger && (fseek(file, (long)TM_LEDGER_COUNTERS_AT, SEEK_SET) != 0 ||
			     fread(&e->counters, sizeof(e->counters), 1, file) != 1))
		memset(&e->counters, 0, sizeof(e->counters));
	e->is_other = !e->is_ledger && (e->header.magic == TM_LEDGER_MAGIC || e->disk_bytes == 0) &&
		      is_of_the_dead(e->path);
	fclose(file);
	e->header.program[sizeof(e->header.program) - 1] = '\0';
	l.header = e->header;
	e->runs = e->is_ledger && tm_ledger_runs(&l);
}

static uint64_t age_of(const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec > st->st_mtim.tv_sec ? (uint64_t)(now.tv_sec - st->st_mtim.tv_sec) * 1000
					       : 0;
}

/* Running processes first, then by age, newest first. */
static int by_age(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->runs != y->runs)
		return x->runs ? -1 : 1;
	if (x->age_ms != y->age_ms)
		return x->age_ms < y->age_ms ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* Reads a folder; a missing one is an error only if the user named it. */
static int read_folder(struct entries *list, const char *folder, bool named)
{
	DIR *dir = opendir(folder);
	struct dirent *d;
	struct stat st;

	*list = (struct entries){NULL, 0};
	if (dir == NULL && (named || errno != ENOENT)) {
		tm_say("cannot read '%s': %s", folder, strerror(errno));
		return TM_EXIT_TROUBLE;
	}
	while (dir && (d = readdir(dir)) != NULL) {
		size_t len = strlen(d->d_name);
		struct entry *wider;

		if (len < 4 || strcmp(d->d_name + len - 3, ".tm") != 0)
			continue;
		wider = realloc(list->at, (list->count + 1) * sizeof(*wider));
		if (wider == NULL)
			break;
		list->at = wider;
		struct entry *e = &wider[list->count];
		memset(e, 0, sizeof(*e));
		if (snprintf(e->path, sizeof(e->path), "%s/%s", folder, d->d_name) >=
			    (int)sizeof(e->path) ||
		    lstat(e->path, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		e->disk_bytes = (uint64_t)st.st_blocks * 512;
		e->age_ms = age_of(&st);
		look(e);
		list->count++;
	}
	if (dir)
		closedir(dir);
	if (list->count)
		qsort(list->at, list->count, sizeof(*list->at), by_age);
	return 0;
}

static const char *state_of(const struct entry *e)
{
	return e->error == EACCES ? "unreadable"
	       : e->error         ? "gone"
	       : !e->is_ledger    ? e->header.magic == TM_LEDGER_MAGIC ? "other vers" : "no ledger"
	       : e->header.clean_exit != 0 ? "clean"
	       : e->runs                   ? "running"
					   : "killed";
}

enum { COLUMNS = 7, FILE_COLUMNS = 24 };
static const int column_width[COLUMNS] = {8, -16, -10, 10, 10, 10, 8};

/*
 * Prints a row. The file follows the columns if the terminal has FILE_COLUMNS or more for it, else
 * it is on a line of its own; the last columns are left out if they do not fit.
 */
static void print_row(struct tm_text *t, enum tm_text_colour colour,
		      const char *const column[COLUMNS], const char *file)
{
	char row[256] = "";
	size_t len = 0;
	unsigned width = 0, whole = COLUMNS;

	for (int i = 0; i < COLUMNS; i++)
		whole += (unsigned)abs(column_width[i]);
	for (int i = 0; i < COLUMNS; i++) {
		width += (unsigned)abs(column_width[i]) + (i != 0);
		if (t->width && width > t->width)
			break;
		len += (size_t)snprintf(row + len, sizeof(row) - len, "%s%*.16s", i ? " " : "",
					column_width[i], column[i]);
	}
	if (t->width == 0 || t->width >= whole + FILE_COLUMNS) {
		tm_text_named(t, colour, file, "%s  ", row);
		return;
	}
	tm_text_line(t, colour, "%s", row);
	tm_text_named(t, colour, file, "    ");
}

static void print_entry(struct tm_text *t, const struct entry *e)
{
	char live[24], rss[24], disk[24], age[24], pid[16] = "-";
	bool known = e->counters.at_ms != 0;
	uint64_t live_bytes = e->counters.tier[0][TM_LEDGER_TIER_live_bytes];

	if (e->is_ledger)
		snprintf(pid, sizeof(pid), "%u", e->header.pid);
	const char *const column[COLUMNS] = {
		pid,
		e->is_ledger ? e->header.program : "-",
		state_of(e),
		tm_text_bytes(live, known ? live_bytes : TM_DOC_UNKNOWN),
		tm_text_bytes(rss, known ? e->counters.rss_bytes : TM_DOC_UNKNOWN),
		tm_text_bytes(disk, e->disk_bytes),
		tm_text_time(age, e->age_ms),
	};
	print_row(t, e->runs ? TM_TEXT_PLAIN : TM_TEXT_DIM, column, e->path);
}

int tm_cmd_ls(int argc, char **argv)
{
	char folder[PATH_MAX];
	struct entries list;
	struct tm_text t;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-'))
		return tm_say_unknown("ls", argv[argv[1][0] == '-' ? 1 : 2]);
	if (argc == 2)
		snprintf(folder, sizeof(folder), "%s", argv[1]);
	else
		tm_select_folder(folder, sizeof(folder));
	if (read_folder(&list, folder, argc == 2) != 0)
		return TM_EXIT_TROUBLE;
	if (list.count == 0)
		tm_say("no ledger in '%s', see 'tiermalloc doctor' where one should be", folder);
	tm_text_init(&t, stdout);
	print_row(&t, TM_TEXT_DIM,
		  (const char *const[COLUMNS]){"pid", "program", "ended", "live", "RSS", "ledger",
					       "written"},
		  "file");
	for (size_t i = 0; i < list.count; i++)
		print_entry(&t, &list.at[i]);
	free(list.at);
	return TM_EXIT_CLEAN;
}

/* --- gc --------------------------------------------------------------------------------------- */

struct limits {
	char folder[PATH_MAX];
	uint64_t age_ms, bytes;
	bool dry_run, named;
};

static int parse_gc(struct limits *l, int argc, char **argv)
{
	*l = (struct limits){.age_ms = GC_AGE_MS, .bytes = GC_BYTES};
	tm_select_folder(l->folder, sizeof(l->folder));
	for (int i = 1; i < argc; i++) {
		bool age = strcmp(argv[i], "--age") == 0, size = strcmp(argv[i], "--size") == 0;

		if (strcmp(argv[i], "--dry-run") == 0) {
			l->dry_run = true;
		} else if (age || size) {
			const char *option = argv[i], *value = argv[++i];

			if (value == NULL)
				return tm_say_no_value("gc", option);

			if ((age ? tm_parse_time(tm_str_of(value), &l->age_ms)
				 : tm_parse_size(tm_str_of(value), &l->bytes)) != 0)
				return tm_say_usage("gc: bad value '%s' of %s, use %s", value,
						    option,
						    age ? "a number with s, m or h"
							: "a number with K, M or G");
		} else if (argv[i][0] == '-') {
			return tm_say_unknown("gc", argv[i]);
		} else if (l->named) {
			return tm_say_unknown("gc", argv[i]);
		} else {
			snprintf(l->folder, sizeof(l->folder), "%s", argv[i]);
			l->named = true;
		}
	}
	return 0;
}

/*
 * Removes ledgers of ended processes: those that are too old, and the oldest until the total fits.
 */
int tm_cmd_gc(int argc, char **argv)
{
	struct limits limits;
	struct entries list;
	uint64_t kept = 0, freed = 0, removed = 0;
	char text[24];
	int status = parse_gc(&limits, argc, argv);

	if (status == 0)
		status = read_folder(&list, limits.folder, limits.named);
	if (status)
		return status;
	for (size_t i = 0; i < list.count; i++) {
		const struct entry *e = &list.at[i];

		if (!e->is_ledger && !e->is_other)
			continue;
		if (e->runs ||
		    (e->age_ms <= limits.age_ms && kept + e->disk_bytes <= limits.bytes)) {
			kept += e->disk_bytes;
			continue;
		}
		if (!limits.dry_run && unlink(e->path) != 0) {
			tm_say("gc: cannot remove '%s': %s", e->path, strerror(errno));
			status = TM_EXIT_TROUBLE;
			continue;
		}
		removed++;
		freed += e->disk_bytes;
	}
	printf("%s %" PRIu64 " ledgers of ended processes, %s\n",
	       limits.dry_run ? "would remove" : "removed", removed, tm_text_bytes(text, freed));
	free(list.at);
	return status;
}
