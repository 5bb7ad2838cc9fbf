/* SPDX-License-Identifier: MIT */
/*
 * http: as much of HTTP/1.1 (RFC 9112) as a server of small documents needs: one GET or HEAD on a
 * connection, an answer of known length, the connection closed. Requests are not trusted.
 */
#ifndef TM_TOOLS_HTTP_H
#define TM_TOOLS_HTTP_H

#include "shim/base/attrs.h"

struct tm_http_request {
	char path[512];  /* decoded, before "?" */
	char query[256]; /* behind it, as it came */
	char host[256];  /* without port */
	bool head_only;
};

/*
 * Reads a request within the time that the socket's own limit and `deadline_ms` leave. 0, or the
 * status to answer with: 400, 405, 408, 414.
 */
int tm_http_read(int fd, struct tm_http_request *ret_request, int deadline_ms);

/* Listens on "ADDR:PORT", "[ADDR6]:PORT" or "PORT" (on 127.0.0.1); a descriptor or -errno, -EINVAL where that is none. */
int tm_http_listen(const char *where, char *ret_name, size_t name_size, bool *ret_loopback);

/* The whole answer; `body` may be NULL. */
void tm_http_answer(int fd, const struct tm_http_request *request, int status, const char *type,
		    const char *body, size_t len);

/* "pid" of "pid=12&x=3": its value in buf; false where it is not there. */
bool tm_http_query(const struct tm_http_request *request, const char *key, char *buf, size_t size);

#endif
