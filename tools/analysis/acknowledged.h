/* SPDX-License-Identifier: MIT */
/*
 * acknowledged: call sites that the user has acknowledged as known, each with a cap: the bytes that
 * it may hold before it is reported again. Stored in the user's file
 * $XDG_CONFIG_HOME/tiermalloc/acknowledged (default ~/.config), as lines "SITE BYTES".
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

/* Reads the file. If there is none, the list is empty. */
void tm_acknowledged_read(struct tm_acknowledged *a);
void tm_acknowledged_free(struct tm_acknowledged *a);

/*
 * Looks a site up by its id. Ids may have become longer or shorter since the acknowledgement: one
 * must be a prefix of the other.
 */
bool tm_acknowledged_find(const struct tm_acknowledged *a, const char *id, uint64_t *ret_cap_bytes);

/*
 * Adds or changes a site; a cap of 0 removes it. Returns 0, or -1 after one line on standard error.
 */
int tm_acknowledged_set(const char *id, uint64_t cap_bytes);

/* Path of the file; false if the home directory is unknown. */
bool tm_acknowledged_path(char *buf, size_t size);

#endif
