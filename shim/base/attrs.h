/* SPDX-License-Identifier: MIT */
/*
 * attrs: macros for compiler attributes, basic types, geometry. No state; any layer may include it.
 */
#ifndef TM_BASE_ATTRS_H
#define TM_BASE_ATTRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TM_LIKELY(x) __builtin_expect(!!(x), 1)
#define TM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TM_INLINE static inline __attribute__((always_inline))
#define TM_NOINLINE __attribute__((noinline))
#define TM_COLD __attribute__((cold, noinline))
#define TM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define TM_EXPORT __attribute__((visibility("default")))
/* For declarations of variables: without it, every access goes through the global offset table. */
#define TM_HIDDEN __attribute__((visibility("hidden")))
#define TM_UNUSED __attribute__((unused))
#define TM_ALIGNED(n) __attribute__((aligned(n)))
#define TM_CACHE_LINE 64
/*
 * Sections for code and variables that every process uses as it starts or forks. They are placed
 * together, so that a short process and a forked child touch few pages. Variables are put into
 * .data, whose pages the loader has written already; large and mostly unused ones stay in .bss.
 * What a fork writes shares the page of the locks (start.ld).
 */
#define TM_AT_START_CODE __attribute__((section(".text.startup")))
#define TM_AT_START_DATA __attribute__((section(".data.start")))
#define TM_AT_FORK_DATA __attribute__((section(".data.fork")))
#define TM_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* initial-exec: access to thread-local state needs no call and no allocation (H11, H13). */
#define TM_TLS _Thread_local __attribute__((tls_model("initial-exec")))

/*
 * 1: the compiler turns tail calls into jumps, so that the callee sees the caller's return address.
 */
#ifndef TM_TAIL_JUMPS /* debug builds say 0 */
#ifdef __OPTIMIZE__
#define TM_TAIL_JUMPS 1
#else
#define TM_TAIL_JUMPS 0
#endif
#endif

/* Compiler barrier against a signal handler on the same thread; emits no instruction. */
#define TM_SIGNAL_FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)

__extension__ typedef unsigned __int128 tm_u128;

/* Geometry of the zone, fixed. The kernel's page size may differ; it is read at boot (tm_root). */
#define TM_PAGE_SHIFT 12
#define TM_PAGE_BYTES ((size_t)1 << TM_PAGE_SHIFT)
#define TM_GRANULE_SHIFT 16
#define TM_GRANULE_BYTES ((size_t)1 << TM_GRANULE_SHIFT)
#define TM_UNIT_SHIFT 21
#define TM_UNIT_BYTES ((size_t)1 << TM_UNIT_SHIFT)

#endif
