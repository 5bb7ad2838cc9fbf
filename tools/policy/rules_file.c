/* SPDX-License-Identifier: MIT */
/* rules_file: see rules_file.h. */
#include "tools/policy/rules_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/fmt.h"
#include "tools/cmd.h"

#define TEXT_MAX ((size_t)16 << 20)
/* Characters of a rule that are printed. */
#define RULE_SHOWN 500

static char *read_text(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t len = 0, room = 0;
	int err = f ? 0 : errno;

	while (err == 0 && !feof(f)) {
		if (len + 1 >= room) {
			char *more = room >= TEXT_MAX ? NULL : realloc(text, room * 2 + 4096);

			if (more == NULL) {
				err = EFBIG;
				break;
			}
			text = more;
			room = room * 2 + 4096;
		}
		len += fread(text + len, 1, room - len - 1, f);
		if (ferror(f))
			err = errno ? errno : EIO;
	}
	if (f)
		fclose(f);
	if (err != 0) {
		tm_say("'%s' cannot be read: %s", path, strerror(err));
		free(text);
		return NULL;
	}
	text[len] = '\0';
	*ret_len = len;
	return text;
}

static void report(void *context, const struct tm_rules_problem *problem)
{
	struct tm_rules_file *file = context;
	char line[512];

	file->mistakes++;
	tm_rules_describe(line, sizeof(line), problem);
	tm_say("%s", line);
}

int tm_rules_file_open(struct tm_rules_file *file, const char *value)
{
	bool is_inline = tm_rules_is_inline(tm_str_of(value));
	struct tm_rules_text text = {.file = is_inline ? "--rules" : value,
				     .separator = is_inline ? TM_RULES_INLINE : '\n'};
	uint32_t lines;

	*file = (struct tm_rules_file){.name = text.file};
	if (is_inline) {
		text.text = tm_str_of(value);
	} else {
		file->text = read_text(value, &text.text.len);
		if (file->text == NULL)
			return -1;
		text.text.at = file->text;
	}
	lines = tm_rules_count_lines(text.text, text.separator);
	file->memory = calloc(lines, sizeof(*file->memory));
	if (file->memory == NULL) {
		tm_say("there is not enough memory for '%s'", value);
		free(file->text);
		return -1;
	}
	tm_rules_init(&file->rules, file->memory, lines);
	tm_rules_parse(&file->rules, &text, report, file);
	return 0;
}

void tm_rules_file_close(struct tm_rules_file *file)
{
	free(file->memory);
	free(file->text);
	*file = (struct tm_rules_file){0};
}

unsigned tm_rules_file_print_unused(const struct tm_rules_file *file,
				    tm_rules_file_obstacle *obstacle, const void *context)
{
	unsigned unused = 0;

	for (uint32_t i = 0; i < atomic_load(&file->rules.count); i++) {
		const struct tm_rule *rule = &file->rules.rule[i];
		const char *why = obstacle ? obstacle(context, rule) : NULL;

		if (atomic_load(&rule->used))
			continue;
		if (unused++ == 0)
			printf("\nrules that decided nothing:\n");
		char text[RULE_SHOWN + 4];
		struct tm_fmt_out out = {text, sizeof(text), 0};
		tm_fmt_add_escaped(&out, rule->text.at, rule->text.len, RULE_SHOWN);
		printf("  %s:%u: %s", file->name, rule->line, text);
		printf(why ? " (%s)\n" : "\n", why);
	}
	return unused;
}
