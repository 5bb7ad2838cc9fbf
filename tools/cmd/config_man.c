/* SPDX-License-Identifier: MIT */
/* config_man: see config_man.h. */
#include "tools/cmd/config_man.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *meaning;
	const char *details;
} texts[TM_TUNABLE_COUNT] = {
#define T(name, field, kind, words, value, allowed, part, meaning, details) {meaning, details},
#include "shim/base/tunables.def"
#undef T
};

const char *tm_config_man_meaning(enum tm_tunable which)
{
	return texts[which].meaning;
}

/* Changed with the text, not with the day of the build: the page is committed. */
#define PAGE_DATE "October 1, 2025"

static const char head[] =
	".\\\" SPDX-License-Identifier: MIT\n"
	".\\\" Written by 'tiermalloc config --man' from shim/base/tunables.def: do not edit.\n"
	".Dd " PAGE_DATE "\n"
	".Dt TIERMALLOC-TUNABLES 5\n"
	".Os\n"
	".Sh NAME\n"
	".Nm tiermalloc-tunables\n"
	".Nd variables that the tiermalloc library reads\n"
	".Sh DESCRIPTION\n"
	"The library reads its options from the environment, once,\n"
	"before the program's first allocation.\n"
	"Nothing needs to be set.\n"
	"In a program that runs with raised rights (set-user-ID, file capabilities)\n"
	"nothing is read.\n"
	".Pp\n"
	"Sizes are bytes, or take one of the letters\n"
	".Cm K M G T ,\n"
	"powers of 1024:\n"
	".Li 64K , 1.5G .\n"
	"Times take a unit:\n"
	".Li 500ms , 2s , 5m , 1h .\n"
	"Lists are separated by commas.\n"
	"An empty value is the same as none.\n"
	"A relative path means the process's own folder, also in programs that the\n"
	"process starts elsewhere:\n"
	".Ql tiermalloc run\n"
	"makes paths absolute first, and where\n"
	".Ev LD_PRELOAD\n"
	"is set by hand,\n"
	".Li $PWD/FILE\n"
	"does.\n"
	".Pp\n"
	".Ev TIERMALLOC_CONF\n"
	"holds any of the variables as\n"
	".Li key=value:key=value ;\n"
	"a key is the variable's name without prefix, in lower case.\n"
	".Ev TIERMALLOC\n"
	"itself has the key\n"
	".Cm tiermalloc .\n"
	"A colon or backslash in a value is written\n"
	".Li \\e:\n"
	"or\n"
	".Li \\e\\e .\n"
	"A variable of its own wins over\n"
	".Ev TIERMALLOC_CONF .\n"
	".Pp\n"
	"A value that is not allowed, an unknown variable or key, and a variable\n"
	"whose part this build lacks get one line on standard error;\n"
	"the default is used and the program runs on.\n"
	".Pp\n"
	".Ql tiermalloc config\n"
	"shows every variable with its value, its default and where the value comes from.\n"
	".Sh ENVIRONMENT\n"
	".Bl -tag -width Ds\n";

static const char tail[] =
	".El\n"
	".Ss Variables of other allocators\n"
	"These are taken over where they are set and ours are not;\n"
	"the library says so under\n"
	".Ev TIERMALLOC_LOG Ns = Ns Cm info .\n"
	".Bl -tag -width Ds\n"
	".It Ev MALLOC_TRIM_THRESHOLD_\n"
	"Free bytes that the session and temporary tiers keep while idle.\n"
	".It Ev MALLOC_CONF\n"
	"A\n"
	".Cm dirty_decay_ms\n"
	"of -1, or of 1000000000 and more, keeps free memory long.\n"
	".It Ev TCMALLOC_RELEASE_RATE\n"
	"Scales the times until idle memory goes back:\n"
	"10 is ten times as fast as 1, 0 keeps it long.\n"
	".El\n"
	".Sh EXAMPLES\n"
	"Let only the Python programs of a tree of processes report at their end:\n"
	".Bd -literal -offset indent\n"
	"TIERMALLOC_REPORT=exit TIERMALLOC_TARGET='python*' tiermalloc run -- ./serve.sh\n"
	".Ed\n"
	".Pp\n"
	"The same options in one variable:\n"
	".Bd -literal -offset indent\n"
	"TIERMALLOC_CONF='report=exit:target=python*' tiermalloc run -- ./serve.sh\n"
	".Ed\n"
	".Pp\n"
	"See what would be in force:\n"
	".Bd -literal -offset indent\n"
	"TIERMALLOC_GIVEBACK=eager tiermalloc config\n"
	".Ed\n"
	".Sh DIAGNOSTICS\n"
	".Bl -diag\n"
	".It tiermalloc: bad value 'VALUE' of VARIABLE, use ...\n"
	"The default is used.\n"
	".It tiermalloc: unknown variable NAME='VALUE', did you mean NAME\n"
	"The variable is ignored.\n"
	".It tiermalloc: unknown key 'KEY' with value 'VALUE' in TIERMALLOC_CONF, ...\n"
	"The item is ignored, the others count.\n"
	".It tiermalloc: VARIABLE='VALUE' has no effect, this build lacks PART\n"
	".It tiermalloc: VARIABLE='VALUE' has its effect in part only, this build lacks PART\n"
	"The part is planned, or was switched off when the library was configured.\n"
	".El\n"
	".Sh SEE ALSO\n"
	".Xr tiermalloc 1 ,\n"
	".Xr tiermalloc 7\n";

/* Width to which lines of the page are filled. */
#define PAGE_WIDTH 76

/* Prints one word; no line may begin with what mdoc takes for a request. */
static void print_word(const char *word, size_t len, size_t *used)
{
	if (*used && *used + 1 + len > PAGE_WIDTH) {
		putchar('\n');
		*used = 0;
	} else if (*used) {
		putchar(' ');
		(*used)++;
	}
	if (*used == 0 && (word[0] == '.' || word[0] == '\''))
		fputs("\\&", stdout);
	for (size_t i = 0; i < len; i++) {
		if (word[i] == '\\')
			fputs("\\e", stdout);
		else
			putchar(word[i]);
	}
	*used += len;
}

/* Prints plain text as mdoc: each sentence starts a line, an empty line a paragraph. */
static void print_text(const char *text)
{
	size_t used = 0;

	while (*text) {
		size_t len = strcspn(text, " \n");

		if (len)
			print_word(text, len, &used);
		if (len && text[len - 1] == '.' && text[len] == ' ') {
			putchar('\n');
			used = 0;
		}
		text += len;
		if (text[0] == '\n' && text[1] == '\n') {
			fputs("\n.Pp\n", stdout);
			used = 0;
			text++;
		}
		text += *text != '\0';
	}
	if (used)
		putchar('\n');
}

/* Prints a phrase as a sentence: capital letter and full stop. */
static void print_sentence(const char *phrase)
{
	char line[256];

	snprintf(line, sizeof(line), "%c%s.", toupper((unsigned char)phrase[0]), phrase + 1);
	print_text(line);
}

static void print_row(enum tm_tunable which)
{
	const struct tm_tunable_row *row = &tm_tunables_rows[which];
	char line[256];

	printf(".It Ev %s\n", row->name);
	print_sentence(texts[which].meaning);
	snprintf(line, sizeof(line), "Allowed: %s; the default is %s.", row->allowed, row->value);
	print_text(line);
	if (texts[which].details[0]) {
		puts(".Pp");
		print_text(texts[which].details);
	}
	if (!row->built)
		printf(".Pp\nNot in this build, which lacks %s.\n", tm_tunables_part(row));
}

void tm_config_man_print(void)
{
	fputs(head, stdout);
	for (int i = 0; i < TM_TUNABLE_COUNT; i++)
		print_row((enum tm_tunable)i);
	fputs(tail, stdout);
}
