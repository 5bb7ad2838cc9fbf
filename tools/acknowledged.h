/* SPDX-License-Identifier: MIT */
/*
 * acknowledged: sites that the user knows of, each with the bytes that it may hold before it is
 * reported again. A file of the user's, $XDG_CONFIG_HOME/tiermalloc/acknowledged (~/.config): lines
 * "SITE BYTES".
 */
#ifndef TM_TOOLS_ACKNOWLEDGED_H
#define TM_TOOLS_ACKNOWLEDGED_H

#include "shim/base/attrs.h"

struct tm_acknowledged_site {
	char id[40];
	uint64_t cap_bytes;
};

struct tm_acknowledged {
	struct tm_acknowledged_site *site;
	size_t count;
};

/* No file: none. */
void tm_acknowledged_read(struct tm_acknowledged *a);
void tm_acknowledged_free(struct tm_acknowledged *a);

/* An id may be longer or shorter than when it was acknowledged: the common beginning counts. */
bool tm_acknowledged_find(const struct tm_acknowledged *a, const char *id, uint64_t *ret_cap_bytes);

/* Adds or changes one; a cap of 0 takes it off. 0, or -1 after one line on standard error. */
int tm_acknowledged_set(const char *id, uint64_t cap_bytes);

/* The file's path; false where no home is known. */
bool tm_acknowledged_path(char *buf, size_t size);

#endif
