/* SPDX-License-Identifier: MIT */
/*
 * doctor: reports what keeps the library from working on this machine, in a program or in a
 * process. Changes nothing and runs nothing.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/parse.h"
#include "shim/base/tunables.h"
#include "shim/base/version.h"
#include "tools/cmd.h"
#include "tools/cmd/doctor.h"
#include "tools/library.h"
#include "tools/text/text_fit.h"

static void say(const char *kind, const char *format, va_list args)
{
	char *text = tm_text_fit_format(format, args);

	if (text == NULL)
		return;
	printf("%-8s %s\n", kind, text);
	free(text);
}

void tm_doctor_ok(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("ok", format, args);
	va_end(args);
}

void tm_doctor_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("note", format, args);
	va_end(args);
}

void tm_doctor_problem(struct tm_doctor *doctor, const char *format, ...)
{
	va_list args;

	doctor->problems++;
	va_start(args, format);
	say("problem", format, args);
	va_end(args);
}

bool tm_doctor_read(const char *path, char *buf, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t len;

	if (file == NULL)
		return false;
	len = fread(buf, 1, size - 1, file);
	buf[len] = '\0';
	if (len && buf[len - 1] == '\n')
		buf[len - 1] = '\0';
	fclose(file);
	return len > 0;
}

bool tm_doctor_read_number(const char *path, uint64_t *ret_value)
{
	char text[64];

	if (!tm_doctor_read(path, text, sizeof(text)))
		return false;
	text[strspn(text, "0123456789")] = '\0';
	return tm_parse_u64(tm_str_of(text), ret_value) == 0;
}

static void check_library(struct tm_doctor *doctor)
{
	const char *why;

	if (tm_library_find(doctor->library, sizeof(doctor->library)) != 0) {
		doctor->library[0] = '\0';
		tm_doctor_problem(doctor,
				  TM_LIBRARY_NAME " is not beside this command, install it again");
		return;
	}
	why = tm_library_obstacle(doctor->library);
	if (why)
		tm_doctor_problem(doctor, "'%s' cannot be preloaded: %s", doctor->library, why);
	else
		tm_doctor_ok("library: %s (release %s)", doctor->library, tm_version_string());
}

static void tell(void *context, const struct tm_tunables_problem *problem)
{
	char line[512];

	(void)context;
	tm_tunables_describe(line, sizeof(line), problem);
	tm_doctor_note("environment: %s", line);
}

static void check_environment(void)
{
	struct tm_tunables_input input = {.env = environ, .report = tell};
	const char *preload = getenv("LD_PRELOAD");
	struct tm_options options;

	input.store_bytes = tm_tunables_store_bytes(environ);
	input.store = malloc(input.store_bytes + 1);
	if (input.store == NULL)
		return;
	tm_tunables_read(&options, &input);
	if (options.mode == TM_MODE_OFF)
		tm_doctor_note("environment: TIERMALLOC=off, the library serves nothing");
	free(input.store);
	if (preload == NULL || *preload == '\0')
		return;
	if (tm_library_rival(preload))
		tm_doctor_note(
			"environment: LD_PRELOAD holds another allocator ('%s'): the first one named serves",
			preload);
	else
		tm_doctor_note("environment: LD_PRELOAD is '%s'", preload);
}

static bool is_pid(const char *text)
{
	for (const char *c = text; *c; c++) {
		if (!isdigit((unsigned char)*c))
			return false;
	}
	return *text != '\0' && strlen(text) < 10;
}

int tm_cmd_doctor(int argc, char **argv)
{
	struct tm_doctor doctor = {.problems = 0};
	int status = 0;

	if (argc >= 2 && argv[1][0] == '-')
		return tm_say_unknown("doctor", argv[1]);
	/* Words after a program are its arguments. */
	if (argc > 2 && is_pid(argv[1]))
		return tm_say_usage("doctor: one command or process at a time");
	check_library(&doctor);
	if (argc == 2 && is_pid(argv[1])) {
		status = tm_doctor_process(&doctor, atoi(argv[1]));
	} else if (argc >= 2) {
		check_environment();
		status = tm_doctor_program(&doctor, argv[1]);
	} else {
		check_environment();
		tm_doctor_machine(&doctor);
	}
	if (status)
		return status;
	return doctor.problems ? TM_EXIT_TROUBLE : TM_EXIT_CLEAN;
}
