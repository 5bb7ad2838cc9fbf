/* SPDX-License-Identifier: MIT */
/* tunables: every variable, every way of giving it, every complaint. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/tunables.h"
#include "shim/base/tunables_parse.h"

static char store[4096];
static char lines[16][512];
static size_t line_count;
static size_t info_count;

static void keep_line(void *context, const struct tm_tunables_problem *problem)
{
	(void)context;
	if (!tm_tunables_is_warning(problem)) {
		info_count++;
		return;
	}
	if (line_count < 16)
		tm_tunables_describe(lines[line_count++], sizeof(lines[0]), problem);
}

static char text[2048];
static char *env[16];

/* An environment as execve leaves it: writable strings. */
static void fill_env(const char *const *entries)
{
	size_t used = 0, i;

	for (i = 0; entries[i]; i++) {
		env[i] = text + used;
		used += (size_t)snprintf(env[i], sizeof(text) - used, "%s", entries[i]) + 1;
	}
	env[i] = NULL;
}

static struct tm_options read_with(char *const *from, size_t store_bytes)
{
	struct tm_tunables_input input = {from, store, store_bytes, keep_line, NULL};
	struct tm_options options;

	line_count = 0;
	info_count = 0;
	memset(&options, 0xff, sizeof(options));
	tm_tunables_read(&options, &input);
	return options;
}

/* NULL: nothing may be read. */
static struct tm_options read_env(const char *const *entries)
{
	if (entries == NULL)
		return read_with(NULL, 0);
	fill_env(entries);
	return read_with(env, sizeof(store));
}

static struct tm_options read_one(const char *entry)
{
	const char *const entries[] = {entry, NULL};

	return read_env(entries);
}

static bool part_is_built(enum tm_tunable which)
{
	return tm_tunables_rows[which].built;
}

/* A value of a row whose part is not built yet never reaches the options; test its parser alone. */
static int parse_row(struct tm_options *options, enum tm_tunable which, const char *value)
{
	struct tm_tunables_store lent = {store, sizeof(store)};

	return tm_tunables_parse_value(options, &tm_tunables_rows[which], tm_str_of(value), &lent);
}

static void check_value(enum tm_tunable which, const char *value, const char *printed)
{
	struct tm_options options = read_env(NULL);
	char shown[256];

	cr_assert_eq(parse_row(&options, which, value), 0, "%s=%s", tm_tunables_rows[which].name,
		     value);
	tm_tunables_print(shown, sizeof(shown), &options, which);
	cr_assert_str_eq(shown, printed, "%s=%s prints %s", tm_tunables_rows[which].name, value,
			 text);
}

static void check_bad(enum tm_tunable which, const char *value)
{
	struct tm_options options = read_env(NULL);
	struct tm_options before = options;

	cr_assert_eq(parse_row(&options, which, value), -EINVAL, "%s=%s",
		     tm_tunables_rows[which].name, value);
	cr_assert(memcmp(&options, &before, sizeof(options)) == 0, "%s",
		  tm_tunables_rows[which].name);
}

Test(tunables, defaults_come_from_the_table_and_print_as_they_stand_there)
{
	struct tm_options options = read_env(NULL);
	char shown[64];

	for (int i = 0; i < TM_TUNABLE_COUNT; i++) {
		tm_tunables_print(shown, sizeof(shown), &options, (enum tm_tunable)i);
		cr_assert_str_eq(shown, tm_tunables_rows[i].value, "%s", tm_tunables_rows[i].name);
		cr_assert_eq(options.source[i], TM_SOURCE_DEFAULT);
	}
	cr_assert_eq(options.mode, TM_MODE_ON);
	cr_assert_eq(options.align_bytes, 16);
	cr_assert_eq(options.decay_percent, 100);
	cr_assert_null(options.rules);
	cr_assert_null(options.target);
	cr_assert_eq(options.max_bytes[TM_TIER_SESSION], TM_OPTION_NONE);
	cr_assert_eq(options.decay_ms[TM_TIER_TEMPORARY], TM_OPTION_AUTO);
	cr_assert_eq(options.fill_alloc, -1);
	cr_assert_eq(options.log, TM_LOG_WARN);
}

Test(tunables, every_word_of_a_row_is_its_enum)
{
	check_value(TM_TUNABLE_TIERMALLOC, "off", "off");
	struct tm_options options = read_env(NULL);

	cr_assert_eq(parse_row(&options, TM_TUNABLE_TIERMALLOC, "observe"), 0);
	cr_assert_eq(options.mode, TM_MODE_OBSERVE);
	cr_assert_eq(parse_row(&options, TM_TUNABLE_TIERMALLOC_HUGE, "1G"), 0);
	cr_assert_eq(options.huge, TM_HUGE_1G);
	cr_assert_eq(parse_row(&options, TM_TUNABLE_TIERMALLOC_GIVEBACK, "eager"), 0);
	cr_assert_eq(options.giveback, TM_GIVEBACK_EAGER);
	cr_assert_eq(parse_row(&options, TM_TUNABLE_TIERMALLOC_ON_ERROR, "abort"), 0);
	cr_assert_eq(options.on_error, TM_ON_ERROR_ABORT);
	cr_assert_eq(parse_row(&options, TM_TUNABLE_TIERMALLOC_LEDGER, "deep"), 0);
	cr_assert_eq(options.ledger, TM_LEDGER_DEEP);
	cr_assert_eq(parse_row(&options, TM_TUNABLE_TIERMALLOC_REPORT, "full"), 0);
	cr_assert_eq(options.report, TM_REPORT_FULL);
	cr_assert_eq(parse_row(&options, TM_TUNABLE_TIERMALLOC_CUDA, "pool"), 0);
	cr_assert_eq(options.cuda, TM_CUDA_POOL);
	cr_assert_eq(parse_row(&options, TM_TUNABLE_TIERMALLOC_CUDA_POOL, "vmm"), 0);
	cr_assert_eq(options.cuda_pool, TM_CUDA_POOL_VMM);
	cr_assert_eq(parse_row(&options, TM_TUNABLE_TIERMALLOC_CUDA_FREE_SYNC, "event"), 0);
	cr_assert_eq(options.cuda_free_sync, TM_CUDA_FREE_EVENT);
	cr_assert_eq(parse_row(&options, TM_TUNABLE_TIERMALLOC_THREAD, "never"), 0);
	cr_assert_eq(options.thread, TM_THREAD_NEVER);
	cr_assert_eq(parse_row(&options, TM_TUNABLE_TIERMALLOC_SOURCE_DROP, "1"), 0);
	cr_assert_eq(options.source_drop, 1);
}

Test(tunables, values_are_printed_as_the_environment_takes_them)
{
	check_value(TM_TUNABLE_TIERMALLOC_SESSION_MAX, "8G", "8G");
	check_value(TM_TUNABLE_TIERMALLOC_SESSION_MAX, "1536M", "1536M");
	check_value(TM_TUNABLE_TIERMALLOC_SESSION_MAX, "none", "none");
	check_value(TM_TUNABLE_TIERMALLOC_SESSION_KEEP, "0", "0");
	check_value(TM_TUNABLE_TIERMALLOC_TEMPORARY_DECAY, "0.5s", "500ms");
	check_value(TM_TUNABLE_TIERMALLOC_TEMPORARY_DECAY, "90m", "90m");
	check_value(TM_TUNABLE_TIERMALLOC_POOLS, "768K*64@session,12M*8", "768K*64@session,12M*8");
	check_value(TM_TUNABLE_TIERMALLOC_POOLS, "none", "none");
	check_value(TM_TUNABLE_TIERMALLOC_NUMA, "0,2-3", "0,2-3");
	check_value(TM_TUNABLE_TIERMALLOC_NUMA, "interleave", "interleave");
	check_value(TM_TUNABLE_TIERMALLOC_GUARD, "sample", "sample=1000");
	check_value(TM_TUNABLE_TIERMALLOC_GUARD, "sample=7", "sample=7");
	check_value(TM_TUNABLE_TIERMALLOC_GUARD, "all", "all");
	check_value(TM_TUNABLE_TIERMALLOC_FILL, "alloc=0xa5,free=90", "alloc=0xa5,free=0x5a");
	check_value(TM_TUNABLE_TIERMALLOC_FILL, "free=0", "free=0x00");
	check_value(TM_TUNABLE_TIERMALLOC_ALIGN, "4K", "4096");
	check_value(TM_TUNABLE_TIERMALLOC_DEEPBIND, "keep", "keep");
	check_value(TM_TUNABLE_TIERMALLOC_DEEPBIND, "libfoo*,libbar.so", "libfoo*,libbar.so");
	check_value(TM_TUNABLE_TIERMALLOC_LOG, "cuda,giveback", "cuda,giveback");
	check_value(TM_TUNABLE_TIERMALLOC_LOG, "info", "info");
	check_value(TM_TUNABLE_TIERMALLOC_LOG, "quiet", "quiet");
	check_value(TM_TUNABLE_TIERMALLOC_LEAK_WINDOW_MS, "100", "100");
	check_value(TM_TUNABLE_TIERMALLOC_CUDA_HOST_POOL, "none", "none");
	check_value(TM_TUNABLE_TIERMALLOC_TARGET, "all", "all");
	check_value(TM_TUNABLE_TIERMALLOC_TARGET, "python*,llama-*", "python*,llama-*");
}

Test(tunables, bad_values_leave_the_options_alone)
{
	check_bad(TM_TUNABLE_TIERMALLOC, "ON");
	check_bad(TM_TUNABLE_TIERMALLOC_HUGE, "auto|always");
	check_bad(TM_TUNABLE_TIERMALLOC_SESSION_MAX, "12X");
	check_bad(TM_TUNABLE_TIERMALLOC_SESSION_MAX, "-1");
	check_bad(TM_TUNABLE_TIERMALLOC_SESSION_MAX, "auto");
	check_bad(TM_TUNABLE_TIERMALLOC_SESSION_MAX, "99999999999999T");
	check_bad(TM_TUNABLE_TIERMALLOC_SESSION_DECAY, "5");
	check_bad(TM_TUNABLE_TIERMALLOC_POOLS, "768K");
	check_bad(TM_TUNABLE_TIERMALLOC_POOLS, "768K*0");
	check_bad(TM_TUNABLE_TIERMALLOC_POOLS, "768K*2@nowhere");
	check_bad(TM_TUNABLE_TIERMALLOC_POOLS, "768K*2,,");
	check_bad(TM_TUNABLE_TIERMALLOC_NUMA, "3-2");
	check_bad(TM_TUNABLE_TIERMALLOC_NUMA, "nodes");
	check_bad(TM_TUNABLE_TIERMALLOC_GUARD, "sample=0");
	check_bad(TM_TUNABLE_TIERMALLOC_GUARD, "all=3");
	check_bad(TM_TUNABLE_TIERMALLOC_FILL, "alloc=256");
	check_bad(TM_TUNABLE_TIERMALLOC_FILL, "both=1");
	check_bad(TM_TUNABLE_TIERMALLOC_ALIGN, "24");
	check_bad(TM_TUNABLE_TIERMALLOC_ALIGN, "8");
	check_bad(TM_TUNABLE_TIERMALLOC_ALIGN, "8K");
	check_bad(TM_TUNABLE_TIERMALLOC_LOG, "quiet,cuda");
	check_bad(TM_TUNABLE_TIERMALLOC_LOG, "loud");
	check_bad(TM_TUNABLE_TIERMALLOC_LEAK_WINDOW_MS, "0");
}

Test(tunables, a_bad_value_gets_one_line_that_names_variable_value_and_choice)
{
	struct tm_options options = read_one("TIERMALLOC=maybe");

	cr_assert_eq(options.mode, TM_MODE_ON);
	cr_assert_eq(options.source[TM_TUNABLE_TIERMALLOC], TM_SOURCE_DEFAULT);
	cr_assert_eq(line_count, 1);
	cr_assert_str_eq(lines[0], "bad value 'maybe' of TIERMALLOC, use off, on or observe");
}

Test(tunables, an_unknown_variable_is_told_once_with_the_one_that_may_be_meant)
{
	read_one("TIERMALLOC_HGUE=never"); /* unknown variable */
	cr_assert_eq(line_count, 1);
	cr_assert_str_eq(lines[0],
			 "unknown variable TIERMALLOC_HGUE='never', " /* unknown variable */
			 "did you mean TIERMALLOC_HUGE");
	read_one("TIERMALLOC_SPEED=max"); /* unknown variable */
	cr_assert_str_eq(lines[0],
			 "unknown variable TIERMALLOC_SPEED='max', " /* unknown variable */
			 "see tiermalloc-tunables(5)");
	read_one("TIERMALLOCATOR=1");
	cr_assert_eq(line_count, 0);
}

Test(tunables, conf_takes_all_variables_and_the_variables_win)
{
	const char *const entries[] = {"PATH=/bin", "TIERMALLOC_CONF=tiermalloc=observe:log=info",
				       "TIERMALLOC_LOG=quiet", NULL};
	struct tm_options options = read_env(entries);

	cr_assert_eq(line_count, 0);
	cr_assert_eq(options.mode, TM_MODE_OBSERVE);
	cr_assert_eq(options.source[TM_TUNABLE_TIERMALLOC], TM_SOURCE_CONF);
	cr_assert_eq(options.log, TM_LOG_QUIET);
	cr_assert_eq(options.source[TM_TUNABLE_TIERMALLOC_LOG], TM_SOURCE_ENV);
}

Test(tunables, conf_complains_about_keys_values_and_items)
{
	struct tm_options options =
		read_one("TIERMALLOC_CONF=LOG=info:lgo=info:huge:zzz=1:tiermalloc=x:log=info");

	cr_assert_eq(line_count, 5);
	cr_assert_str_eq(lines[0], "unknown key 'LOG' with value 'info' in TIERMALLOC_CONF, "
				   "did you mean 'log'");
	cr_assert_str_eq(lines[1], "unknown key 'lgo' with value 'info' in TIERMALLOC_CONF, "
				   "did you mean 'log'");
	cr_assert_str_eq(lines[2], "bad item 'huge' of TIERMALLOC_CONF, use KEY=VALUE:KEY=VALUE");
	cr_assert_str_eq(lines[3],
			 "unknown key 'zzz' with value '1' in TIERMALLOC_CONF, keys are the "
			 "names of tiermalloc-tunables(5) without prefix, in lower case");
	cr_assert_str_eq(lines[4], "bad value 'x' of TIERMALLOC, use off, on or observe");
	cr_assert(options.log & TM_LOG_INFO);
}

Test(tunables, conf_unescapes_colons_and_backslashes)
{
	struct tm_options options;

	if (!part_is_built(TM_TUNABLE_TIERMALLOC_DEEPBIND))
		return;
	options = read_one("TIERMALLOC_CONF=deepbind=a\\:b\\\\c\\d:log=quiet");
	cr_assert_str_eq(options.deepbind_globs, "a:b\\c\\d");
	cr_assert_eq(options.log, TM_LOG_QUIET);
}

Test(tunables, texts_survive_a_program_that_writes_over_its_environment)
{
	struct tm_options options;

	if (!part_is_built(TM_TUNABLE_TIERMALLOC_DEEPBIND))
		return;
	options = read_one("TIERMALLOC_DEEPBIND=libx*");
	cr_assert_geq(tm_tunables_store_bytes(env), sizeof("libx*"));
	memset(text, 'x', sizeof(text));
	cr_assert_str_eq(options.deepbind_globs, "libx*");
}

Test(tunables, a_store_that_is_too_small_costs_the_text_alone)
{
	const char *const entries[] = {"TIERMALLOC_DEEPBIND=libx*", "TIERMALLOC_LOG=quiet", NULL};
	struct tm_options options;

	if (!part_is_built(TM_TUNABLE_TIERMALLOC_DEEPBIND))
		return;
	fill_env(entries);
	options = read_with(env, 4);
	cr_assert_eq(options.deepbind, TM_DEEPBIND_DROP);
	cr_assert_eq(options.log, TM_LOG_QUIET);
	cr_assert_str_eq(lines[0], "no memory for the value of TIERMALLOC_DEEPBIND");
}

Test(tunables, a_variable_whose_part_is_missing_says_so_and_keeps_its_default)
{
	static const struct {
		enum tm_tunable which;
		const char *entry;
		const char *line;
	} cases[] = {
		{TM_TUNABLE_TIERMALLOC_TRACE, "TIERMALLOC_TRACE=/tmp/x",
		 "TIERMALLOC_TRACE='/tmp/x' has no effect, this build lacks traces"},
		{TM_TUNABLE_TIERMALLOC_GUARD, "TIERMALLOC_GUARD=all",
		 "TIERMALLOC_GUARD='all' has no effect, this build lacks guarded blocks"},
		{TM_TUNABLE_TIERMALLOC_POOLS, "TIERMALLOC_POOLS=1M*2",
		 "TIERMALLOC_POOLS='1M*2' has no effect, this build lacks fixed pools"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tm_options options = read_one(cases[i].entry);

		if (part_is_built(cases[i].which)) {
			cr_assert_eq(line_count, 0);
			continue;
		}
		cr_assert_eq(line_count, 1);
		cr_assert_str_eq(lines[0], cases[i].line);
		cr_assert_eq(options.source[cases[i].which], TM_SOURCE_DEFAULT);
		cr_assert_null(options.trace);
		cr_assert_eq(options.guard, TM_GUARD_OFF);
		cr_assert_null(options.pools);
	}
	read_one("TIERMALLOC_GUARD=off");
	cr_assert_eq(line_count, 0);
}

Test(tunables, a_word_whose_own_part_is_missing_does_what_it_can_and_says_so)
{
	struct tm_options options = read_one("TIERMALLOC_REPORT=leak");

	cr_assert_eq(options.report, TM_REPORT_LEAK);
	cr_assert_leq(line_count, 1);
	if (line_count)
		cr_assert_str_eq(lines[0], "TIERMALLOC_REPORT='leak' has its effect in part only, "
					   "this build lacks reports made from ledgers");
	read_one("TIERMALLOC_REPORT=exit");
	cr_assert_eq(line_count, 0);
	read_one("TIERMALLOC_REPORT=leak@LEDGER_REPORT");
	cr_assert_eq(line_count, 1);
}

Test(tunables, an_empty_value_is_no_value)
{
	struct tm_options options = read_one("TIERMALLOC=");

	cr_assert_eq(line_count, 0);
	cr_assert_eq(options.mode, TM_MODE_ON);
}

Test(tunables, the_first_of_two_entries_counts_as_with_getenv)
{
	const char *const entries[] = {"TIERMALLOC_LOG=quiet", "TIERMALLOC_LOG=info", NULL};

	cr_assert_eq(read_env(entries).log, TM_LOG_QUIET);
}

Test(tunables, an_empty_environment_and_entries_without_a_value_do_no_harm)
{
	const char *const none[] = {NULL};
	const char *const odd[] = {"", "=", "TIERMALLOC", "TIERMALLOC_LOG", "T", NULL};

	read_env(none);
	cr_assert_eq(line_count, 0);
	read_env(odd);
	cr_assert_eq(line_count, 0);
}

Test(tunables, a_long_value_with_newlines_stays_on_one_short_line)
{
	char entry[1024] = "TIERMALLOC_LOG=";

	memset(entry + strlen(entry), 'a', 900);
	entry[30] = '\n';
	read_one(entry);
	cr_assert_eq(line_count, 1);
	cr_assert_null(strchr(lines[0], '\n'));
	cr_assert_lt(strlen(lines[0]), 300);
	cr_assert_not_null(strstr(lines[0], "..."));
}

Test(tunables, other_allocators_variables_are_translated_where_ours_say_nothing)
{
	const char *const entries[] = {
		"MALLOC_TRIM_THRESHOLD_=65536",
		"MALLOC_ARENA_MAX=2",
		"MALLOC_CONF=oversize_threshold:1,dirty_decay_ms:9000000000,muzzy_decay_ms:-1",
		"TCMALLOC_RELEASE_RATE=2.5",
		"MIMALLOC_VERBOSE=1",
		NULL};
	struct tm_options options = read_env(entries);

	cr_assert_eq(line_count, 0);
	cr_assert_eq(info_count, 5);
	cr_assert_eq(options.keep_bytes[TM_TIER_SESSION], 65536);
	cr_assert_eq(options.keep_bytes[TM_TIER_TEMPORARY], 65536);
	cr_assert_eq(options.keep_bytes[TM_TIER_PERSISTENT], TM_OPTION_AUTO);
	cr_assert_eq(options.source[TM_TUNABLE_TIERMALLOC_SESSION_KEEP], TM_SOURCE_FOREIGN);
	cr_assert_eq(options.retain, 1);
	cr_assert_eq(options.decay_percent, 40);
}

Test(tunables, ordinary_values_of_other_allocators_change_nothing)
{
	const char *const entries[] = {"MALLOC_CONF=dirty_decay_ms:5000,background_thread:true",
				       "MALLOC_TRIM_THRESHOLD_=nonsense", "TCMALLOC_RELEASE_RATE=1",
				       NULL};
	struct tm_options options = read_env(entries);

	cr_assert_eq(options.retain, 0);
	cr_assert_eq(options.keep_bytes[TM_TIER_SESSION], TM_OPTION_AUTO);
	cr_assert_eq(options.decay_percent, 100);
}

Test(tunables, a_pool_list_comes_apart)
{
	struct tm_str rest = tm_str_of("768K*64@session,12M*8");
	struct tm_tunables_pool pool;

	cr_assert_eq(tm_tunables_next_pool(&rest, &pool), 1);
	cr_assert_eq(pool.bytes, 768 << 10);
	cr_assert_eq(pool.count, 64);
	cr_assert_eq(pool.tier, TM_TIER_SESSION);
	cr_assert_eq(tm_tunables_next_pool(&rest, &pool), 1);
	cr_assert_eq(pool.bytes, 12 << 20);
	cr_assert_eq(pool.tier, TM_TIER_ALL);
	cr_assert_eq(tm_tunables_next_pool(&rest, &pool), 0);
}
