/* SPDX-License-Identifier: MIT */
/*
 * cmd_top: shows repeatedly who holds memory. On a terminal a screenful is redrawn until 'q', and
 * at once when the terminal is resized; in a pipe one picture is printed, or as many as requested.
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
#include "tools/cmd/select.h"
#include "tools/ledger/control.h"
#include "tools/ledger/ledger_list.h"

#define ROWS_IN_PIPES 10u
#define ROWS_UNKNOWN 24u
/*
 * If fewer rows than this would remain for sites, of the lines about the process only the verdict
 * is shown.
 */
#define ROWS_OF_SITES 4u
/* Widths from which a table shows more columns. */
#define COLUMNS_TINY 48u
#define COLUMNS_NARROW 100u
#define COLUMNS_WIDE 160u

enum key { KEY_INTERRUPT = 3, KEY_SUSPEND = 26, KEY_QUIT = 28 };

struct view {
	bool over; /* the process has ended */
	const char *target;
	uint64_t interval_ms, pictures; /* 0: until the user quits */
	bool terminal;
	bool dumb; /* a terminal that cannot be cleared: pictures one below the other */
	bool keys; /* its mode was changed, and must be restored */
	struct termios before;
	unsigned rows;
	uint64_t last_objects, last_ns;
};

static volatile sig_atomic_t ended, resized;

static void on_signal(int number)
{
	if (number == SIGWINCH)
		resized = 1;
	else
		ended = 1;
}

static int take_valued(struct view *v, char option, const char *value)
{
	if (value == NULL || *value == '\0')
		return tm_say_no_value("top", (char[]){'-', option, '\0'});
	if (option == 'p') {
		v->target = value;
	} else if (option == 'n') {
		if (tm_parse_u64(tm_str_of(value), &v->pictures) != 0)
			return tm_say_usage("top: '-n %s' is no number", value);
	} else if (tm_parse_time(tm_str_of(value), &v->interval_ms) != 0 || v->interval_ms < 50 ||
		   v->interval_ms > INT32_MAX) {
		return tm_say_usage("top: bad time '%s' of -d, use 50ms or more", value);
	}
	return 0;
}

static int parse(struct view *v, int argc, char **argv)
{
	static char folder[PATH_MAX];
	int status = 0;

	*v = (struct view){.interval_ms = 1000, .terminal = isatty(1)};
	v->dumb = getenv("TERM") == NULL || strcmp(getenv("TERM"), "dumb") == 0;
	v->pictures = v->terminal ? 0 : 1;
	for (int i = 1; i < argc && status == 0; i++) {
		if (strcmp(argv[i], "-p") == 0 || strcmp(argv[i], "-n") == 0 ||
		    strcmp(argv[i], "-d") == 0) {
			status = take_valued(v, argv[i][1], argv[i + 1]);
			i++;
		} else if (argv[i][0] != '-' && v->target == NULL) {
			v->target = argv[i];
		} else {
			status = tm_say_unknown("top", argv[i]);
		}
	}
	if (v->target == NULL) {
		tm_select_folder(folder, sizeof(folder));
		v->target = folder;
	}
	return status;
}

static unsigned rows_of_terminal(void)
{
	struct winsize size;
	const char *lines = getenv("LINES");

	if (lines && atoi(lines) > 0)
		return (unsigned)atoi(lines);
	return ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : ROWS_UNKNOWN;
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

static void print_titles(struct tm_text *t)
{
	if (t->width && t->width < COLUMNS_TINY)
		tm_text_line(t, TM_TEXT_DIM, "%9s %11s  %s", "live", "growth", "where");
	else if (t->width && t->width < COLUMNS_NARROW)
		tm_text_line(t, TM_TEXT_DIM, "%9s %11s  %-7s %s", "live", "growth", "site",
			     "where");
	else if (t->width < COLUMNS_WIDE)
		tm_text_line(t, TM_TEXT_DIM, "%14s %10s %12s %14s  %-8s %s", "live bytes",
			     "objects", "allocated", "growth", "site", "where");
	else
		tm_text_line(t, TM_TEXT_DIM, "%14s %10s %12s %12s %14s  %-11s %-8s %s",
			     "live bytes", "objects", "allocated", "freed", "growth", "tier",
			     "site", "where");
}

static void print_site(struct tm_text *t, const struct tm_document *doc,
		       const struct tm_doc_site *s)
{
	enum tm_text_colour colour = s->growth_bytes_per_h > 0 ? TM_TEXT_BAD : TM_TEXT_PLAIN;
	char name[300], rate[32], live[24];

	tm_analysis_name_frame(doc, tm_analysis_frame(doc, s), name, sizeof(name));
	tm_text_rate(rate, s->growth_bytes_per_h);
	tm_text_bytes(live, s->live_bytes);
	if (t->width && t->width < COLUMNS_TINY)
		tm_text_named(t, colour, name, "%9s %11s  ", live, rate);
	else if (t->width && t->width < COLUMNS_NARROW)
		tm_text_named(t, colour, name, "%9s %11s  %-7s ", live, rate, s->id);
	else if (t->width < COLUMNS_WIDE)
		tm_text_named(t, colour, name,
			      "%14" PRIu64 " %10" PRIu64 " %12" PRIu64 " %14s  %-8s ",
			      s->live_bytes, s->live_objs, s->alloc_objs, rate, s->id);
	else
		tm_text_named(t, colour, name,
			      "%14" PRIu64 " %10" PRIu64 " %12" PRIu64 " %12" PRIu64
			      " %14s  %-11s %-8s ",
			      s->live_bytes, s->live_objs, s->alloc_objs, s->free_objs, rate,
			      tm_document_tier_name(s->tier), s->id);
}

static unsigned rows_in(const char *text)
{
	unsigned n = 0;

	for (; (text = strchr(text, '\n')) != NULL; text++)
		n++;
	return n;
}

/* Prints what is above the sites; "brief": only the verdict on the process. */
static void print_head(struct view *v, struct tm_text *t, const struct tm_document *doc, bool brief)
{
	if (brief) {
		tm_text_line(t, TM_TEXT_PLAIN, "VERDICT  %s",
			     doc->verdict.text ? doc->verdict.text : "none");
	} else {
		tm_text_head(t, doc, "top");
		print_rates(v, t, doc);
		tm_text_gpu_brief(t, doc, v->terminal ? v->rows / 4 : SIZE_MAX);
	}
	print_titles(t);
}

/* The text of the head; NULL without memory. */
static char *head_text(struct view *v, struct tm_text *t, const struct tm_document *doc, bool brief)
{
	char *text = NULL;
	size_t bytes = 0;

	t->out = open_memstream(&text, &bytes);
	if (t->out == NULL)
		return NULL;
	print_head(v, t, doc, brief);
	return fclose(t->out) == 0 ? text : NULL;
}

static char *body_text(const struct view *v, struct tm_text *t, const struct tm_document *doc,
		       size_t rows)
{
	char *text = NULL;
	size_t bytes = 0;

	t->out = open_memstream(&text, &bytes);
	if (t->out == NULL)
		return NULL;
	for (size_t i = 0; i < doc->sites.count && i < rows; i++)
		print_site(t, doc, &doc->sites.at[i]);
	if (v->terminal && !v->dumb)
		tm_text_line(t, TM_TEXT_DIM, "q ends it; tiermalloc leaks %" PRIu64 " judges",
			     doc->process.pid);
	return fclose(t->out) == 0 ? text : NULL;
}

/*
 * Prints the lines of a text from screen row "row" on, over the old contents; none below the last
 * row. Returns the next row.
 */
static unsigned put_rows(const struct view *v, unsigned row, const char *text)
{
	for (; row < v->rows && *text; row++) {
		size_t n = strcspn(text, "\n");

		printf("%s%.*s\033[K", row ? "\r\n" : "\033[H", (int)n, text);
		text += n + (text[n] == '\n');
	}
	return row;
}

/* Redraws over the last picture, so that there is no flicker. */
static void draw(struct view *v, const struct tm_document *doc)
{
	bool screen = v->terminal && !v->dumb;
	size_t rows = ROWS_IN_PIPES;
	struct tm_text t;

	tm_text_init(&t, stdout);
	char *head = head_text(v, &t, doc, false);
	if (head && screen && rows_in(head) + 1 + ROWS_OF_SITES > v->rows) {
		free(head);
		head = head_text(v, &t, doc, true);
	}
	if (head && screen)
		rows = v->rows > rows_in(head) + 1 ? v->rows - rows_in(head) - 1 : 0;
	char *body = head ? body_text(v, &t, doc, rows) : NULL;
	if (body && screen) {
		put_rows(v, put_rows(v, 0, head), body);
		fputs("\033[J", stdout);
	} else if (body) {
		printf("%s%s", head, body);
	}
	free(head);
	free(body);
}

static int print_picture(struct view *v, const char *path)
{
	struct tm_select s;
	struct tm_ledger ledger;
	struct tm_document doc;

	tm_select_init(&s, TM_DOC_LEAK);
	v->rows = v->terminal ? rows_of_terminal() : ROWS_IN_PIPES;
	s.analysis.symbol_sites = v->rows > ROWS_IN_PIPES ? v->rows : ROWS_IN_PIPES;
	tm_control_prepare(path, false);
	if (tm_ledger_open(&ledger, path) != 0)
		return TM_EXIT_USAGE;
	tm_document_init(&doc);
	tm_analysis_fill(&doc, &ledger, &s.analysis);
	draw(v, &doc);
	bool over = doc.process.ended != TM_DOC_RUNNING;
	v->over = over;
	tm_document_clear(&doc);
	tm_ledger_close(&ledger);
	return fflush(stdout) != 0 || over ? -1 : 0;
}

static void begin_keys(struct view *v)
{
	struct termios raw = v->before;

	if (!v->keys)
		return;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
	tcsetattr(0, TCSANOW, &raw);
	if (!v->dumb)
		fputs("\033[?25l\033[H\033[2J", stdout);
	fflush(stdout);
}

/* Leaves the last picture on the screen; later output begins below it. */
static void end_keys(const struct view *v)
{
	if (!v->keys)
		return;
	if (!v->dumb)
		fputs("\033[?25h\r\n", stdout);
	fflush(stdout);
	tcsetattr(0, TCSANOW, &v->before);
}

/* Handles a key; false: the user quits. */
static bool take_key(struct view *v)
{
	char c = 0;

	if (read(0, &c, 1) != 1 || c == 'q' || c == 'Q' || c == KEY_INTERRUPT || c == KEY_QUIT)
		return false;
	if (c == KEY_SUSPEND) {
		end_keys(v);
		raise(SIGSTOP);
		begin_keys(v);
	}
	return true;
}

/* Waits for the next picture; true to go on. */
static bool wait_for_next(struct view *v)
{
	struct pollfd key = {.fd = v->keys ? 0 : -1, .events = POLLIN};

	if (poll(&key, 1, (int)v->interval_ms) > 0 && !take_key(v))
		return false;
	if (resized && v->terminal && !v->dumb)
		fputs("\033[2J", stdout);
	resized = 0;
	return !ended;
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: poll must return */

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGWINCH, &action, NULL);
}

/* The largest ledger of a running process in a folder, since "top" is about running ones. */
static bool find_running(const char *folder, char *buf, size_t size)
{
	struct tm_ledger_list list;
	uint64_t most = 0;
	uint32_t version;

	if (tm_ledger_list_read(&list, folder) != 0)
		return false;
	for (size_t i = 0; i < list.count; i++) {
		const struct tm_ledger_entry *e = &list.at[i];
		uint64_t start = strtoull(strchr(e->name, '-') + 1, NULL, 10);

		if (e->bytes < most || start == 0 ||
		    tm_ledger_start_time((uint32_t)e->pid) != start ||
		    !tm_ledger_is_readable(e->path, &version))
			continue;
		most = e->bytes;
		snprintf(buf, size, "%s", e->path);
	}
	tm_ledger_list_clear(&list);
	return most != 0;
}

int tm_cmd_top(int argc, char **argv)
{
	struct view v;
	char path[PATH_MAX];
	int status = parse(&v, argc, argv);

	if (status == 0 && (v.target[strspn(v.target, "0123456789")] == '\0' ||
			    !find_running(v.target, path, sizeof(path))))
		status = tm_select_ledger(v.target, path, sizeof(path));
	if (status)
		return status;
	v.keys = v.terminal && tcgetattr(0, &v.before) == 0;
	if (v.terminal)
		catch_signals();
	begin_keys(&v);
	for (uint64_t n = 1; status == 0; n++) {
		status = print_picture(&v, path);
		if (status || n == v.pictures || !wait_for_next(&v))
			break;
	}
	end_keys(&v);
	if (v.over)
		tm_say("top: the process of '%s' has ended, these are its last figures", path);
	return status > 0 ? status : TM_EXIT_CLEAN;
}
