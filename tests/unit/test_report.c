/* SPDX-License-Identifier: MIT */
/* report: the text and where it goes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "shim/boot.h"
#include "shim/report.h"

Test(report, text_names_program_and_total)
{
	char text[8192];
	int ends[2];
	ssize_t n;

	cr_assert(tm_boot());
	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(tm_report_write(ends[1]), 0);
	n = read(ends[0], text, sizeof(text) - 1);
	cr_assert_gt(n, 0);
	text[n] = '\0';
	cr_assert_eq(strncmp(text, "tiermalloc ", 11), 0);
	cr_assert_not_null(strstr(text, " report of process "));
	cr_assert_eq(text[n - 1], '\n');
	if (tm_root.server == TM_SERVER_ENGINE)
		cr_assert_not_null(strstr(text, "\n  total"));
}

Test(report, a_closed_descriptor_is_an_error)
{
	cr_assert(tm_boot());
	cr_assert_eq(tm_report_write(-1), -EBADF);
}
