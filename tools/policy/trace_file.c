/* SPDX-License-Identifier: MIT */
/* trace_file: see trace_file.h. */
#include "tools/policy/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cmd.h"

#define HEADER_BYTES 32u
#define EVENT_BYTES 36u
#define STACKS_MAX (UINT32_C(1) << 26)
#define FILE_MAX (UINT64_C(1) << 36)

struct buffer {
	unsigned char *data;
	size_t used, room;
};

/* Reads to the end, or until there are "enough" bytes. */
static int read_until(int fd, struct buffer *b, size_t enough)
{
	while (b->used < enough) {
		ssize_t n;

		if (b->used == b->room) {
			size_t room = b->room ? b->room * 2 : (size_t)1 << 20;
			unsigned char *more = room > FILE_MAX ? NULL : realloc(b->data, room);

			if (more == NULL)
				return -ENOMEM;
			b->data = more;
			b->room = room;
		}
		n = read(fd, b->data + b->used, b->room - b->used);
		if (n == 0)
			return 0;
		if (n > 0)
			b->used += (size_t)n;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static bool is_trace(const struct buffer *b)
{
	return b->used >= HEADER_BYTES && memcmp(b->data, "TMTRACE1", 8) == 0;
}

/* Of what is no trace only the beginning: a ledger has 12 GiB, a device may have no end. */
static int read_trace(int fd, struct buffer *b)
{
	int err = read_until(fd, b, HEADER_BYTES);

	return err == 0 && is_trace(b) ? read_until(fd, b, SIZE_MAX) : err;
}

static bool is_xz(const struct buffer *b)
{
	static const unsigned char magic[] = {0xfd, '7', 'z', 'X', 'Z', 0};

	return b->used >= sizeof(magic) && memcmp(b->data, magic, sizeof(magic)) == 0;
}

/* xz reads the file itself, which is its descriptor 0. */
static int read_xz(const char *path, struct buffer *b)
{
	int pipe_fd[2], status;
	int in = open(path, O_RDONLY | O_CLOEXEC);
	pid_t child;

	b->used = 0;
	if (in < 0 || pipe(pipe_fd) != 0) {
		if (in >= 0)
			close(in);
		return -1;
	}
	child = fork();
	if (child == 0) {
		dup2(in, 0);
		dup2(pipe_fd[1], 1);
		close(pipe_fd[0]);
		close(pipe_fd[1]);
		execlp("xz", "xz", "-dc", (char *)NULL);
		_exit(127);
	}
	close(in);
	close(pipe_fd[1]);
	int err = child < 0 ? -errno : read_trace(pipe_fd[0], b);
	close(pipe_fd[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	/* xz ends by a signal where the rest is not read. */
	if (child > 0 && err == 0 && b->used >= HEADER_BYTES && !is_trace(b))
		return 0;
	return child > 0 && err == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int load(const char *path, struct buffer *b)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : read_trace(fd, b);

	if (fd >= 0)
		close(fd);
	if (err != 0) {
		tm_say("'%s' cannot be read: %s", path, strerror(-err));
		return -1;
	}
	if (is_xz(b) && read_xz(path, b) != 0) {
		tm_say("'%s' cannot be unpacked, is xz installed and the file whole?", path);
		return -1;
	}
	return 0;
}

static uint64_t word(const unsigned char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* --- the text behind the events: modules, frames, stacks ---------------------------------------- */

struct tables {
	struct tm_trace *trace;
	struct module {
		struct tm_str name, build_id;
	} * modules; /* owned */
	uint32_t module_count;
};

/*
 * Grows an array of `*count` items of `size` bytes to hold `index`; NULL if the file asks for too
 * much.
 */
static void *grow(void *array, uint32_t *count, uint64_t index, size_t size)
{
	uint32_t old = *count;
	uint32_t fresh;
	unsigned char *more;

	if (index < old)
		return array;
	if (index >= STACKS_MAX)
		return NULL;
	fresh = (uint32_t)index + 1 + old / 2;
	more = realloc(array, fresh * size);
	if (more == NULL)
		return NULL;
	memset(more + old * size, 0, (fresh - old) * size);
	*count = fresh;
	return more;
}

static bool next_word(struct tm_str *rest, struct tm_str *ret_word)
{
	return tm_parse_next(rest, ' ', ret_word) && ret_word->len != 0;
}

static int parse_text_line(struct tables *t, struct tm_str line)
{
	struct tm_trace *trace = t->trace;
	struct tm_str kind, first, second;
	uint64_t id, value;
	void *more;

	if (!next_word(&line, &kind) || !next_word(&line, &first) || tm_parse_u64(first, &id) != 0)
		return -1;
	if (tm_str_is(kind, "module") || tm_str_is(kind, "build-id")) {
		more = grow(t->modules, &t->module_count, id, sizeof(*t->modules));
		if (more == NULL)
			return -1;
		t->modules = more;
		if (tm_str_is(kind, "module")) {
			t->modules[id].name = line;
		} else {
			t->modules[id].build_id = line;
			trace->has_build_ids = true;
		}
		return 0;
	}
	if (!next_word(&line, &second))
		return tm_str_is(kind, "stack") ? 0 : -1;
	if (tm_str_is(kind, "frame")) {
		uint64_t offset;

		if (tm_parse_u64(line, &offset) != 0)
			return -1;
		more = grow(trace->frames, &trace->frame_count, id, sizeof(*trace->frames));
		if (more == NULL)
			return -1;
		trace->frames = more;
		trace->frames[id].offset = offset;
		if (tm_parse_u64(second, &value) == 0 && value < t->module_count) {
			trace->frames[id].module = t->modules[value].name;
			trace->frames[id].build_id = t->modules[value].build_id;
		}
		return 0;
	}
	if (!tm_str_is(kind, "stack") || tm_parse_u64(second, &value) != 0 || value >= STACKS_MAX)
		return -1;
	more = grow(trace->stack_top, &trace->stack_count, id, sizeof(*trace->stack_top));
	if (more == NULL)
		return -1;
	trace->stack_top = more;
	trace->stack_top[id] = (uint32_t)value + 1;
	return 0;
}

static int parse_text(struct tm_trace *trace, struct tm_str text)
{
	struct tables t = {.trace = trace};
	struct tm_str line;
	int err = 0;

	while (err == 0 && tm_parse_next(&text, '\n', &line)) {
		if (line.len != 0)
			err = parse_text_line(&t, line);
	}
	free(t.modules);
	for (uint32_t i = 0; i < trace->stack_count; i++) {
		if (trace->stack_top[i] > trace->frame_count)
			trace->stack_top[i] = 0;
	}
	return err;
}

int tm_trace_open(struct tm_trace *trace, const char *path)
{
	struct buffer b = {0};
	uint64_t objects, text;

	*trace = (struct tm_trace){0};
	if (load(path, &b) != 0) {
		free(b.data);
		return -1;
	}
	trace->data = b.data;
	trace->bytes = b.used;
	if (!is_trace(&b)) {
		tm_say("'%s' is no trace", path);
		goto bad;
	}
	trace->event_count = word(b.data + 8);
	objects = word(b.data + 16);
	text = word(b.data + 24);
	if (objects > UINT32_MAX - 1 || text > b.used - HEADER_BYTES ||
	    trace->event_count != (b.used - HEADER_BYTES - text) / EVENT_BYTES) {
		tm_say("'%s' is cut off or damaged", path);
		goto bad;
	}
	trace->object_count = (uint32_t)objects;
	if (parse_text(trace, (struct tm_str){(const char *)b.data + b.used - text, text}) == 0)
		return 0;
	tm_say("'%s' is damaged: the text behind the events makes no sense", path);
bad:
	tm_trace_close(trace);
	return -1;
}

void tm_trace_close(struct tm_trace *trace)
{
	free(trace->data);
	free(trace->stack_top);
	free(trace->frames);
	*trace = (struct tm_trace){0};
}

struct tm_trace_event tm_trace_event_at(const struct tm_trace *trace, uint64_t i)
{
	const unsigned char *at = trace->data + HEADER_BYTES + i * EVENT_BYTES;
	struct tm_trace_event e;

	/* The struct has the file's layout, except for padding at its end. */
	memcpy(&e, at, EVENT_BYTES);
	if (e.stack >= trace->stack_count)
		e.stack = 0;
	if (e.op != TM_TRACE_MARK && e.object > trace->object_count)
		e.object = 0;
	if (e.op == TM_TRACE_REALLOC && e.previous > trace->object_count)
		e.previous = 0;
	return e;
}
