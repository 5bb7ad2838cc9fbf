/* SPDX-License-Identifier: MIT */
/*
 * Optional interface of the preloaded library. Everything is weak: a program compiled with this
 * header runs the same without the library, so test the address of a function before the call.
 */
#ifndef TIERMALLOC_H
#define TIERMALLOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIERMALLOC_WEAK __attribute__((weak))

/* The release, e.g. "0.1.0": static storage. Any thread, signal-safe. */
TIERMALLOC_WEAK const char *tiermalloc_version(void);

#ifdef __cplusplus
}
#endif

#endif
