/* SPDX-License-Identifier: MIT */
/*
 * cmd_serve: metrics and profiles of every ledger over HTTP.
 *
 *   /                       a list for people
 *   /metrics                all of them, for Prometheus
 *   /debug/pprof/heap?pid=N the profile of one, where continuous profilers look for it
 *   /PID-STARTTIME.FORMAT   one ledger in a format of export
 *
 * Each request has a process of its own, at most CHILDREN at once: a damaged ledger or a slow reader
 * is that request's trouble alone. Only files that the folder lists are read; a name in a request is
 * compared with them, never opened.
 *
 * On the loopback address a page of another site could ask through the user's browser under a name
 * that it lets point here; so requests must name this address, or localhost.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/analysis/document_load.h"
#include "tools/cmd.h"
#include "tools/export/export.h"
#include "tools/export/http.h"
#include "tools/ledger/ledger_list.h"

#define LISTEN_DEFAULT "127.0.0.1:9471"
#define CHILDREN 8
#define REQUEST_MS 5000
#define METRICS_LEDGERS 256u

struct server {
	const char *folder;
	char address[80];
	bool loopback;
	struct tm_export_options options;
};

static volatile sig_atomic_t ended;

static void on_end(int signal_number)
{
	(void)signal_number;
	ended = 1;
}

static void put_escaped(FILE *out, const char *text)
{
	for (; text && *text; text++) {
		if (*text == '<' || *text == '>' || *text == '&' || *text == '"')
			fprintf(out, "&#%d;", *text);
		else
			putc(*text, out);
	}
}

static void put_index(const struct tm_ledger_list *list, FILE *out)
{
	static const char *const formats[] = {"html",       "json",   "pprof",     "folded",
					      "speedscope", "chrome", "prometheus"};

	fputs("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>tiermalloc</title>"
	      "<meta name=\"viewport\" content=\"width=device-width\">"
	      "<meta name=\"color-scheme\" content=\"light dark\">"
	      "<style>body{font:16px/1.6 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
	      "padding:0 1rem}table{border-collapse:collapse}td,th{text-align:left;padding:.3rem "
	      "1.2rem .3rem 0}</style><h1>Ledgers</h1><p><a href=\"/metrics\">metrics</a></p>",
	      out);
	fputs(list->count ? "<table><tr><th>Ledger<th>Process<th>As" : "<p>There is none.", out);
	for (size_t i = 0; i < list->count; i++) {
		const struct tm_ledger_entry *e = &list->at[i];
		int stem = (int)strlen(e->name) - 3;

		fputs("<tr><td>", out);
		put_escaped(out, e->name);
		fprintf(out, "<td>%" PRIu64 "<td>", e->pid);
		for (size_t k = 0; k < TM_ARRAY_LEN(formats); k++)
			fprintf(out, "<a href=\"/%.*s.%s\">%s</a> ", stem, e->name, formats[k],
				formats[k]);
	}
	fputs("</table></html>\n", out);
}

/*
 * Writes the metrics of all ledgers, except those that can't be read, which have printed a message.
 */
static bool put_metrics(const struct server *s, const struct tm_ledger_list *list, FILE *out)
{
	size_t count = 0, most = list->count < METRICS_LEDGERS ? list->count : METRICS_LEDGERS;
	struct tm_document *docs = calloc(most + 1, sizeof(*docs));
	bool written;

	if (docs == NULL)
		return false;
	for (size_t i = 0; i < most; i++) {
		tm_document_init(&docs[count]);
		if (tm_document_load_counts(&docs[count], list->at[i].path) == 0)
			count++;
		else
			tm_document_clear(&docs[count]);
	}
	written = tm_export_prometheus_all(docs, count, &s->options, out);
	for (size_t i = 0; i < count; i++)
		tm_document_clear(&docs[i]);
	free(docs);
	return written;
}

/* The ledger and the format for a path such as "/12-345.html"; NULL: none. */
static const struct tm_ledger_entry *find(const struct tm_ledger_list *list, const char *path,
					  const struct tm_exporter **ret_exporter)
{
	const char *dot = strrchr(path, '.');

	*ret_exporter = dot ? tm_export_find(dot + 1) : NULL;
	for (size_t i = 0; *ret_exporter && i < list->count; i++) {
		size_t stem = strlen(list->at[i].name) - 3;

		if ((size_t)(dot - path) == stem + 1 &&
		    strncmp(path + 1, list->at[i].name, stem) == 0)
			return &list->at[i];
	}
	return NULL;
}

/* The newest ledger of a process; without a number, the only ledger there is. */
static const struct tm_ledger_entry *find_pid(const struct tm_ledger_list *list, const char *pid)
{
	const struct tm_ledger_entry *found = NULL;

	if (*pid == '\0')
		return list->count == 1 ? &list->at[0] : NULL;
	for (size_t i = 0; i < list->count; i++) {
		if (list->at[i].pid == strtoull(pid, NULL, 10) &&
		    (found == NULL || found->changed_ns < list->at[i].changed_ns))
			found = &list->at[i];
	}
	return found;
}

static bool put_one(const struct server *s, const struct tm_ledger_entry *entry,
		    const struct tm_exporter *exporter, FILE *out)
{
	struct tm_document doc;
	bool written;

	tm_document_init(&doc);
	written =
		tm_document_load(&doc, entry->path) == 0 && exporter->write(&doc, &s->options, out);
	tm_document_clear(&doc);
	return written;
}

/* Writes the answer's body; returns its status, and its type in *ret_type. */
static int respond(const struct server *s, const struct tm_http_request *request, FILE *out,
		   const char **ret_type)
{
	const struct tm_exporter *exporter = NULL;
	const struct tm_ledger_entry *entry;
	struct tm_ledger_list list;
	char pid[32] = "";
	int status = 200;

	if (tm_ledger_list_read(&list, s->folder) != 0)
		return 500;
	*ret_type = "text/html; charset=utf-8";
	if (strcmp(request->path, "/") == 0) {
		put_index(&list, out);
	} else if (strcmp(request->path, "/metrics") == 0) {
		*ret_type = tm_export_find("prometheus")->content_type;
		status = put_metrics(s, &list, out) ? 200 : 500;
	} else {
		if (strcmp(request->path, "/debug/pprof/heap") == 0 ||
		    strcmp(request->path, "/debug/pprof/allocs") == 0) {
			(void)tm_http_query(request, "pid", pid, sizeof(pid));
			exporter = tm_export_find("pprof");
			entry = find_pid(&list, pid);
		} else {
			entry = find(&list, request->path, &exporter);
		}
		status = entry == NULL ? 404 : put_one(s, entry, exporter, out) ? 200 : 500;
		if (status == 200)
			*ret_type = exporter->content_type;
	}
	tm_ledger_list_clear(&list);
	return status;
}

/* A numeric address can't be another site's name. */
static bool host_is_ours(const struct server *s, const char *host)
{
	size_t numbers = strspn(host, "0123456789.");

	return !s->loopback || strcmp(host, "localhost") == 0 || host[0] == '[' ||
	       (numbers > 0 && host[numbers] == '\0');
}

static void serve_one(const struct server *s, int fd)
{
	struct timeval limit = {.tv_sec = REQUEST_MS / 1000};
	struct tm_http_request request;
	const char *type = NULL;
	char *body = NULL;
	size_t len = 0;
	int status = tm_http_read(fd, &request, REQUEST_MS);
	FILE *out;

	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (status == 0 && !host_is_ours(s, request.host))
		status = 403;
	if (status != 0) {
		tm_http_answer(fd, &request, status, NULL, NULL, 0);
		return;
	}
	out = open_memstream(&body, &len);
	status = out ? respond(s, &request, out, &type) : 500;
	if (out && fclose(out) != 0)
		status = 500;
	tm_http_answer(fd, &request, status, type, status == 200 ? body : NULL, len);
	free(body);
}

static void loop(const struct server *s, int listener)
{
	int children = 0;

	while (!ended) {
		int fd;
		pid_t child;

		while (children > 0 && waitpid(-1, NULL, children < CHILDREN ? WNOHANG : 0) > 0)
			children--;
		if (children >= CHILDREN)
			continue; /* interrupted by a signal */
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		child = fork();
		if (child == 0) {
			close(listener);
			signal(SIGTERM, SIG_DFL);
			signal(SIGINT, SIG_DFL);
			alarm(60);
			serve_one(s, fd);
			_exit(0);
		}
		if (child > 0)
			children++;
		else
			tm_say("serve: no process for a request: %s", strerror(errno));
		close(fd);
	}
	while (children-- > 0 && waitpid(-1, NULL, 0) > 0)
		;
}

static int take(struct server *s, const char **ret_where, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--listen") == 0 || strcmp(argv[i], "--dir") == 0 ||
		    strcmp(argv[i], "--top-sites") == 0) {
			if (i + 1 == argc)
				return tm_say_no_value("serve", argv[i]);
			const char *value = argv[++i];

			if (strcmp(argv[i - 1], "--listen") == 0) {
				*ret_where = value;
			} else if (strcmp(argv[i - 1], "--dir") == 0) {
				s->folder = value;
			} else {
				int status = tm_take_count("serve", argv[i - 1], value,
							   &s->options.top_sites);

				if (status)
					return status;
			}
		} else {
			return tm_say_unknown("serve", argv[i]);
		}
	}
	return TM_EXIT_CLEAN;
}

int tm_cmd_serve(int argc, char **argv)
{
	struct sigaction end = {.sa_handler = on_end}; /* no SA_RESTART: accept must return */
	struct server s = {.folder = NULL};
	const char *where = LISTEN_DEFAULT;
	char folder[4096];
	int status = take(&s, &where, argc, argv);

	if (status != TM_EXIT_CLEAN)
		return status;
	if (s.folder == NULL) {
		tm_ledger_folder(folder, sizeof(folder));
		s.folder = folder;
	}
	int listener = tm_http_listen(where, s.address, sizeof(s.address), &s.loopback);
	if (listener == -EINVAL)
		return tm_say_usage("'--listen %s' is no ADDR:PORT", where);
	if (listener < 0) {
		tm_say("serve: cannot listen on '%s': %s", where, strerror(-listener));
		return TM_EXIT_TROUBLE;
	}
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGINT, &end, NULL);
	signal(SIGPIPE, SIG_IGN);
	printf("serving ledgers of %s on http://%s/\n", s.folder, s.address);
	if (!s.loopback)
		puts("anyone who reaches this address can read them");
	fflush(stdout);
	loop(&s, listener);
	close(listener);
	return TM_EXIT_CLEAN;
}
