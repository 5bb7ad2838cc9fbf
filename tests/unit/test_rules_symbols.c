/* SPDX-License-Identifier: MIT */
/* rules_symbols: functions that a rule names, found in a file's bytes. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policies/rules_symbols.h"

static struct tm_rule memory[4];
static struct tm_rules rules;
static struct tm_rules_range room[64];
static struct tm_rules_ranges ranges;
static unsigned char *file;
static size_t bytes;

/* Something that a rule can name in this very program. */
__attribute__((noinline)) int rules_symbols_subject(int x);
__attribute__((noinline)) int rules_symbols_subject(int x)
{
	return x + 1;
}

static void read_self(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;

	cr_assert(fd >= 0 && fstat(fd, &st) == 0);
	bytes = (size_t)st.st_size;
	file = malloc(bytes);
	for (size_t done = 0; done < bytes;) {
		ssize_t n = read(fd, file + done, bytes - done);

		cr_assert(n > 0);
		done += (size_t)n;
	}
	close(fd);
}

static void begin(const char *text)
{
	struct tm_rules_text t = {"r", tm_str_of(text), '\n'};

	tm_rules_init(&rules, memory, 4);
	cr_assert(tm_rules_parse(&rules, &t, NULL, NULL) > 0);
	ranges = (struct tm_rules_ranges){.range = room, .capacity = 64};
}

static uint32_t add(uintptr_t bias)
{
	return tm_rules_symbols_add(&rules, &ranges,
				    &(struct tm_rules_module){.name = tm_str_of("unit"),
							      .file = file,
							      .file_bytes = bytes,
							      .load_bias = bias},
				    NULL);
}

static void nested(const char *linkage, const char *want)
{
	char buf[64] = "";
	size_t len = tm_rules_symbols_nested(tm_str_of(linkage), buf, sizeof(buf));

	cr_assert_str_eq(len ? buf : "", want, "%s", linkage);
	cr_assert_eq(len, strlen(want));
}

Test(rules_symbols, nested_names_are_read_from_plain_manglings)
{
	nested("_ZN11PrefixCache6insertEiPKc", "PrefixCache::insert");
	nested("_ZNK1A1B1fEv", "A::B::f");
	nested("_ZN1A1B1fEv", "A::B::f");
	nested("_Z1fv", "");
	nested("main", "");
	nested("_ZN1AC1Ev", "");
	nested("_ZN1AIiE1fEv", "");
	nested("_ZN1AplEi", "");
	nested("_ZN99A1fEv", "");
	nested("_ZN", "");
	nested("_ZN0", "");
	nested("_ZN99999999999999999999999E", "");
	nested("_ZN70xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxE", "");
}

Test(rules_symbols, a_function_is_found_where_it_lies)
{
	read_self();
	begin("symbol=rules_symbols_subj* -> tier=session\nsymbol=no_such -> tier=temporary\n");
	cr_assert_eq(add(0), 1);
	cr_assert_eq(room[0].rule, 0);
	cr_assert(room[0].end > room[0].begin);
	/* Only the offset within a page is known without the loader. */
	cr_assert_eq(room[0].begin & 0xfff, (uintptr_t)rules_symbols_subject & 0xfff);
	ranges.count = 0;
	cr_assert_eq(add(0x10000), 1);
	cr_assert_eq(room[0].begin & 0xfff, (uintptr_t)rules_symbols_subject & 0xfff);
	cr_assert_eq(rules_symbols_subject(1), 2);
}

Test(rules_symbols, the_module_of_the_same_rule_must_match)
{
	read_self();
	begin("module=lib* symbol=rules_symbols_subject -> tier=session\n");
	cr_assert_eq(add(0), 0);
	begin("module=un* symbol=rules_symbols_subject -> tier=session\n");
	cr_assert_eq(add(0), 1);
}

Test(rules_symbols, what_finds_no_room_is_counted)
{
	uint32_t lost = 0;

	read_self();
	begin("symbol=* -> tier=session\n");
	ranges.capacity = 3;
	cr_assert_eq(tm_rules_symbols_add(&rules, &ranges,
					  &(struct tm_rules_module){.name = tm_str_of("unit"),
								    .file = file,
								    .file_bytes = bytes,
								    .load_bias = 0},
					  &lost),
		     3);
	cr_assert(lost > 100);
}

/* Broken files: the copy ends where the file does, so that a tool sees what is read behind it. */
Test(rules_symbols, broken_files_are_survived)
{
	unsigned char *part;
	uint64_t x = 7;

	read_self();
	begin("symbol=rules* -> tier=session\n");
	for (size_t cut = 0; cut < bytes; cut += bytes / 97 + 1) {
		part = malloc(cut + 1);
		memcpy(part, file, cut);
		ranges.count = 0;
		tm_rules_symbols_add(&rules, &ranges,
				     &(struct tm_rules_module){.name = tm_str_of("u"),
							       .file = part,
							       .file_bytes = cut,
							       .load_bias = 0},
				     NULL);
		free(part);
	}
	for (int i = 0; i < 200; i++) {
		unsigned char saved[8];
		size_t at;

		x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
		/* The header, or somewhere in the section table. */
		at = i % 2 ? (x >> 33) % 56 : bytes - 8 - (x >> 33) % 2000;
		memcpy(saved, file + at, sizeof(saved));
		for (size_t b = 0; b < sizeof(saved); b++)
			file[at + b] = (unsigned char)(x >> (8 * b));
		ranges.count = 0;
		add(0);
		memcpy(file + at, saved, sizeof(saved));
	}
	ranges.count = 0; /* more functions match than there is room for */
	cr_assert_eq(add(0) > 0, true);
}
