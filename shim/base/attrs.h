/* SPDX-License-Identifier: MIT */
/*
 * attrs: compiler vocabulary. Owns nothing, calls nothing; every layer may include it.
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
/* For declarations of variables: without it, every access goes by the offset table. */
#define TM_HIDDEN __attribute__((visibility("hidden")))
#define TM_UNUSED __attribute__((unused))
#define TM_ALIGNED(n) __attribute__((aligned(n)))
#define TM_CACHE_LINE 64
/*
 * For what every process runs and writes as it starts and as it forks: it lies together, so that a
 * short process and a forked child touch few pages. Variables go to .data, where the loader has written
 * already; what is large and mostly untouched stays in .bss. What a fork writes lies on the page of the
 * locks (start.ld).
 */
#define TM_AT_START_CODE __attribute__((section(".text.startup")))
#define TM_AT_START_DATA __attribute__((section(".data.start")))
#define TM_AT_FORK_DATA __attribute__((section(".data.fork")))
#define TM_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The thread's own state must cost no call and no allocation, whichever library asks first (H11, H13). */
#define TM_TLS _Thread_local __attribute__((tls_model("initial-exec")))

/* Whether a call in tail position is a jump, so that what it leads to sees the same return address. */
#ifndef TM_TAIL_JUMPS /* debug builds say 0 */
#ifdef __OPTIMIZE__
#define TM_TAIL_JUMPS 1
#else
#define TM_TAIL_JUMPS 0
#endif
#endif

/* Order against a signal handler on the same thread; no instruction is emitted. */
#define TM_SIGNAL_FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)

__extension__ typedef unsigned __int128 tm_u128;

/* Geometry of the zone; the kernel's page size is read at boot (tm_root), these are ours. */
#define TM_PAGE_SHIFT 12
#define TM_PAGE_BYTES ((size_t)1 << TM_PAGE_SHIFT)
#define TM_GRANULE_SHIFT 16
#define TM_GRANULE_BYTES ((size_t)1 << TM_GRANULE_SHIFT)
#define TM_UNIT_SHIFT 21
#define TM_UNIT_BYTES ((size_t)1 << TM_UNIT_SHIFT)

#endif
