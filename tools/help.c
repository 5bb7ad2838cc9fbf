/* SPDX-License-Identifier: MIT */
#include "tools/help.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 80u
#define INDENT 24u
#define OPTIONS_MAX 16u

struct option {
	const char *name; /* with its value, as "--top N" */
	const char *about;
};

struct help {
	const char *verb;
	const char *usage; /* after the verb; further lines are further forms */
	const char *brief; /* for the list of all verbs */
	const char *about;
	struct option options[OPTIONS_MAX]; /* arguments as well, which do not begin with '-' */
	const char *ends;                   /* exit statuses; NULL: 0, 1 and 2, as for all verbs */
};

#define TARGET                                                                                     \
	{"PID", "a process that runs, or by its number one that has ended"},                       \
		{"LEDGER", "the file that a process left, see tiermalloc ls"},                     \
	{                                                                                          \
		"DIR", "of a folder of ledgers, the largest"                                       \
	}

#define REPORT                                                                                     \
	TARGET, {"--json", "print the report document and nothing else"},                          \
		{"--html FILE", "write the report as a page"},                                     \
		{"--top N", "entries of each list (20; frag: 8)"},                                 \
		{"--sort KEY", "order of sites: live, objects, alloc, bytes, pinned, growth"},     \
		{"--filter GLOB",                                                                  \
		 "only sites whose name, or a function, file or module of whose stack, matches"},  \
		{"--since TIME", "count live objects only if they are that young (30s, 5m, 2h)"},  \
		{"--site ID", "one site with its whole stack; the beginning of its name will do"}, \
		{"--who-holds", "with --site: what points to its blocks in a running process"},    \
		{"--no-scan", "leaks: ask a running process for no scan"},                         \
		{"--fail-on EXPR",                                                                 \
		 "end with 3 where KEY>VALUE holds, joined by commas; KEY: growth, unreachable, "  \
		 "live, rss, residual, external, blowup"},                                         \
		{"--suppressions FILE", "lines leak:PATTERN, as LeakSanitizer has them"},          \
		{"--debug-dir DIR", "look for debug information there first, by build-id"},        \
	{                                                                                          \
		"--from-json FILE", "print a report that was saved with --json"                    \
	}

#define REPORT_USAGE "[OPTION...] PID|LEDGER|DIR"

static const struct help all[] = {
	{"run",
	 "[--python] [--observe] [--report leak|frag|full]\n"
	 "[--json FILE] [--html FILE] [--fail-on EXPR] [--dir DIR]\n"
	 "[--rules FILE] [--profile FILE] [--] COMMAND [ARGUMENT...]",
	 "run a program with the library",
	 "Starts COMMAND with the library in front of what LD_PRELOAD holds, and ends as it ends.",
	 {{"--report KIND",
	   "after its end, by whatever end: leak, frag or full, on standard error"},
	  {"--json FILE", "write that report as a document"},
	  {"--html FILE", "write that report as a page"},
	  {"--fail-on EXPR", "end with 3 where it holds and COMMAND ended with 0"},
	  {"--python", "PYTHONMALLOC=malloc and TIERMALLOC_PYTHON=on: objects and lines of Python"},
	  {"--observe", "TIERMALLOC=observe: decide and account, place as without tiers"},
	  {"--dir DIR", "TIERMALLOC_DIR: where ledgers live"},
	  {"--rules FILE", "TIERMALLOC_RULES: which blocks go to which tier; or rules with '->'"},
	  {"--profile FILE", "TIERMALLOC_PROFILE: what tune wrote of an earlier run"}},
	 "COMMAND's own status, by a signal too; 1 it cannot be started; 2 usage; 3 --fail-on holds"},
	{"config",
	 "[--man]",
	 "show every variable and its value",
	 "Prints each variable with its value here and now, its default, where the value comes from and what it means.",
	 {{"--man", "print the page tiermalloc-tunables(5) in mdoc"}},
	 NULL},
	{"doctor",
	 "[COMMAND|PID]",
	 "say what stands in the way here",
	 "Without argument looks at this machine, with a COMMAND at its file (nothing is run), with a PID at the process.",
	 {{"COMMAND", "a program, found as the shell finds it"}, {"PID", "a process that runs"}},
	 "0 nothing stands in the way; 1 a problem was found; 2 usage"},
	{"report",
	 REPORT_USAGE,
	 "say who holds what",
	 "Prints call sites by what they hold, tiers, pools, sizes, and what the resident memory consists of.",
	 {REPORT},
	 "0; 1 trouble; 2 usage or no ledger; 3 --fail-on holds"},
	{"leaks",
	 REPORT_USAGE,
	 "say what leaks",
	 "Prints sites that grow, blocks that nothing points to, and what was live at the end. Asks a running process for two scans first.",
	 {REPORT},
	 "0 nothing found; 1 trouble; 2 usage or no ledger; 3 a leak is listed or --fail-on holds; 4 too early to decide"},
	{"frag",
	 REPORT_USAGE,
	 "say what fragments",
	 "Prints what live blocks cost beyond what was asked for, by tier and size class, who pins pages, and rules that would help.",
	 {REPORT},
	 "0; 1 trouble; 2 usage or no ledger; 3 --fail-on holds"},
	{"explain",
	 "[--top N] [--debug-dir DIR] [--json] PID|LEDGER|DIR",
	 "say why blocks lie where they do",
	 "Prints for each call site the tier of its next block, who decided that, and rules that decided nothing.",
	 {TARGET,
	  {"--top N", "call sites (20)"},
	  {"--debug-dir DIR", "look for debug information there first, by build-id"},
	  {"--json", "print the report document, in which sites have their tier and authority"}},
	 NULL},
	{"ack",
	 "[SITE --cap SIZE]",
	 "be silent about a site that is known",
	 "Lists SITE as watched, not as a leak, until it holds more than SIZE. Alone, prints what is acknowledged.",
	 {{"SITE", "its name, as leaks prints it: s:7f3a"},
	  {"--cap SIZE", "a number with K, M, G or T; 0 takes it back"}},
	 NULL},
	{"top",
	 "[-p PID] [-d TIME] [-n COUNT]",
	 "who holds memory, live",
	 "Prints the sites that hold most and what lies on devices, again and again, until q is typed; in a pipe once.",
	 {{"-p PID", "a process, a ledger or a folder (the ledgers' folder: its largest)"},
	  {"-d TIME", "between pictures (1s)"},
	  {"-n COUNT", "so many pictures"}},
	 NULL},
	{"diff",
	 "[--json] [--html FILE] [--top N] A B",
	 "say what became more",
	 "Prints by call site what became more from A to B: two ledgers, or reports saved with --json at two moments.",
	 {{"--json", "print the report document, in which sites carry what they were"},
	  {"--html FILE", "write a page: more in red, less in blue"},
	  {"--top N", "sites (20)"}},
	 NULL},
	{"ls",
	 "[DIR]",
	 "list ledgers",
	 "Lists the ledgers in DIR, those of running processes first.",
	 {{"DIR", "by default TIERMALLOC_DIR, else /dev/shm/tiermalloc-UID"}},
	 NULL},
	{"gc",
	 "[--age TIME] [--size SIZE] [--dry-run] [DIR]",
	 "remove those of ended processes",
	 "Removes ledgers of ended processes that are too old, and the oldest beyond a sum. Nothing else.",
	 {{"DIR", "by default TIERMALLOC_DIR, else /dev/shm/tiermalloc-UID"},
	  {"--age TIME", "older than this (24h)"},
	  {"--size SIZE", "of all that stay (256M)"},
	  {"--dry-run", "only say what would go"}},
	 NULL},
	{"merge",
	 "LEDGER|DIR... -o FILE",
	 "a process tree as one report",
	 "Adds the accounts of several processes up, as one report in JSON for --from-json and diff.",
	 {{"LEDGER", "a ledger, or a report saved with --json"},
	  {"DIR", "all ledgers of a folder"},
	  {"-o FILE", "where to ('-': standard output)"}},
	 NULL},
	{"tune",
	 "LEDGER... -o RULES",
	 "write what runs learned as rules",
	 "Writes the tiers that these processes learned for their call sites as rules, each with its evidence.",
	 {{"-o RULES", "the file for TIERMALLOC_RULES ('-': standard output)"}},
	 NULL},
	{"trace",
	 "-o TRACE [--] COMMAND [ARGUMENT...]\n"
	 "\f-o TRACE --convert RECORDING",
	 "record all requests of a program",
	 "Runs COMMAND and records every request and free; takes 56 bytes a call in /tmp meanwhile.",
	 {{"-o TRACE", "the file"},
	  {"--convert RECORDING", "no command: a recording that TIERMALLOC_TRACE made"}},
	 "COMMAND's own status; 1 nothing was recorded or written; 2 usage"},
	{"replay",
	 "[--rules FILE] [--steps] [--top N] TRACE",
	 "say where a trace would go",
	 "Runs the code that decides in the library over a recorded trace, plain or compressed by xz.",
	 {{"--rules FILE", "rules in front, see tiermalloc-rules(5); or rules with '->'"},
	  {"--steps", "tell the policies of the marks, as tiermalloc_step() does"},
	  {"--top N", "also the N call sites with the most bytes"}},
	 NULL},
	{"export",
	 "--format FORMAT [--view VIEW] [--top-sites N]\n"
	 "[--include-source] [--uncompressed]\n"
	 "PID|LEDGER|DIR -o FILE\n"
	 "\f--schema",
	 "write it for another tool",
	 "Writes what a ledger, or a report saved with --json, holds in another tool's format.",
	 {TARGET,
	  {"--format FORMAT",
	   "pprof, folded, speedscope, chrome, prometheus, heap_v2, json or html"},
	  {"-o FILE", "appears whole or not at all ('-': standard output)"},
	  {"--view VIEW",
	   "folded, speedscope: live, growth, alloc, temporary, pinned or unreachable"},
	  {"--top-sites N", "prometheus: also the N largest sites"},
	  {"--include-source", "html: keep the command line and folders of files"},
	  {"--uncompressed", "html: for browsers older than 2023"},
	  {"--schema", "print the JSON Schema of reports"}},
	 NULL},
	{"serve",
	 "[--listen ADDR:PORT] [--dir DIR] [--top-sites N]",
	 "metrics and profiles of all, over HTTP",
	 "Answers for every ledger of a folder: /metrics, /debug/pprof/heap?pid=PID, / is a list. There is no login.",
	 {{"--listen ADDR:PORT", "where (127.0.0.1:9471); port 0 takes a free one"},
	  {"--dir DIR", "by default TIERMALLOC_DIR, else /dev/shm/tiermalloc-UID"},
	  {"--top-sites N", "also the N largest sites of each"}},
	 NULL},
	{"symbols",
	 "[--debug-dir DIR] PID|LEDGER|DIR",
	 "say whose functions can be told",
	 "Says of each file in the ledger's stacks whether its functions can be told, or why not.",
	 {TARGET, {"--debug-dir DIR", "look for debug information there first, by build-id"}},
	 NULL},
	{"help",
	 "[COMMAND]",
	 "this list, or what a command takes",
	 "The same as --help, of the whole or behind a command.",
	 {{NULL, NULL}},
	 NULL},
};

/* Prints the words of "text" from column "at" on, in lines of COLUMNS that begin at "indent". */
static void print_words(unsigned at, unsigned indent, const char *text)
{
	bool first = true;

	for (; *text; first = false) {
		unsigned n = (unsigned)strcspn(text, " ");

		if (!first && at + 1 + n > COLUMNS) {
			printf("\n%*s", (int)indent, "");
			at = indent;
			first = true;
		}
		printf("%s%.*s", first ? "" : " ", (int)n, text);
		at += n + !first;
		text += n + (text[n] == ' ');
	}
	putchar('\n');
}

static void print_option(const struct option *o)
{
	int n = printf("  %s", o->name);

	if (n + 2 > (int)INDENT) {
		putchar('\n');
		n = 0;
	}
	printf("%*s", (int)INDENT - n, "");
	print_words(INDENT, INDENT, o->about);
}

/* Prints the usage; a form feed separates the forms of a call. */
static void print_usage(const struct help *h)
{
	int n = printf("usage: tiermalloc %s ", h->verb);

	for (const char *c = h->usage; *c; c++) {
		if (*c == '\f')
			printf("       tiermalloc %s ", h->verb);
		else if (*c == '\n' && c[1] != '\f')
			printf("\n%*s", n, "");
		else
			putchar(*c);
	}
	putchar('\n');
}

static const struct help *find(const char *verb)
{
	for (size_t i = 0; i < TM_ARRAY_LEN(all); i++) {
		if (strcmp(verb, all[i].verb) == 0)
			return &all[i];
	}
	return NULL;
}

bool tm_help_print(const char *verb)
{
	const struct help *h = find(verb);

	if (h == NULL)
		return false;
	print_usage(h);
	putchar('\n');
	print_words(0, 0, h->about);
	putchar('\n');
	for (size_t i = 0; i < OPTIONS_MAX && h->options[i].name; i++)
		print_option(&h->options[i]);
	print_option(&(struct option){"--help", "print this"});
	printf("\nexit status: ");
	print_words(13, 13, h->ends ? h->ends : "0; 1 trouble; 2 usage, or an input that is none");
	puts("See tiermalloc(1).");
	return true;
}

void tm_help_print_all(void)
{
	puts("usage: tiermalloc COMMAND [ARGUMENT...]\n");
	for (size_t i = 0; i < TM_ARRAY_LEN(all); i++)
		printf("  tiermalloc %-8s  %s\n", all[i].verb, all[i].brief);
	puts("\n"
	     "What a command takes: tiermalloc COMMAND --help. The release: tiermalloc --version.\n"
	     "Begin with 'tiermalloc run --report leak -- PROGRAM'. See tiermalloc(1) and (7).");
}

/* What follows an option's name in the table: "" or " VALUE"; NULL: no such option. */
static const char *value_of(const char *verb, const char *option)
{
	const struct help *h = find(verb);
	size_t n = strcspn(option, "=");

	for (size_t i = 0; h && i < OPTIONS_MAX && h->options[i].name; i++) {
		const char *name = h->options[i].name;

		if (strncmp(name, option, n) == 0 && (name[n] == '\0' || name[n] == ' '))
			return name + n;
	}
	return NULL;
}

bool tm_help_has_option(const char *verb, const char *option)
{
	return value_of(verb, option) != NULL;
}

bool tm_help_takes_value(const char *verb, const char *option)
{
	const char *value = value_of(verb, option);

	return value && *value;
}
