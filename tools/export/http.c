/* SPDX-License-Identifier: MIT */
#include "tools/export/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD_BYTES 8192u

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads the whole head, up to the empty line. Returns 0 or a status. */
static int read_head(int fd, char *head, int deadline_ms)
{
	int64_t end = now_ms() + deadline_ms;
	size_t len = 0;

	head[0] = '\0';
	while (strstr(head, "\r\n\r\n") == NULL) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int64_t left = end - now_ms();
		ssize_t got;

		if (len == HEAD_BYTES)
			return 414;
		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			return 408;
		got = recv(fd, head + len, HEAD_BYTES - len, 0);
		if (got <= 0 || memchr(head + len, '\0', (size_t)got))
			return 400;
		len += (size_t)got;
		head[len] = '\0';
	}
	return 0;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 32) >= 'a' && (c | 32) <= 'f')
		return (c | 32) - 'a' + 10;
	return -1;
}

/* Decodes a path with "%20" and the like; false if an escape is no character. */
static bool decode(const char *from, size_t len, char *to, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = from[i];

		if (c == '%') {
			int high, low;

			if (i + 2 >= len || (high = hex(from[i + 1])) < 0 ||
			    (low = hex(from[i + 2])) < 0 || high * 16 + low < 32)
				return false;
			c = (char)(high * 16 + low);
			i += 2;
		}
		if (n + 1 >= size)
			return false;
		to[n++] = c;
	}
	to[n] = '\0';
	return true;
}

/* Parses "GET /path?query HTTP/1.1". */
static int parse_line(const char *line, const char *end, struct tm_http_request *r)
{
	const char *target, *stop, *mark;

	if (strncmp(line, "GET ", 4) == 0)
		target = line + 4;
	else if (strncmp(line, "HEAD ", 5) == 0)
		target = line + 5, r->head_only = true;
	else
		return 405;
	stop = memchr(target, ' ', (size_t)(end - target));
	if (stop == NULL || strncmp(stop, " HTTP/1.", 8) != 0 || *target != '/')
		return 400;
	mark = memchr(target, '?', (size_t)(stop - target));
	if (mark && (size_t)(stop - mark) < sizeof(r->query))
		snprintf(r->query, sizeof(r->query), "%.*s", (int)(stop - mark - 1), mark + 1);
	return decode(target, (size_t)((mark ? mark : stop) - target), r->path, sizeof(r->path))
		       ? 0
		       : 400;
}

/* Parses the value of Host, without its port. */
static void parse_host(const char *fields, struct tm_http_request *r)
{
	for (const char *line = fields; line && *line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, "Host:", 5) != 0)
			continue;
		line += 5 + strspn(line + 5, " \t");
		size_t len = *line == '[' ? strcspn(line, "]") + 1 : strcspn(line, ":\r ");
		snprintf(r->host, sizeof(r->host), "%.*s", (int)len, line);
		return;
	}
}

int tm_http_read(int fd, struct tm_http_request *ret_request, int deadline_ms)
{
	char head[HEAD_BYTES + 1];
	struct tm_http_request r = {.path = ""};
	int status = read_head(fd, head, deadline_ms);

	if (status == 0) {
		const char *end = strstr(head, "\r\n");

		status = parse_line(head, end, &r);
		parse_host(end, &r);
	}
	*ret_request = r;
	return status;
}

bool tm_http_query(const struct tm_http_request *r, const char *key, char *buf, size_t size)
{
	size_t len = strlen(key);

	for (const char *at = r->query; *at; at += strcspn(at, "&"), at += *at == '&') {
		if (strncmp(at, key, len) == 0 && at[len] == '=')
			return decode(at + len + 1, strcspn(at + len + 1, "&"), buf, size);
	}
	return false;
}

static const char *reason(int status)
{
	switch (status) {
	case 200: return "OK";
	case 400: return "Bad Request";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 408: return "Request Timeout";
	case 414: return "URI Too Long";
	case 503: return "Service Unavailable";
	default: return "Internal Server Error";
	}
}

static void send_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return;
		bytes += sent;
		len -= (size_t)sent;
	}
}

/*
 * Reads the rest of a request: unread data at a close would reset the connection, and the answer
 * would be lost.
 */
static void drain(int fd)
{
	int64_t end = now_ms() + 500;
	char part[4096];
	int64_t left;

	shutdown(fd, SHUT_WR);
	while ((left = end - now_ms()) > 0) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (poll(&p, 1, (int)left) <= 0 || recv(fd, part, sizeof(part), 0) <= 0)
			return;
	}
}

void tm_http_answer(int fd, const struct tm_http_request *request, int status, const char *type,
		    const char *body, size_t len)
{
	char head[512], text[64];

	if (body == NULL) {
		len = (size_t)snprintf(text, sizeof(text), "%d %s\n", status, reason(status));
		body = text;
		type = "text/plain; charset=utf-8";
	}
	int head_len = snprintf(head, sizeof(head),
				"HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
				"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
				"%sConnection: close\r\n\r\n",
				status, reason(status), type, len,
				status == 405 ? "Allow: GET, HEAD\r\n" : "");
	send_all(fd, head, (size_t)head_len);
	if (!request->head_only)
		send_all(fd, body, len);
	drain(fd);
}

/* Parses "[::1]:9000", "127.0.0.1:9000" or "9000". */
static bool parse_address(const char *where, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)ret;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)ret;
	const char *colon = strrchr(where, ':');
	const char *digits = colon ? colon + 1 : where;
	char address[64] = "127.0.0.1", *end;
	unsigned long port = strtoul(digits, &end, 10);

	memset(ret, 0, sizeof(*ret));
	if (*digits < '0' || *digits > '9' || *end != '\0' || port > 65535)
		return false;
	if (colon && (size_t)(colon - where) >= sizeof(address))
		return false;
	if (colon && colon != where)
		snprintf(address, sizeof(address), "%.*s", (int)(colon - where), where);
	if (strcmp(address, "localhost") == 0)
		snprintf(address, sizeof(address), "127.0.0.1");
	size_t len = strlen(address);
	if (address[0] == '[' && address[len - 1] == ']') {
		address[len - 1] = '\0';
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)port);
		*ret_len = sizeof(*six);
		return inet_pton(AF_INET6, address + 1, &six->sin6_addr) == 1;
	}
	four->sin_family = AF_INET;
	four->sin_port = htons((uint16_t)port);
	*ret_len = sizeof(*four);
	return inet_pton(AF_INET, address, &four->sin_addr) == 1;
}

static void name_of(int fd, char *buf, size_t size, bool *ret_loopback)
{
	struct sockaddr_storage s;
	socklen_t len = sizeof(s);
	char text[INET6_ADDRSTRLEN] = "";

	if (getsockname(fd, (struct sockaddr *)&s, &len) != 0)
		memset(&s, 0, sizeof(s));
	if (s.ss_family == AF_INET6) {
		const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)&s;

		inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
		snprintf(buf, size, "[%s]:%u", text, ntohs(six->sin6_port));
		*ret_loopback = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
	} else {
		const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)&s;

		inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
		snprintf(buf, size, "%s:%u", text, ntohs(four->sin_port));
		*ret_loopback = ntohl(four->sin_addr.s_addr) >> 24 == 127;
	}
}

int tm_http_listen(const char *where, char *ret_name, size_t name_size, bool *ret_loopback)
{
	struct sockaddr_storage address;
	socklen_t len = 0;
	int one = 1, fd;

	if (!parse_address(where, &address, &len))
		return -EINVAL;
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&address, len) != 0 || listen(fd, 64) != 0) {
		int error = errno;

		close(fd);
		return error == EINVAL ? -EADDRNOTAVAIL : -error;
	}
	name_of(fd, ret_name, name_size, ret_loopback);
	return fd;
}
