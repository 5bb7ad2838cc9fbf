/* SPDX-License-Identifier: MIT */
/*
 * cmd_top: who holds memory, again and again. On a terminal the screen is redrawn until 'q'; in a pipe
 * one picture is printed, or as many as asked for.
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "shim/base/parse.h"
#include "tools/cmd.h"
#include "tools/control.h"
#include "tools/select.h"

struct view {
	const char *target;
	uint64_t interval_ms, pictures; /* 0: until the user ends it */
	bool terminal;
	bool dumb; /* a terminal that cannot be cleared: pictures one below the other */
	uint64_t last_objects, last_ns;
};

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

/* Without what was ever allocated, on a narrow terminal. */
#define NARROW 100u

static int parse(struct view *v, int argc, char **argv)
{
	static char folder[PATH_MAX];

	*v = (struct view){.interval_ms = 1000, .terminal = isatty(1)};
	v->dumb = getenv("TERM") == NULL || strcmp(getenv("TERM"), "dumb") == 0;
	v->pictures = v->terminal ? 0 : 1;
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(argv[i], "-p") == 0) {
			v->target = value;
		} else if (strcmp(argv[i], "-n") == 0) {
			if (tm_parse_u64(tm_str_of(value), &v->pictures) != 0)
				return tm_say_usage("top: '-n %s' is no number", value);
		} else if (strcmp(argv[i], "-d") == 0) {
			if (tm_parse_time(tm_str_of(value), &v->interval_ms) != 0 ||
			    v->interval_ms < 50)
				return tm_say_usage("top: bad time '%s' of -d, use 50ms or more",
						    value);
		} else if (argv[i][0] != '-' && v->target == NULL) {
			v->target = argv[i];
			continue;
		} else {
			return tm_say_unknown("top", argv[i]);
		}
		if (i + 1 == argc)
			return tm_say_no_value("top", argv[i]);
		i++;
	}
	if (v->target == NULL) {
		tm_select_folder(folder, sizeof(folder));
		v->target = folder;
	}
	return *v->target ? 0 : tm_say_usage("top: '-p' needs a process id");
}

static size_t rows_that_fit(const struct view *v)
{
	struct winsize size;

	if (v->terminal && ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_row > 12)
		return size.ws_row - 11u;
	return 10;
}

static void print_rates(struct view *v, struct tm_text *t, const struct tm_document *doc)
{
	const struct tm_doc_balance *b = &doc->balance;
	uint64_t objects = 0;
	char rss[24], live[24], cached[24];
	double per_s = 0;

	for (size_t i = 0; i < doc->sites.count; i++)
		objects += doc->sites.at[i].alloc_objs;
	if (v->last_ns && doc->capture.t1_unix_ns > v->last_ns && objects >= v->last_objects)
		per_s = (double)(objects - v->last_objects) * 1e9 /
			(double)(doc->capture.t1_unix_ns - v->last_ns);
	v->last_objects = objects;
	v->last_ns = doc->capture.t1_unix_ns;
	tm_text_prose(t, TM_TEXT_PLAIN, 2,
		      "resident %s   live %s   cached %s   %.0f allocations a second",
		      tm_text_bytes(rss, b->rss_bytes), tm_text_delta(live, b->live_req),
		      tm_text_delta(cached, b->cached), per_s);
}

static void print_sites(const struct view *v, struct tm_text *t, const struct tm_document *doc)
{
	size_t rows = rows_that_fit(v);

	if (v->terminal)
		rows -= tm_text_gpu_brief(t, doc, rows / 2);
	else
		tm_text_gpu_brief(t, doc, SIZE_MAX);
	bool narrow = t->width && t->width < NARROW;

	if (narrow)
		tm_text_line(t, TM_TEXT_DIM, "%14s %12s  %-8s %s", "live bytes", "growth", "site",
			     "where");
	else
		tm_text_line(t, TM_TEXT_DIM, "%14s %10s %12s %14s  %-8s %s", "live bytes",
			     "objects", "allocated", "growth", "site", "where");
	for (size_t i = 0; i < doc->sites.count && i < rows; i++) {
		const struct tm_doc_site *s = &doc->sites.at[i];
		enum tm_text_colour colour =
			s->growth_bytes_per_h > 0 ? TM_TEXT_BAD : TM_TEXT_PLAIN;
		char name[300], rate[32];

		tm_analysis_name_frame(doc, tm_analysis_frame(doc, s), name, sizeof(name));
		tm_text_rate(rate, s->growth_bytes_per_h);
		if (narrow)
			tm_text_line(t, colour, "%14" PRIu64 " %12s  %-8s %s", s->live_bytes, rate,
				     s->id, name);
		else
			tm_text_line(t, colour,
				     "%14" PRIu64 " %10" PRIu64 " %12" PRIu64 " %14s  %-8s %s",
				     s->live_bytes, s->live_objs, s->alloc_objs, rate, s->id, name);
	}
	if (v->terminal && !v->dumb)
		tm_text_line(t, TM_TEXT_DIM, "q ends it; tiermalloc leaks %" PRIu64 " judges",
			     doc->process.pid);
}

static int print_picture(struct view *v, const char *path)
{
	struct tm_select s;
	struct tm_ledger ledger;
	struct tm_document doc;
	struct tm_text t;

	tm_select_init(&s, TM_DOC_LEAK);
	s.analysis.symbol_sites = rows_that_fit(v);
	tm_control_prepare(path, false);
	if (tm_ledger_open(&ledger, path) != 0)
		return TM_EXIT_USAGE;
	tm_document_init(&doc);
	tm_analysis_fill(&doc, &ledger, &s.analysis);
	tm_text_init(&t, stdout);
	if (v->terminal && !v->dumb)
		fputs("\033[H\033[2J", stdout);
	tm_text_head(&t, &doc, "leak");
	print_rates(v, &t, &doc);
	print_sites(v, &t, &doc);
	fflush(stdout);
	bool over = doc.process.ended != TM_DOC_RUNNING;
	tm_document_clear(&doc);
	tm_ledger_close(&ledger);
	return over ? -1 : 0;
}

/* True when the user wants to go on. */
static bool wait_for_next(const struct view *v)
{
	struct pollfd key = {.fd = v->terminal && isatty(0) ? 0 : -1, .events = POLLIN};
	char c = 0;

	if (poll(&key, 1, (int)v->interval_ms) > 0 && read(0, &c, 1) == 1 && (c == 'q' || c == 3))
		return false;
	return !ended;
}

int tm_cmd_top(int argc, char **argv)
{
	struct termios before, raw;
	struct view v;
	char path[PATH_MAX];
	int status = parse(&v, argc, argv);

	if (status == 0)
		status = tm_select_ledger(v.target, path, sizeof(path));
	if (status)
		return status;
	bool keys = v.terminal && tcgetattr(0, &before) == 0;
	if (keys) {
		raw = before;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		tcsetattr(0, TCSANOW, &raw);
		signal(SIGINT, on_signal);
		signal(SIGTERM, on_signal);
	}
	for (uint64_t n = 1; status == 0; n++) {
		status = print_picture(&v, path);
		if (status || n == v.pictures || !wait_for_next(&v))
			break;
	}
	if (keys)
		tcsetattr(0, TCSANOW, &before);
	return status > 0 ? status : TM_EXIT_CLEAN;
}
