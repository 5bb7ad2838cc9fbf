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
	{"PID", "a process that runs, or one that has ended and left a ledger"},                   \
		{"LEDGER", "a file that a process left: 'tiermalloc ls' lists them"},              \
	{                                                                                          \
		"DIR", "a folder of ledgers: the largest one in it"                                \
	}

#define REPORT                                                                                     \
	TARGET, {"--json", "print the report as JSON and nothing else"},                           \
		{"--html FILE", "write the report as a page"},                                     \
		{"--top N", "entries of each list (20; frag: 8)"},                                 \
		{"--sort KEY", "order of sites: live, objects, alloc, bytes, pinned, growth"},     \
		{"--filter GLOB",                                                                  \
		 "only sites whose name matches, or a function, file or module in their stack"},   \
		{"--since TIME", "count only live objects allocated within TIME (30s, 5m, 2h)"},   \
		{"--site ID",                                                                      \
		 "one site with its whole stack; the beginning of its name is enough"},            \
		{"--who-holds", "with --site: what points to its blocks in a running process"},    \
		{"--no-scan", "leaks: do not ask a running process for a scan"},                   \
		{"--fail-on EXPR",                                                                 \
		 "exit with 3 if it holds: KEY>VALUE such as live>1G or growth>1M/h, more than "   \
		 "one with commas; KEY: growth, unreachable, live, rss, residual, external, "      \
		 "blowup"},                                                                        \
		{"--suppressions FILE",                                                            \
		 "a file of lines leak:PATTERN, in LeakSanitizer's format"},                       \
		{"--debug-dir DIR",                                                                \
		 "search this folder first for debug information, by build-id"},                   \
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
	 "Starts COMMAND with the library, in front of what LD_PRELOAD holds, and exits with its status.",
	 {{"--report KIND",
	   "when it has ended, even by a signal, print a report to standard error: leak, frag or full"},
	  {"--json FILE", "write the full report as JSON"},
	  {"--html FILE", "write the full report as a page"},
	  {"--fail-on EXPR",
	   "exit with 3 if it holds and COMMAND exited with 0, see 'tiermalloc report --help'"},
	  {"--python",
	   "count Python's objects one by one, and by line (sets PYTHONMALLOC=malloc and TIERMALLOC_PYTHON=on)"},
	  {"--observe",
	   "decide and count, but place blocks as without tiers (sets TIERMALLOC=observe)"},
	  {"--dir DIR", "keep the ledgers in this folder, of mode 700 (sets TIERMALLOC_DIR)"},
	  {"--rules FILE",
	   "rules that say which blocks go to which tier, a file or the rules themselves (sets TIERMALLOC_RULES)"},
	  {"--profile FILE",
	   "what 'tiermalloc tune' wrote about an earlier run (sets TIERMALLOC_PROFILE)"}},
	 "that of COMMAND, also of its death by a signal; 1 it cannot be started; 2 wrong usage; 3 --fail-on holds"},
	{"config",
	 "[--man]",
	 "show every variable and its value",
	 "Prints each variable: its value in this environment, its default, where the value comes from and what it means.",
	 {{"--man", "print the page tiermalloc-tunables(5) in mdoc"}},
	 NULL},
	{"doctor",
	 "[COMMAND|PID]",
	 "say what keeps the library from working here",
	 "Without argument examines this machine, with COMMAND the file of that program (nothing is run), with PID that process.",
	 {{"COMMAND", "a program, looked up in PATH"}, {"PID", "a process that runs"}},
	 "0 no problem; 1 a problem was found; 2 wrong usage"},
	{"report",
	 REPORT_USAGE,
	 "show which call sites hold how much memory",
	 "Prints the call sites and what they hold, tiers, pools, sizes, and what the resident memory consists of.",
	 {REPORT},
	 "0 success; 1 trouble; 2 wrong usage or no ledger; 3 --fail-on holds"},
	{"leaks",
	 REPORT_USAGE,
	 "show what leaks",
	 "Prints sites that grow, blocks that nothing points to, and what was live at exit. A running process is asked for two scans first.",
	 {REPORT},
	 "0 nothing found; 1 trouble; 2 wrong usage or no ledger; 3 a leak is listed or --fail-on holds; 4 too early to decide"},
	{"frag",
	 REPORT_USAGE,
	 "show what fragments the memory",
	 "Prints how much more memory than requested live blocks take, by tier and size class, which sites keep nearly empty pages in use, and rules that would help.",
	 {REPORT},
	 "0 success; 1 trouble; 2 wrong usage or no ledger; 3 --fail-on holds"},
	{"explain",
	 "[--top N] [--debug-dir DIR] [--json] PID|LEDGER|DIR",
	 "show the tier of each call site, and why",
	 "Prints for each call site the tier of its next block and what decided that, then the rules that decided nothing.",
	 {TARGET,
	  {"--top N", "so many call sites (20)"},
	  {"--debug-dir DIR", "search this folder first for debug information, by build-id"},
	  {"--json", "print the report as JSON, in which sites have their tier and authority"}},
	 NULL},
	{"ack",
	 "[SITE --cap SIZE]",
	 "do not report a known site as a leak",
	 "From now on SITE is listed as watched, not as a leak, until it holds more than SIZE. Without arguments prints the acknowledged sites.",
	 {{"SITE", "its name, as leaks prints it: s:7f3a"},
	  {"--cap SIZE", "such as 64M; 0 takes it back"}},
	 NULL},
	{"top",
	 "[-p PID] [-d TIME] [-n COUNT]",
	 "watch who holds memory",
	 "Shows the sites that hold most memory, and device memory, and updates them until q is typed; in a pipe prints once.",
	 {{"-p PID",
	   "a process, a ledger or a folder (by default the folder of ledgers; of a folder the largest)"},
	  {"-d TIME", "time between updates (1s)"},
	  {"-n COUNT", "stop after so many updates"}},
	 NULL},
	{"diff",
	 "[--json] [--html FILE] [--top N] A B",
	 "show what changed between two reports",
	 "Prints by call site how memory changed from A to B: two ledgers, or reports of different moments saved with --json.",
	 {{"--json", "print the report as JSON, in which sites also have their former figures"},
	  {"--html FILE", "write a page: growth in red, shrinkage in blue"},
	  {"--top N", "so many sites (20)"}},
	 NULL},
	{"ls",
	 "[DIR]",
	 "list ledgers",
	 "Lists the ledgers in DIR, those of running processes first.",
	 {{"DIR", "by default TIERMALLOC_DIR, else /dev/shm/tiermalloc-UID"}},
	 NULL},
	{"gc",
	 "[--age TIME] [--size SIZE] [--dry-run] [DIR]",
	 "remove ledgers of ended processes",
	 "Removes ledgers of ended processes that are too old, then the oldest until the rest is small enough. Nothing else.",
	 {{"DIR", "by default TIERMALLOC_DIR, else /dev/shm/tiermalloc-UID"},
	  {"--age TIME", "older than this (24h)"},
	  {"--size SIZE", "what all that stay may take (256M)"},
	  {"--dry-run", "only say what would be removed"}},
	 NULL},
	{"merge",
	 "LEDGER|DIR... -o FILE",
	 "make one report about several processes",
	 "Adds up several processes' figures and writes one report in JSON, for 'report --from-json' and diff.",
	 {{"LEDGER", "a ledger, or a report saved with --json"},
	  {"DIR", "all ledgers of a folder"},
	  {"-o FILE", "the file to write ('-': standard output)"}},
	 NULL},
	{"tune",
	 "LEDGER... -o RULES",
	 "write what was learned as rules",
	 "Writes the tiers that these processes learned for their call sites as rules, each with its evidence.",
	 {{"-o RULES", "the file for TIERMALLOC_RULES ('-': standard output)"}},
	 NULL},
	{"trace",
	 "-o TRACE [--] COMMAND [ARGUMENT...]\n"
	 "\f-o TRACE --convert RECORDING",
	 "record all requests of a program",
	 "Runs COMMAND and records every request and free, which takes 56 bytes a call in /tmp meanwhile.",
	 {{"-o TRACE", "the file to write"},
	  {"--convert RECORDING",
	   "run nothing, but convert a recording that TIERMALLOC_TRACE made"}},
	 "that of COMMAND; 1 nothing was recorded or written; 2 wrong usage"},
	{"replay",
	 "[--rules FILE] [--steps] [--top N] TRACE",
	 "show the tiers that a trace would get",
	 "Runs the library's decisions over a recorded trace, plain or compressed by xz, and prints how good they were.",
	 {{"--rules FILE",
	   "apply these rules first: a file, or the rules themselves, see tiermalloc-rules(5)"},
	  {"--steps",
	   "use the trace's marks of steps, as a program's calls of tiermalloc_step() would"},
	  {"--top N", "also print the N call sites with the most bytes"}},
	 NULL},
	{"export",
	 "--format FORMAT [--view VIEW] [--top-sites N]\n"
	 "[--include-source] [--uncompressed]\n"
	 "PID|LEDGER|DIR -o FILE\n"
	 "\f--schema",
	 "write a ledger for another tool",
	 "Writes a ledger, or a report saved with --json, in another tool's format.",
	 {TARGET,
	  {"--format FORMAT",
	   "pprof, folded, speedscope, chrome, prometheus, heap_v2, json or html"},
	  {"-o FILE",
	   "the file to write, which appears whole or not at all ('-': standard output)"},
	  {"--view VIEW", "for folded: live, growth, alloc, temporary, pinned or unreachable"},
	  {"--top-sites N", "for prometheus: also the N largest sites"},
	  {"--include-source", "for html: keep the command line and folders of files"},
	  {"--uncompressed", "for html: a page for browsers older than 2023"},
	  {"--schema", "print the JSON Schema of reports"}},
	 NULL},
	{"serve",
	 "[--listen ADDR:PORT] [--dir DIR] [--top-sites N]",
	 "serve metrics and profiles over HTTP",
	 "Serves the ledgers of a folder: /metrics, /debug/pprof/heap?pid=PID, and a list at /. There is no login.",
	 {{"--listen ADDR:PORT", "where to listen (127.0.0.1:9471); port 0 takes a free one"},
	  {"--dir DIR", "by default TIERMALLOC_DIR, else /dev/shm/tiermalloc-UID"},
	  {"--top-sites N", "also metrics of the N largest sites of each ledger"}},
	 NULL},
	{"symbols",
	 "[--debug-dir DIR] PID|LEDGER|DIR",
	 "show which files have names of functions",
	 "Says for each file in the ledger's call stacks whether its functions can be named, or why not.",
	 {TARGET,
	  {"--debug-dir DIR", "search this folder first for debug information, by build-id"}},
	 NULL},
	{"help",
	 "[COMMAND]",
	 "print this list, or the help of a command",
	 "The same as 'tiermalloc --help' and 'tiermalloc COMMAND --help'.",
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
	print_words(13, 13,
		    h->ends ? h->ends
			    : "0 success; 1 trouble; 2 wrong usage, or an input of another kind");
	puts("See tiermalloc(1).");
	return true;
}

void tm_help_print_all(void)
{
	puts("usage: tiermalloc COMMAND [ARGUMENT...]\n");
	for (size_t i = 0; i < TM_ARRAY_LEN(all); i++)
		printf("  tiermalloc %-8s  %s\n", all[i].verb, all[i].brief);
	puts("\n"
	     "Options of a command: tiermalloc COMMAND --help. The release: tiermalloc --version.\n"
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
