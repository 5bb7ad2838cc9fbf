/* SPDX-License-Identifier: MIT */
/*
 * The part of Criterion that our unit tests use, over fork alone. It stands in where Criterion can't
 * run: under ThreadSanitizer, which owns the addresses that Criterion shares with its workers, in
 * cross builds, and where the package is missing. Same names, same meaning, same closing line.
 */
#ifndef TM_TEST_PLAIN_CRITERION_H
#define TM_TEST_PLAIN_CRITERION_H

#include <stdbool.h>
#include <string.h>

struct plain_options {
	int line;
	void (*init)(void);
	void (*fini)(void);
	int signal;     /* the test must be ended by it */
	int exit_code;  /* the test must end with it */
	double timeout; /* seconds, 0: 1200 */
	bool disabled;
	const char *description;
};

struct plain_test {
	const char *suite, *name;
	void (*run)(void);
	struct plain_options options;
	struct plain_test *next;
};

struct plain_suite {
	const char *name;
	struct plain_options options;
	struct plain_suite *next;
};

void plain_add_test(struct plain_test *test);
void plain_add_suite(struct plain_suite *suite);
/* Says what did not hold. Counts it; plain_stop ends the test. */
__attribute__((format(printf, 4, 5))) void plain_fail(const char *file, int line, const char *what,
						      const char *format, ...);
__attribute__((noreturn)) void plain_stop(void);
__attribute__((noreturn, format(printf, 1, 2))) void plain_skip(const char *format, ...);

#define Test(suite_, name_, ...)                                                                   \
	static void suite_##_##name_##_run(void);                                                  \
	__attribute__((constructor)) static void suite_##_##name_##_add(void)                      \
	{                                                                                          \
		static struct plain_test test = {#suite_,                                          \
						 #name_,                                           \
						 suite_##_##name_##_run,                           \
						 {.line = __LINE__, ##__VA_ARGS__},                \
						 NULL};                                            \
		plain_add_test(&test);                                                             \
	}                                                                                          \
	static void suite_##_##name_##_run(void)

#define TestSuite(suite_, ...)                                                                     \
	__attribute__((constructor)) static void suite_##_suite_add(void)                          \
	{                                                                                          \
		static struct plain_suite suite = {                                                \
			#suite_, {.line = __LINE__, ##__VA_ARGS__}, NULL};                         \
		plain_add_suite(&suite);                                                           \
	}                                                                                          \
	extern int plain_semicolon

#define plain_check(stop, holds, what, ...)                                                        \
	do {                                                                                       \
		if (!(holds)) {                                                                    \
			plain_fail(__FILE__, __LINE__, what, "" __VA_ARGS__);                      \
			stop;                                                                      \
		}                                                                                  \
	} while (0)

#define cr_assert(c, ...) plain_check(plain_stop(), c, #c, ##__VA_ARGS__)
#define cr_expect(c, ...) plain_check((void)0, c, #c, ##__VA_ARGS__)
#define cr_assert_fail(...) plain_check(plain_stop(), 0, "fail", ##__VA_ARGS__)
#define cr_expect_fail(...) plain_check((void)0, 0, "fail", ##__VA_ARGS__)
#define cr_skip_test(...) plain_skip("" __VA_ARGS__)
#define cr_skip(...) plain_skip("" __VA_ARGS__)
#define cr_fatal(...) cr_assert_fail(__VA_ARGS__)
#define cr_fail(...) cr_expect_fail(__VA_ARGS__)

#define plain_two(kind, op, a, b, ...) kind((a)op(b), ##__VA_ARGS__)
#define cr_assert_eq(a, b, ...) plain_two(cr_assert, ==, a, b, ##__VA_ARGS__)
#define cr_assert_neq(a, b, ...) plain_two(cr_assert, !=, a, b, ##__VA_ARGS__)
#define cr_assert_lt(a, b, ...) plain_two(cr_assert, <, a, b, ##__VA_ARGS__)
#define cr_assert_leq(a, b, ...) plain_two(cr_assert, <=, a, b, ##__VA_ARGS__)
#define cr_assert_gt(a, b, ...) plain_two(cr_assert, >, a, b, ##__VA_ARGS__)
#define cr_assert_geq(a, b, ...) plain_two(cr_assert, >=, a, b, ##__VA_ARGS__)
#define cr_expect_eq(a, b, ...) plain_two(cr_expect, ==, a, b, ##__VA_ARGS__)
#define cr_expect_neq(a, b, ...) plain_two(cr_expect, !=, a, b, ##__VA_ARGS__)
#define cr_expect_lt(a, b, ...) plain_two(cr_expect, <, a, b, ##__VA_ARGS__)
#define cr_expect_leq(a, b, ...) plain_two(cr_expect, <=, a, b, ##__VA_ARGS__)
#define cr_expect_gt(a, b, ...) plain_two(cr_expect, >, a, b, ##__VA_ARGS__)
#define cr_expect_geq(a, b, ...) plain_two(cr_expect, >=, a, b, ##__VA_ARGS__)

#define cr_assert_not(c, ...) cr_assert(!(c), ##__VA_ARGS__)
#define cr_expect_not(c, ...) cr_expect(!(c), ##__VA_ARGS__)
#define cr_assert_null(p, ...) cr_assert((p) == NULL, ##__VA_ARGS__)
#define cr_expect_null(p, ...) cr_expect((p) == NULL, ##__VA_ARGS__)
#define cr_assert_not_null(p, ...) cr_assert((p) != NULL, ##__VA_ARGS__)
#define cr_expect_not_null(p, ...) cr_expect((p) != NULL, ##__VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) cr_assert(strcmp(a, b) == 0, ##__VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) cr_expect(strcmp(a, b) == 0, ##__VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) cr_assert(strcmp(a, b) != 0, ##__VA_ARGS__)
#define cr_assert_str_empty(a, ...) cr_assert(*(a) == 0, ##__VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...) cr_assert(memcmp(a, b, n) == 0, ##__VA_ARGS__)
#define cr_expect_arr_eq(a, b, n, ...) cr_expect(memcmp(a, b, n) == 0, ##__VA_ARGS__)
#define cr_assert_float_eq(a, b, e, ...)                                                           \
	cr_assert((a) - (b) <= (e) && (b) - (a) <= (e), ##__VA_ARGS__)
#define cr_log_info(...) ((void)0)

#endif
