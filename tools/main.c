/* SPDX-License-Identifier: MIT */
/*
 * tiermalloc: the command. Dispatches to one cmd_*.c per verb. Links shim/base and policies, so
 * that it explains decisions with the same code that makes them in the library.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/assert.h"
#include "shim/base/parse.h"
#include "shim/base/version.h"
#include "tools/cmd.h"
#include "tools/help.h"
#include "tools/text/text_fit.h"

static int help(int argc, char **argv)
{
	if (argc > 2 || (argc == 2 && argv[1][0] == '-'))
		return tm_say_unknown("help", argv[argc - 1]);
	if (argc < 2)
		tm_help_print_all();
	else if (!tm_help_print(argv[1]))
		return tm_say_usage("unknown command '%s', see 'tiermalloc --help'", argv[1]);
	return TM_EXIT_CLEAN;
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{"run", tm_cmd_run},         {"config", tm_cmd_config},
	{"doctor", tm_cmd_doctor},   {"report", tm_cmd_report},
	{"leaks", tm_cmd_leaks},     {"frag", tm_cmd_frag},
	{"explain", tm_cmd_explain}, {"ack", tm_cmd_ack},
	{"top", tm_cmd_top},         {"diff", tm_cmd_diff},
	{"ls", tm_cmd_ls},           {"gc", tm_cmd_gc},
	{"merge", tm_cmd_merge},     {"tune", tm_cmd_tune},
	{"trace", tm_cmd_trace},     {"replay", tm_cmd_replay},
	{"export", tm_cmd_export},   {"serve", tm_cmd_serve},
	{"symbols", tm_cmd_symbols}, {"help", help},
};

/* One line, whatever characters a name in it has; UTF-8 as it is, in any locale: a name is looked up by it. */
static void say(const char *format, va_list args)
{
	char *text = tm_text_fit_format(format, args);

	fflush(stdout);
	if (text == NULL)
		return;
	fprintf(stderr, "tiermalloc: %s\n", text);
	free(text);
}

void tm_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

int tm_say_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	return TM_EXIT_USAGE;
}

int tm_say_unknown(const char *verb, const char *word)
{
	return tm_say_usage("%s: %s '%s', see 'tiermalloc %s --help'", verb,
			    word[0] == '-' ? "unknown option" : "unexpected argument", word, verb);
}

int tm_say_no_value(const char *verb, const char *option)
{
	return tm_say_usage("%s: the option '%s' needs a value", verb, option);
}

int tm_say_needs(const char *verb, const char *what)
{
	return tm_say_usage("%s: needs %s, see 'tiermalloc %s --help'", verb, what, verb);
}

int tm_take_count(const char *verb, const char *option, const char *value, size_t *ret_count)
{
	uint64_t number;

	if (tm_parse_u64(tm_str_of(value), &number) != 0)
		return tm_say_usage("%s: '%s %s' is no number", verb, option, value);
	/* Limited, so that sums do not overflow. */
	*ret_count = number > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)number;
	return 0;
}

_Noreturn void tm_assert_failed(const char *expression, const char *file, int line)
{
	tm_say("internal error: '%s' does not hold at %s:%d, please report this", expression, file,
	       line);
	abort();
}

/* Whether the verb starts programs: words after it may be another program's. */
static bool starts_programs(const char *verb)
{
	return strcmp(verb, "run") == 0 || strcmp(verb, "trace") == 0 ||
	       strcmp(verb, "doctor") == 0;
}

static bool asks_for_help(int argc, char **argv)
{
	bool starts = starts_programs(argv[1]);

	for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
		if (starts)
			return false;
	}
	return false;
}

/* Splits "--name=value" into two words, as the verbs expect. NULL without memory. */
static char **split_values(int *argc, char **argv)
{
	char **words = calloc(2 * (size_t)*argc + 1, sizeof(*words));
	bool plain = starts_programs(argv[0]);
	int n = 0;

	for (int i = 0; words && i < *argc; i++) {
		char *equals = strncmp(argv[i], "--", 2) == 0 ? strchr(argv[i], '=') : NULL;

		plain |= strcmp(argv[i], "--") == 0;
		words[n++] = argv[i];
		if (plain || equals == NULL || !tm_help_takes_value(argv[0], argv[i]))
			continue;
		*equals = '\0';
		words[n++] = equals + 1;
	}
	*argc = n;
	return words;
}

static int run_verb(int (*run)(int argc, char **argv), int argc, char **argv)
{
	char **words = split_values(&argc, argv);
	int status = TM_EXIT_TROUBLE;

	if (words)
		status = run(argc, words);
	else
		tm_say("out of memory");
	free(words);
	return status;
}

static int dispatch(int argc, char **argv)
{
	for (size_t i = 0; i < TM_ARRAY_LEN(verbs); i++) {
		if (strcmp(argv[1], verbs[i].name) != 0)
			continue;
		if (asks_for_help(argc, argv))
			return tm_help_print(argv[1]) ? TM_EXIT_CLEAN : TM_EXIT_TROUBLE;
		return run_verb(verbs[i].run, argc - 1, argv + 1);
	}
	return tm_say_usage("unknown command '%s', see 'tiermalloc --help'", argv[1]);
}

int main(int argc, char **argv)
{
	int status = TM_EXIT_CLEAN;

	if (argc < 2)
		return tm_say_usage("no command given, see 'tiermalloc --help'");
	if (strcmp(argv[1], "--version") == 0)
		printf("tiermalloc %s\n", tm_version_string());
	else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		tm_help_print_all();
	else
		status = dispatch(argc, argv);
	/* A finding that could not be printed is no success. */
	if ((fflush(stdout) != 0 || ferror(stdout)) && status != TM_EXIT_USAGE) {
		tm_say("standard output cannot be written: %s", strerror(errno ? errno : EIO));
		status = TM_EXIT_TROUBLE;
	}
	return status;
}
