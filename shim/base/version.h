/* SPDX-License-Identifier: MIT */
/*
 * version: the release number, in this place only. Any layer, any thread.
 */
#ifndef TM_BASE_VERSION_H
#define TM_BASE_VERSION_H

/* The release, e.g. "0.1.0": static storage, never NULL. */
const char *tm_version_string(void);

#endif
