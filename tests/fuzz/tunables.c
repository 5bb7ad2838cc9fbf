/* SPDX-License-Identifier: MIT */
/* core: yes */
/*
 * Random environments: every option stays in its range, texts stay in the lent store, every complaint
 * is one line that fits. Seeds are printed with a failure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/assert.h"
#include "shim/base/tunables.h"
#include "tests/fuzz/roll.h"

#define ENTRIES 6
#define ENTRY_MAX 200

static const char *const pieces[] = {
	"auto",  "none",        "off",     "on",
	"never", "always",      "observe", "sample=",
	"all",   "alloc=",      "free=",   "0xa5",
	"1",     "16",          "4096",    "99999999999999999999",
	"64K",   "1.5G",        ".5s",     "10m",
	"8h",    "ms",          "*",       "@session",
	"@",     ",",           ":",       "\\:",
	"\\\\",  "\\",          "=",       "-",
	"|",     "huge=",       "log=",    "pools=",
	"cuda",  "info",        "quiet",   "lib*",
	"[a-",   "]",           "?",       " ",
	"\n",    "\t",          "\x7f",    "\xff",
	"leak",  "leak@LEDGER",
};

static size_t put(char *to, size_t used, const char *text)
{
	size_t len = strlen(text);

	if (used + len >= ENTRY_MAX)
		return used;
	memcpy(to + used, text, len + 1);
	return used + len;
}

static void make_entry(char *entry)
{
	size_t used = 0;

	switch (roll(8)) {
	case 0: used = put(entry, used, "TIERMALLOC_CONF="); break;
	case 1: used = put(entry, used, "TIERMALLOC_"); break;
	case 2:
		used = put(entry, used,
			   roll(2) ? "MALLOC_CONF=dirty_decay_ms:" : "TCMALLOC_RELEASE_RATE=");
		break;
	default:
		used = put(entry, used, tm_tunables_rows[roll(TM_TUNABLE_COUNT)].name);
		used = put(entry, used, "=");
	}
	for (uint32_t n = roll(8); n > 0; n--)
		used = put(entry, used, pieces[roll(sizeof(pieces) / sizeof(pieces[0]))]);
	entry[used] = '\0';
}

static void check_line(void *context, const struct tm_tunables_problem *problem)
{
	char line[1024];
	size_t len = tm_tunables_describe(line, sizeof(line), problem);

	(void)context;
	must(len < sizeof(line), "a complaint is too long");
	for (size_t i = 0; i < len; i++)
		must(line[i] != '\n' && line[i] != '\0', "a complaint is not one line");
}

static void check_options(const struct tm_options *o, const char *store, size_t size)
{
	const char *texts[] = {o->rules,       o->profile, o->numa_nodes, o->dir,
			       o->report_file, o->target,  o->trace,      o->deepbind_globs};
	char shown[512];

	must(o->mode <= TM_MODE_OBSERVE && o->huge <= TM_HUGE_1G && o->numa <= TM_NUMA_NODES,
	     "words");
	must(o->giveback <= TM_GIVEBACK_EAGER && o->guard <= TM_GUARD_ALL && o->guard_one_in,
	     "words");
	must(o->report <= TM_REPORT_FULL && o->ledger <= TM_LEDGER_DEEP && o->thread <= 1, "words");
	must(o->align_bytes >= 16 && o->align_bytes <= 4096, "align");
	must((o->align_bytes & (o->align_bytes - 1)) == 0, "align");
	must(o->fill_alloc >= -1 && o->fill_alloc <= 255 && o->fill_free <= 255, "fill");
	must(o->decay_percent >= 10 && o->decay_percent <= 1000 && o->retain <= 1, "decay");
	must((o->numa == TM_NUMA_NODES) == (o->numa_nodes != NULL), "nodes");
	must((o->deepbind == TM_DEEPBIND_GLOBS) == (o->deepbind_globs != NULL), "globs");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		must(texts[i] == NULL ||
			     (texts[i] >= store && texts[i] + strlen(texts[i]) < store + size),
		     "a text outside the store");
	for (int i = 0; i < TM_TUNABLE_COUNT; i++)
		must(tm_tunables_print(shown, sizeof(shown), o, (enum tm_tunable)i) > 0, "print");
}

int main(void)
{
	uint64_t runs = getenv("TM_LONG") ? 20000000 : 200000;
	static char entries[ENTRIES][ENTRY_MAX];
	static char store[ENTRIES * ENTRY_MAX + 1];
	char *env[ENTRIES + 1];

	for (run = 0; run < runs; run++) {
		struct tm_tunables_input input = {.env = env, .store = store, .report = check_line};
		struct tm_options options;
		uint32_t count;

		state = run;
		count = roll(ENTRIES + 1);
		for (uint32_t i = 0; i < count; i++) {
			make_entry(entries[i]);
			env[i] = entries[i];
		}
		env[count] = NULL;
		/* Enough, or a little too small. */
		input.store_bytes = tm_tunables_store_bytes(env);
		must(input.store_bytes < sizeof(store), "the store is counted too large");
		if (roll(4) == 0)
			input.store_bytes = roll((uint32_t)input.store_bytes + 1);
		store[input.store_bytes] = 0x5a;
		tm_tunables_read(&options, &input);
		must(store[input.store_bytes] == 0x5a, "written behind the store");
		check_options(&options, store, input.store_bytes);
	}
	return 0;
}
