/* SPDX-License-Identifier: MIT */
/*
 * tiermalloc: the command. Dispatches to one cmd_*.c per verb; links shim/base and policies, so that
 * it explains with the very code that the library decides with.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/assert.h"
#include "shim/base/version.h"
#include "tools/cmd.h"

struct verb {
	const char *name;
	int (*run)(int argc, char **argv); /* NULL: the interface names it, this release lacks it */
	const char *usage;
};

static const struct verb verbs[] = {
	{"run", tm_cmd_run, "run [OPTION...] [--] COMMAND...  run a program with the library"},
	{"config", tm_cmd_config,
	 "config [--man]                   show every variable and its value"},
	{"doctor", tm_cmd_doctor,
	 "doctor [COMMAND|PID]             say what stands in the way here"},
	{"report", tm_cmd_report, "report PID|LEDGER|DIR            say who holds what"},
	{"leaks", tm_cmd_leaks, "leaks PID|LEDGER|DIR             say what leaks"},
	{"frag", tm_cmd_frag, "frag PID|LEDGER|DIR              say what fragments"},
	{"explain", tm_cmd_explain,
	 "explain PID|LEDGER|DIR           say why blocks lie where they do"},
	{"ack", tm_cmd_ack,
	 "ack SITE --cap SIZE              be silent about a site that is known"},
	{"top", tm_cmd_top, "top [-p PID]                     who holds memory, live"},
	{"diff", tm_cmd_diff, "diff A B                         say what became more"},
	{"ls", tm_cmd_ls, "ls [DIR]                         list ledgers"},
	{"gc", tm_cmd_gc, "gc [DIR]                         remove those of ended processes"},
	{"merge", tm_cmd_merge, "merge LEDGER... -o FILE          a process tree as one report"},
	{"tune", tm_cmd_tune, "tune LEDGER... -o RULES          write what runs learned as rules"},
	{"trace", tm_cmd_trace,
	 "trace -o FILE -- COMMAND...      record all requests of a program"},
	{"replay", tm_cmd_replay, "replay FILE [--rules FILE]       say where a trace would go"},
	{"export", tm_cmd_export, "export --format F LEDGER -o FILE write it for another tool"},
	{"serve", tm_cmd_serve,
	 "serve [--listen ADDR:PORT]       metrics and profiles of all, over HTTP"},
	{"symbols", tm_cmd_symbols,
	 "symbols LEDGER                   say whose functions can be told"},
};

static void say(const char *format, va_list args)
{
	fflush(stdout);
	fputs("tiermalloc: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
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
	return tm_say_usage("%s: %s '%s', see tiermalloc(1)", verb,
			    word[0] == '-' ? "unknown option" : "unexpected argument", word);
}

int tm_say_no_value(const char *verb, const char *option)
{
	return tm_say_usage("%s: the option '%s' needs a value", verb, option);
}

_Noreturn void tm_assert_failed(const char *expression, const char *file, int line)
{
	tm_say("internal error: '%s' does not hold at %s:%d, please report this", expression, file,
	       line);
	abort();
}

static void print_usage(void)
{
	puts("usage: tiermalloc COMMAND [ARGUMENT...]\n");
	for (size_t i = 0; i < TM_ARRAY_LEN(verbs); i++) {
		if (verbs[i].run)
			printf("  tiermalloc %s\n", verbs[i].usage);
	}
	puts("  tiermalloc --version                        print the release\n\nSee tiermalloc(1).");
}

static int dispatch(int argc, char **argv)
{
	for (size_t i = 0; i < TM_ARRAY_LEN(verbs); i++) {
		if (strcmp(argv[1], verbs[i].name) != 0)
			continue;
		if (verbs[i].run)
			return verbs[i].run(argc - 1, argv + 1);
		return tm_say_usage("the command '%s' is not in this release", argv[1]);
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
	else if (strcmp(argv[1], "--help") == 0)
		print_usage();
	else
		status = dispatch(argc, argv);
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == TM_EXIT_CLEAN) {
		tm_say("standard output cannot be written");
		status = TM_EXIT_TROUBLE;
	}
	return status;
}
