/* SPDX-License-Identifier: MIT */
#include "tools/analysis/suppressions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/fmt.h"
#include "shim/base/parse.h"
#include "tools/cmd.h"

/* Characters of a line that a message shows, and lines that get a message of their own. */
#define LINE_SHOWN 200
#define MISTAKES_TOLD 10

/* The value of suppressions= in "a=b:suppressions=FILE:c=d". The caller frees it. */
static char *from_environment(void)
{
	struct tm_str rest = tm_str_of(getenv("LSAN_OPTIONS")), item;

	while (tm_parse_next(&rest, ':', &item)) {
		if (tm_str_starts(item, "suppressions="))
			return strndup(item.at + 13, item.len - 13);
	}
	return NULL;
}

/* Converts "^text$" to a glob: an unanchored end may match anything. */
static char *glob_of(const char *pattern, size_t len)
{
	bool from_start = len > 0 && pattern[0] == '^';
	bool to_end = len > 0 && pattern[len - 1] == '$';
	char *glob = malloc(2 * len + 3), *p = glob;

	if (glob == NULL)
		return NULL;
	if (!from_start)
		*p++ = '*';
	for (size_t i = from_start; i < len - to_end; i++) {
		if (pattern[i] == '?' || pattern[i] == '[' || pattern[i] == '\\')
			*p++ = '\\';
		*p++ = pattern[i];
	}
	if (!to_end)
		*p++ = '*';
	*p = '\0';
	return glob;
}

static void add_line(struct tm_suppressions *s, const char *line, size_t *mistakes)
{
	struct tm_str text = tm_str_trim(tm_str_of(line));
	char **wider;

	while (text.len && (text.at[text.len - 1] == '\n' || text.at[text.len - 1] == '\r'))
		text.len--;
	text = tm_str_trim(text);
	if (text.len == 0 || text.at[0] == '#')
		return;
	if (!tm_str_starts(text, "leak:")) {
		char shown[LINE_SHOWN + 4];
		struct tm_fmt_out out = {shown, sizeof(shown), 0};

		if (++*mistakes > MISTAKES_TOLD)
			return;
		tm_fmt_add_escaped(&out, text.at, text.len, LINE_SHOWN);
		tm_say("suppressions: '%s' is not of the form leak:PATTERN", shown);
		return;
	}
	wider = realloc(s->pattern, (s->count + 1) * sizeof(*wider));
	if (wider == NULL)
		return;
	s->pattern = wider;
	s->pattern[s->count] = glob_of(text.at + 5, text.len - 5);
	s->count += s->pattern[s->count] != NULL;
}

int tm_suppressions_read(struct tm_suppressions *s, const char *path)
{
	char *environment = path ? NULL : from_environment();
	size_t mistakes = 0;
	char line[4096];

	memset(s, 0, sizeof(*s));
	if (path == NULL)
		path = environment;
	if (path == NULL)
		return 0;
	FILE *f = fopen(path, "re");
	if (f == NULL) {
		tm_say("cannot read the suppressions '%s': %s", path, strerror(errno));
		free(environment);
		return -1;
	}
	while (fgets(line, sizeof(line), f))
		add_line(s, line, &mistakes);
	if (mistakes > MISTAKES_TOLD)
		tm_say("suppressions: %zu more lines are not of that form",
		       mistakes - MISTAKES_TOLD);
	fclose(f);
	free(environment);
	return 0;
}

void tm_suppressions_free(struct tm_suppressions *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->pattern[i]);
	free(s->pattern);
	memset(s, 0, sizeof(*s));
}

static bool matches(const char *glob, const char *text)
{
	return text && tm_parse_glob(tm_str_of(glob), tm_str_of(text));
}

bool tm_suppressions_match(const struct tm_suppressions *s, const struct tm_document *doc,
			   const struct tm_doc_site *site)
{
	if (s->count == 0 || site->stack >= doc->stacks.count)
		return false;
	const struct tm_doc_numbers *frames = &doc->stacks.at[site->stack].frames;

	for (size_t i = 0; i < frames->count; i++) {
		const struct tm_doc_frame *f = &doc->frames.at[frames->at[i]];
		const char *module =
			f->module < doc->modules.count ? doc->modules.at[f->module].path : NULL;

		for (size_t k = 0; k < s->count; k++) {
			if (matches(s->pattern[k], f->fn) || matches(s->pattern[k], f->symbol) ||
			    matches(s->pattern[k], f->file) || matches(s->pattern[k], module))
				return true;
		}
	}
	return false;
}
