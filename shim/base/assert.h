/* SPDX-License-Identifier: MIT */
/*
 * assert: tm_require is checked in all builds, for conditions that depend on untrusted input;
 * tm_assert only in debug builds (--enable-debug defines TM_DEBUG). Neither allocates.
 * tm_assert_failed is defined by the program that links this folder: os/msg.c in the library,
 * main.c in the command.
 */
#ifndef TM_BASE_ASSERT_H
#define TM_BASE_ASSERT_H

#include "config.h"
#include "shim/base/attrs.h"

/* Writes one line and ends the process with SIGABRT. */
_Noreturn TM_COLD void tm_assert_failed(const char *expression, const char *file, int line);

#define tm_require(cond) (TM_LIKELY(cond) ? (void)0 : tm_assert_failed(#cond, __FILE__, __LINE__))

#if TM_DEBUG
#define TM_DEBUG_BUILD 1
#define tm_assert(cond) tm_require(cond)
#else
#define TM_DEBUG_BUILD 0
/* Type-checked, never evaluated. */
#define tm_assert(cond) ((void)sizeof(!(cond)))
#endif

#endif
