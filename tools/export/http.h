/* SPDX-License-Identifier: MIT */
/*
 * http: the part of HTTP/1.1 (RFC 9112) that a server of small documents needs: one GET or HEAD per
 * connection, an answer of known length, then the connection is closed. Requests are not trusted.
 */
#ifndef TM_TOOLS_HTTP_H
#define TM_TOOLS_HTTP_H

#include "shim/base/attrs.h"

struct tm_http_request {
	char path[512];  /* decoded, before "?" */
	char query[256]; /* after "?", not decoded */
	char host[256];  /* without port */
	bool head_only;
};

/*
 * Reads a request, within the socket's own timeout and `deadline_ms`. Returns 0, or the status to
 * answer with: 400, 405, 408, 414.
 */
int tm_http_read(int fd, struct tm_http_request *ret_request, int deadline_ms);

/*
 * Listens on "ADDR:PORT", "[ADDR6]:PORT" or "PORT" (on 127.0.0.1). Returns a descriptor or -errno;
 * -EINVAL for another format.
 */
int tm_http_listen(const char *where, char *ret_name, size_t name_size, bool *ret_loopback);

/* Sends the whole answer; `body` may be NULL. */
void tm_http_answer(int fd, const struct tm_http_request *request, int status, const char *type,
		    const char *body, size_t len);

/* Copies the value of a key, such as "pid" in "pid=12&x=3", to buf; false if it is missing. */
bool tm_http_query(const struct tm_http_request *request, const char *key, char *buf, size_t size);

#endif
