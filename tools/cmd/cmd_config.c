/* SPDX-License-Identifier: MIT */
/*
 * config: prints every variable with its value, default, source and meaning, as the library would
 * read it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "shim/base/tunables.h"
#include "tools/cmd.h"
#include "tools/cmd/config_man.h"
#include "tools/text/text_fit.h"

/* With fewer columns than this the meaning goes on a line of its own. */
#define MEANING_MIN 40

static void tell(void *context, const struct tm_tunables_problem *problem)
{
	char line[512];

	(void)context;
	tm_tunables_describe(line, sizeof(line), problem);
	tm_say("%s", line);
}

/* Width of the terminal, or COLUMNS; 0: no limit, as in a pipe. */
static size_t columns(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	return 80;
}

struct widths {
	size_t name, value, standard, source;
};

/* Texts of one row. */
struct shown {
	const struct tm_tunable_row *row;
	char value[160];
	const char *source;
	const char *meaning;
};

static void show(struct shown *ret, const struct tm_options *options, enum tm_tunable which)
{
	size_t len;

	ret->row = &tm_tunables_rows[which];
	ret->source = tm_tunables_source_name((enum tm_source)options->source[which]);
	ret->meaning = tm_config_man_meaning(which);
	len = tm_tunables_print(ret->value, sizeof(ret->value), options, which);
	if (len >= sizeof(ret->value))
		strcpy(ret->value + sizeof(ret->value) - 4, "...");
	for (char *c = ret->value; *c; c++) {
		if (*c == '\n' || *c == '\t')
			*c = ' ';
	}
	tm_text_fit_defuse(ret->value, TM_TEXT_UTF8);
}

static void widen(size_t *width, const char *text)
{
	if (strlen(text) > *width)
		*width = strlen(text);
}

static void print_line(const struct shown *shown, const struct widths *w, size_t limit)
{
	size_t used = w->name + w->value + w->standard + w->source + 8;

	printf("%-*s  %-*s  %-*s  %-*s", (int)w->name, shown->row->name, (int)w->value,
	       shown->value, (int)w->standard, shown->row->value, (int)w->source, shown->source);
	if (limit && used + MEANING_MIN > limit)
		printf("\n    ");
	else
		printf("  ");
	printf("%s%s\n", shown->meaning, shown->row->built ? "" : " (not in this build)");
}

static void print_all(const struct tm_options *options)
{
	static const struct tm_tunable_row heading = {
		.name = "VARIABLE", .value = "DEFAULT", .built = true};
	struct shown first = {&heading, "VALUE", "SOURCE", "MEANING"};
	struct shown all[TM_TUNABLE_COUNT];
	struct widths w = {8, 5, 7, 6};
	size_t limit = columns();

	for (int i = 0; i < TM_TUNABLE_COUNT; i++) {
		show(&all[i], options, (enum tm_tunable)i);
		widen(&w.name, all[i].row->name);
		widen(&w.standard, all[i].row->value);
		widen(&w.source, all[i].source);
		if (strlen(all[i].value) <= 24)
			widen(&w.value, all[i].value);
	}
	print_line(&first, &w, limit);
	for (int i = 0; i < TM_TUNABLE_COUNT; i++)
		print_line(&all[i], &w, limit);
}

int tm_cmd_config(int argc, char **argv)
{
	struct tm_tunables_input input = {.env = environ, .report = tell};
	struct tm_options options;

	if (argc == 2 && strcmp(argv[1], "--man") == 0) {
		tm_config_man_print();
		return TM_EXIT_CLEAN;
	}
	if (argc > 1)
		return tm_say_unknown("config", argv[strcmp(argv[1], "--man") == 0 ? 2 : 1]);
	input.store_bytes = tm_tunables_store_bytes(environ);
	input.store = malloc(input.store_bytes + 1);
	if (input.store == NULL) {
		tm_say("config: out of memory");
		return TM_EXIT_TROUBLE;
	}
	tm_tunables_read(&options, &input);
	print_all(&options);
	free(input.store);
	return TM_EXIT_CLEAN;
}
