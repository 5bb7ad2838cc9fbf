/* SPDX-License-Identifier: MIT */
/*
 * control: what the fake driver tells and takes beside the driver interface. The functions are
 * exported by every libcuda.so.1 of this folder; a program links it or asks dlsym.
 *
 * The environment, read once by the first call of any kind:
 *   TMFAKE_DEVICES=1        how many, at most 4
 *   TMFAKE_CAPACITY=8G      memory of each
 *   TMFAKE_VERSION=N        what cuDriverGetVersion says, not above what the library was built as
 *   TMFAKE_SEED=0           not 0: durations and times vary, by this seed
 *   TMFAKE_FAIL=NAME:NTH:CODE,...   the NTH call from now (1 is the next) of an export fails
 *   TMFAKE_LATENCY=NAME:NS,...      what a call costs on the virtual clock; *: every call
 *   TMFAKE_PEERS=1          0: devices can't reach each other's memory
 *   TMFAKE_ATTR=N:VALUE,... attributes of devices
 *   TMFAKE_VA=4T            addresses that the driver may give out
 *   TMFAKE_TRACE=FILE       every call with thread, name, result
 *   TMFAKE_STRICT=1         a call after exit or in a forked child is said on stderr
 *   TMFAKE_SELF=1           cuInit asks dlsym for the driver's own functions, as some drivers do
 *
 * Time is virtual and per process. A call costs its latency; waiting moves the clock to the end of
 * what is waited for. Work takes effect when it ends, so memory that is used again too early is
 * overwritten by its former owner.
 */
#ifndef TM_TEST_FAKE_CONTROL_H
#define TM_TEST_FAKE_CONTROL_H

#include "tests/cuda/cu.h"

/* cuGetProcAddress_v2 as the driver has it, whatever is preloaded; no call is counted. */
CUresult tmfake_lookup(const char *symbol, void **pfn, int version, uint64_t flags, int *status);

/* cuMemGetAddressRange as the driver has it. */
CUresult tmfake_range(CUdeviceptr at, CUdeviceptr *base, size_t *bytes);

/* The virtual clock in ns. */
uint64_t tmfake_now(void);
void tmfake_advance(uint64_t ns);

/* How often an export was called; NULL: all of them. reset: from 0 again, peaks too. */
uint64_t tmfake_calls(const char *name);
/* Of those that make, map or release memory: what an allocation or a free may need but looking and waiting. */
uint64_t tmfake_memory_calls(void);
void tmfake_reset_counts(void);

/* The nth call from now of this export fails with code. 0, or -1: no such export. */
int tmfake_fail(const char *name, unsigned nth, int code);

/* No failure that was asked for comes any more. */
void tmfake_forgive(void);

/* From now on everything in this context fails with code, as after a device fault. */
void tmfake_break(CUcontext ctx, int code);

/* A kernel on this stream that writes value to count words and takes ns. */
CUresult tmfake_fill(CUstream stream, CUdeviceptr at, uint32_t value, size_t count, uint64_t ns);

/* Device bytes as they are at this moment, without waiting. -1: not mapped. */
int tmfake_peek(CUdeviceptr at, void *to, size_t bytes);

/* Physical bytes of a device in use, and the most there were. */
uint64_t tmfake_used(int device);
uint64_t tmfake_peak(int device);

/* Work that was begun and hasn't ended. */
uint64_t tmfake_pending(void);

/* Calls that no program may make: after exit, in a forked child, of freed memory by a kernel. */
uint64_t tmfake_misuse(void);

/* Live allocations by the driver's own book: device, host, managed, async and mapped ones. */
uint64_t tmfake_live(void);

#endif
