/* SPDX-License-Identifier: MIT */
#include "tools/runner/request.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/runner/json.h"
#include "tools/runner/mem.h"

#define DEFAULT_N 64
/* Common prompts that generated sessions continue. */
#define COMMON 4

/* One line on its way into a request. */
struct line {
	const char *path;
	size_t number;
	uint32_t n_vocab;
	struct yi_json json;
	struct yi_error *error;
};

static int no_memory(struct yi_error *error)
{
	return yi_error_set(error, YI_EXIT_TROUBLE, -ENOMEM, "no memory for the requests");
}

static int bad(struct line *line, const char *key, const char *problem)
{
	return yi_error_set(line->error, YI_EXIT_USAGE, -EINVAL, "%s:%zu: %s: %s", line->path,
			    line->number, key, problem);
}

static struct yi_request *add_request(struct yi_requests *requests)
{
	if (requests->count == requests->room) {
		size_t room = requests->room ? requests->room * 2 : 64;
		struct yi_request *list =
			yi_mem_resize(YI_MEM_REQUESTS, requests->list, room * sizeof(*list));

		if (!list)
			return NULL;
		requests->list = list;
		requests->room = room;
	}
	memset(&requests->list[requests->count], 0, sizeof(requests->list[0]));
	requests->list[requests->count].prefix = -1;
	requests->list[requests->count].n = DEFAULT_N;
	return &requests->list[requests->count++];
}

static int whole_number(struct line *line, const char *key, double low, double high, double *ret)
{
	struct yi_json_item item;

	if (yi_json_next(&line->json, &item) != YI_JSON_NUMBER)
		return bad(line, key, line->json.problem ? line->json.problem : "not a number");
	if (item.number < low || item.number > high || item.number != floor(item.number))
		return bad(line, key, "not a whole number in range");
	*ret = item.number;
	return 0;
}

static int text(struct line *line, const char *key, char **ret, size_t *ret_bytes)
{
	struct yi_json_item item;

	if (yi_json_next(&line->json, &item) != YI_JSON_STRING)
		return bad(line, key, line->json.problem ? line->json.problem : "not a string");
	*ret = yi_mem_text(YI_MEM_REQUESTS, item.text, item.len);
	*ret_bytes = item.len;
	return *ret ? 0 : no_memory(line->error);
}

static int token_list(struct line *line, struct yi_request *request)
{
	struct yi_json_item item;

	if (yi_json_next(&line->json, &item) != YI_JSON_ARRAY)
		return bad(line, "tokens", line->json.problem ? line->json.problem : "not a list");
	while (yi_json_next(&line->json, &item) == YI_JSON_NUMBER) {
		if (item.number < 0 || item.number >= line->n_vocab ||
		    item.number != floor(item.number))
			return bad(line, "tokens", "not a token of this model");
		if (yi_ids_add(&request->ids, (uint32_t)item.number))
			return no_memory(line->error);
	}
	if (item.kind != YI_JSON_ARRAY_END)
		return bad(line, "tokens",
			   line->json.problem ? line->json.problem : "not a list of numbers");
	if (request->ids.count == 0)
		return bad(line, "tokens", "empty");
	return 0;
}

/* The latest session of that name so far, -1: there is none. */
static int64_t find_session(const struct yi_requests *requests, size_t before, const char *name)
{
	for (size_t i = before; i-- > 0;)
		if (strcmp(requests->list[i].session, name) == 0)
			return (int64_t)i;
	return -1;
}

enum key { KEY_PROMPT, KEY_TOKENS, KEY_N, KEY_SESSION, KEY_ARRIVE, KEY_PREFIX, KEYS };

static int read_value(struct line *line, enum key key, struct yi_requests *requests,
		      struct yi_request *request)
{
	size_t number = (size_t)(request - requests->list), bytes;
	char *name = NULL;
	double value = 0;
	int code;

	switch (key) {
	case KEY_PROMPT: return text(line, "prompt", &request->prompt, &request->prompt_bytes);
	case KEY_TOKENS: return token_list(line, request);
	case KEY_N:
		code = whole_number(line, "n", 1, INT32_MAX, &value);
		request->n = code ? 0 : (uint32_t)value;
		return code;
	case KEY_SESSION:
		code = text(line, "session", &request->session, &bytes);
		return code == 0 && strlen(request->session) != bytes
			       ? bad(line, "session", "holds a NUL")
			       : code;
	case KEY_ARRIVE: {
		struct yi_json_item item;

		if (yi_json_next(&line->json, &item) != YI_JSON_NUMBER || !(item.number >= 0) ||
		    item.number > 1e12)
			return bad(line, "arrive_ms", "not a number from 0 on");
		request->arrive_ms = item.number;
		return 0;
	}
	case KEY_PREFIX:
		code = text(line, "prefix", &name, &bytes);
		if (code == 0) {
			request->prefix = find_session(requests, number, name);
			if (request->prefix < 0)
				code = bad(line, "prefix", "no earlier session of that name");
		}
		yi_mem_free(YI_MEM_REQUESTS, name);
		return code;
	case KEYS: break;
	}
	return -EINVAL;
}

static int read_members(struct line *line, struct yi_requests *requests, struct yi_request *request)
{
	static const char *const names[KEYS] = {"prompt",  "tokens",    "n",
						"session", "arrive_ms", "prefix"};
	bool seen[KEYS] = {false};
	struct yi_json_item item;
	int code = 0;

	while (code == 0 && yi_json_next(&line->json, &item) == YI_JSON_KEY) {
		char shown[40];
		int key = 0;

		snprintf(shown, sizeof(shown), "%.*s", (int)(item.len < 39 ? item.len : 39),
			 item.text);
		while (key < KEYS &&
		       (strlen(names[key]) != item.len || memcmp(names[key], item.text, item.len)))
			key++;
		if (key == KEYS)
			return bad(line, shown, "unknown key");
		if (seen[key])
			return bad(line, shown, "given twice");
		seen[key] = true;
		code = read_value(line, (enum key)key, requests, request);
	}
	if (code)
		return code;
	if (item.kind != YI_JSON_OBJECT_END || yi_json_next(&line->json, &item) != YI_JSON_DONE)
		return bad(line, "json", line->json.problem);
	if (seen[KEY_PROMPT] == seen[KEY_TOKENS])
		return bad(line, "prompt", "give either prompt or tokens");
	return 0;
}

static int read_line(struct line *line, char *bytes, size_t len, struct yi_requests *requests)
{
	struct yi_request *request = add_request(requests);
	struct yi_json_item item;
	char name[32];
	int code;

	if (!request)
		return no_memory(line->error);
	yi_json_start(&line->json, bytes, len);
	if (yi_json_next(&line->json, &item) != YI_JSON_OBJECT)
		return bad(line, "json", line->json.problem ? line->json.problem : "not an object");
	code = read_members(line, requests, request);
	if (code || request->session)
		return code;
	snprintf(name, sizeof(name), "line-%zu", line->number);
	request->session = yi_mem_text(YI_MEM_REQUESTS, name, strlen(name));
	return request->session ? 0 : no_memory(line->error);
}

static int read_lines(FILE *file, struct line *line, struct yi_requests *requests)
{
	char *bytes = NULL;
	size_t room = 0;
	ssize_t len;
	int code = 0;

	errno = 0;
	while (code == 0 && (len = getline(&bytes, &room, file)) >= 0) {
		line->number++;
		if (len && bytes[len - 1] == '\n')
			len--;
		/* Blank lines are let pass: editors leave one at the end. */
		if ((size_t)len != strspn(bytes, " \t\r"))
			code = read_line(line, bytes, (size_t)len, requests);
	}
	free(bytes);
	if (code == 0 && ferror(file))
		return yi_error_set(line->error, YI_EXIT_TROUBLE, -EIO, "'%s' can't be read: %s",
				    line->path, strerror(errno));
	return code;
}

int yi_requests_read(const char *path, uint32_t n_vocab, struct yi_requests *ret_requests,
		     struct yi_error *error)
{
	struct line line = {.path = path, .n_vocab = n_vocab, .error = error};
	struct yi_requests requests = {NULL, 0, 0};
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	int code;

	if (!file)
		return yi_error_set(error, YI_EXIT_USAGE, -errno, "'%s' can't be opened: %s", path,
				    strerror(errno));
	code = read_lines(file, &line, &requests);
	if (file != stdin)
		fclose(file);
	if (code == 0 && requests.count == 0)
		code = yi_error_set(error, YI_EXIT_USAGE, -EINVAL, "'%s' holds no request", path);
	if (code) {
		yi_requests_clear(&requests);
		return code;
	}
	*ret_requests = requests;
	return 0;
}

static void clear_request(struct yi_request *request)
{
	yi_mem_free(YI_MEM_REQUESTS, request->session);
	yi_mem_free(YI_MEM_REQUESTS, request->prompt);
	yi_ids_clear(&request->ids);
}

/* A request like one of the list, for the round that many requests later. */
static int repeat(struct yi_requests *requests, size_t number, size_t later, struct yi_error *error)
{
	struct yi_request *request = add_request(requests);
	const struct yi_request *like = &requests->list[number];
	const size_t name_room = strlen(like->session) + 24;

	if (!request)
		return no_memory(error);
	request->n = like->n;
	request->arrive_ms = like->arrive_ms;
	request->prefix = like->prefix < 0 ? -1 : like->prefix + (int64_t)later;
	request->session = yi_mem_alloc(YI_MEM_REQUESTS, name_room);
	if (!request->session || yi_ids_reserve(&request->ids, like->ids.count))
		return no_memory(error);
	snprintf(request->session, name_room, "%s#%zu", like->session, requests->count);
	for (size_t i = 0; i < like->ids.count; i++)
		yi_ids_add(&request->ids, like->ids.ids[i]);
	if (!like->prompt)
		return 0;
	request->prompt = yi_mem_text(YI_MEM_REQUESTS, like->prompt, like->prompt_bytes);
	request->prompt_bytes = like->prompt_bytes;
	return request->prompt ? 0 : no_memory(error);
}

int yi_requests_take(struct yi_requests *requests, size_t count, struct yi_error *error)
{
	const size_t round = requests->count;
	int code = 0;

	while (requests->count > count)
		clear_request(&requests->list[--requests->count]);
	while (code == 0 && requests->count < count)
		code = repeat(requests, requests->count % round,
			      requests->count - requests->count % round, error);
	return code;
}

/* SplitMix64 (Steele, Lea, Flood 2014): any seed will do. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static double draw_unit(uint64_t *state)
{
	return (double)(draw(state) >> 11) * 0x1p-53;
}

/* 1 .. most, short ones far more often than long ones, as prompts are. */
static uint32_t draw_length(uint64_t *state, uint32_t most)
{
	double u = draw_unit(state);

	return 1 + (uint32_t)(u * u * (double)most * .999);
}

static int draw_ids(uint64_t *state, const struct yi_request_mix *mix, uint32_t count,
		    struct yi_ids *ids)
{
	/* The first few tokens of vocabularies are special ones. */
	uint32_t low = mix->n_vocab > 1024 ? 512 : mix->n_vocab / 2;
	int code = 0;

	while (code == 0 && count--)
		code = yi_ids_add(ids, low + (uint32_t)(draw(state) % (mix->n_vocab - low)));
	return code;
}

int yi_requests_draw(const struct yi_request_mix *mix, struct yi_requests *ret_requests,
		     struct yi_error *error)
{
	struct yi_requests requests = {NULL, 0, 0};
	uint64_t state = mix->seed;
	double arrive_ms = 0;
	/* A quarter of the context for a common prompt, for an own one and, at most, an answer. */
	uint32_t most = mix->context / 4 ? mix->context / 4 : 1;

	for (uint32_t i = 0; i < mix->count; i++) {
		struct yi_request *request = add_request(&requests);
		char name[32];

		if (!request)
			goto fail;
		snprintf(name, sizeof(name), "session-%u", i + 1);
		request->session = yi_mem_text(YI_MEM_REQUESTS, name, strlen(name));
		if (!request->session)
			goto fail;
		if (i >= COMMON && draw_unit(&state) < mix->share)
			request->prefix = (int64_t)(draw(&state) % COMMON);
		if (draw_ids(&state, mix, draw_length(&state, most), &request->ids))
			goto fail;
		request->n = draw_length(&state, mix->n < most ? mix->n : most);
		if (mix->rate > 0)
			arrive_ms += -log(1 - draw_unit(&state)) * 1000 / mix->rate;
		request->arrive_ms = arrive_ms;
	}
	*ret_requests = requests;
	return 0;
fail:
	yi_requests_clear(&requests);
	return no_memory(error);
}

void yi_requests_clear(struct yi_requests *requests)
{
	for (size_t i = 0; i < requests->count; i++)
		clear_request(&requests->list[i]);
	yi_mem_free(YI_MEM_REQUESTS, requests->list);
	memset(requests, 0, sizeof(*requests));
}
