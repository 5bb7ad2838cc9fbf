/* SPDX-License-Identifier: MIT */
/*
 * fake: a CUDA driver without a device, for tests. One lock guards everything below; every export
 * takes it in fake_enter and gives it back in fake_leave (entry.c), so that the functions named
 * fake_do_* run alone. Device memory lies in a memfd per device, in pages of 2 MiB; a table leads
 * from device addresses to it, so that two addresses can show the same page, and another process
 * can open it.
 */
#ifndef TM_TEST_FAKE_H
#define TM_TEST_FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/cu.h"
#include "tests/cuda/fake/control.h"

#define FAKE_EXPORT __attribute__((visibility("default")))

#define FAKE_PAGE ((size_t)2 << 20)
#define FAKE_DEVICES 4
#define FAKE_STACK 32

/*
 * Where addresses come from; fixed, so that two runs give the same ones, and away from where programs,
 * libraries, the memory of tiermalloc (22 to 40 TiB) and what the sanitizers keep lie. ThreadSanitizer lets
 * programs have next to the libraries only what they touch themselves.
 */
#define FAKE_DEVICE_BASE 0x380000000000ull
#ifdef __SANITIZE_THREAD__
#define FAKE_HOST_BASE 0x7e9000000000ull
#define FAKE_OBJECT_BASE 0x7ea000000000ull
#else
#define FAKE_HOST_BASE 0x300000000000ull
#define FAKE_OBJECT_BASE 0x2c0000000000ull
#endif

enum fake_kind { FAKE_KIND_FREE, FAKE_KIND_INIT, FAKE_KIND_CTX };

enum fake_id {
#define D(base, name, version, variant, kind, params, args) FAKE_ID_##name,
#include "tests/cuda/fake/driver.def"
#undef D
	FAKE_IDS
};

struct fake_row {
	const char *base, *name;
	int version;
	enum fake_kind kind;
	void *address, *per_thread; /* per_thread: NULL where there is no such variant */
};

extern const struct fake_row fake_rows[FAKE_IDS];

/* --- objects behind handles ------------------------------------------------------------------- */

enum fake_magic {
	FAKE_DEAD,
	FAKE_CTX = 0x43545821,
	FAKE_STREAM,
	FAKE_EVENT,
	FAKE_POOL,
	FAKE_HANDLE,
	FAKE_GRAPH,
	FAKE_NODE,
	FAKE_EXEC,
	FAKE_MODULE,
	FAKE_FUNCTION,
	FAKE_ARRAY,
	FAKE_MIPMAP
};

struct CUstream_st {
	enum fake_magic magic;
	CUcontext ctx;
	unsigned flags;
	uint64_t tail; /* when the last work on it ends */
	int capture;   /* CU_STREAM_CAPTURE_STATUS_* */
	int mode;
	CUgraph graph;
	uint64_t capture_id,
		owner; /* owner: the thread that began the capture, or whose stream it is */
	CUstream next;
};

struct CUctx_st {
	enum fake_magic magic;
	CUdevice device;
	bool primary;
	unsigned flags, refs;
	CUresult broken; /* a sticky error */
	uint64_t id;
	unsigned peers; /* devices whose memory its kernels may use */
	struct CUstream_st legacy;
	CUstream streams;
	CUcontext next;
};

struct CUevent_st {
	enum fake_magic magic;
	CUcontext ctx;
	unsigned flags;
	uint64_t end; /* when what it recorded ends; 0: never recorded */
	CUgraph captured;
};

struct CUmemPoolHandle_st {
	enum fake_magic magic;
	CUdevice device;
	bool is_default, dying;
	uint64_t threshold, reserved, reserved_high, used, used_high, maximum;
	int opportunistic, follow, internal;
	struct fake_range *idle;
};

/* Physical memory that addresses can be mapped to. */
struct fake_physical {
	enum fake_magic magic;
	CUdevice device;
	size_t pages;
	unsigned refs, handles; /* refs: handles and mappings together */
	uint64_t id;
	CUmemAllocationProp prop;
	bool foreign; /* another process's memory */
	uint32_t *page;
	char **alias;
};

enum fake_type {
	FAKE_DEVICE,
	FAKE_MANAGED,
	FAKE_HOST,
	FAKE_REGISTERED,
	FAKE_ASYNC,
	FAKE_GRAPH_MEMORY,
	FAKE_MAPPED,
	FAKE_IPC,
	FAKE_ARRAY_MEMORY, /* has no address for the program */
	FAKE_RESERVED
};

/* A piece of the address space. [lock] */
struct fake_range {
	struct fake_range *left, *right;
	uint32_t weight;
	enum fake_type type;
	CUdeviceptr start;
	size_t bytes;
	CUcontext ctx; /* NULL: belongs to no context */
	CUdevice device;
	uint64_t id;
	unsigned flags;
	unsigned readers, writers; /* FAKE_MAPPED: devices that may */
	int sync_memops;
	int token;                      /* what other processes open, or 0 */
	struct fake_block *block;       /* small ones share one */
	struct fake_physical *physical; /* FAKE_MAPPED */
	CUmemoryPool pool;              /* FAKE_ASYNC */
	bool idle;                      /* FAKE_ASYNC: freed, held by its pool */
	uint64_t ready;                 /* then: when its last use ends */
	CUstream freed_on;
	struct fake_range *next_idle;
};

/* --- core.c ----------------------------------------------------------------------------------- */

struct fake_state {
	pthread_mutex_t lock;
	bool configured, initialized, forked, exited, strict, peers;
	int devices, version;
	size_t capacity, va_bytes;
	uint64_t seed, random;
	uint64_t now, cost[FAKE_IDS], calls[FAKE_IDS], misuse, next_id, idle_ranges;
	FILE *trace;
	CUcontext contexts;
};

struct fake_thread {
	CUcontext stack[FAKE_STACK];
	uint64_t stack_id[FAKE_STACK]; /* a handle may have been reused */
	int depth;
	bool per_thread; /* the call in progress: NULL means the thread's own stream */
	int capture_mode;
	uint64_t id;
};

extern struct fake_state fake;
extern __thread struct fake_thread fake_self;
extern const int fake_built_version;

CUresult fake_enter(enum fake_id id, bool per_thread);
CUresult fake_leave(enum fake_id id, CUresult rc);
void fake_lock(void);
void fake_unlock(void);
void fake_misused(const char *what, const char *name);
uint64_t fake_random(uint64_t below);
int fake_attribute_override(int attribute, int value);
void fake_init_process(void);
void fake_look_at_self(void); /* entry.c */

/* --- space.c: handles, address ranges --------------------------------------------------------- */

void *fake_object(enum fake_magic magic, size_t bytes);
bool fake_is(const void *handle, enum fake_magic magic);
void fake_object_free(void *handle, size_t bytes);

struct fake_tree {
	struct fake_range *root;
	size_t count;
};

extern struct fake_tree fake_ranges, fake_reserves;

void fake_tree_add(struct fake_tree *tree, struct fake_range *range);
void fake_tree_remove(struct fake_tree *tree, struct fake_range *range);
/* The range that holds this address, or NULL. */
struct fake_range *fake_tree_find(const struct fake_tree *tree, CUdeviceptr at);
/* The first range that starts at or behind this address. */
struct fake_range *fake_tree_from(const struct fake_tree *tree, CUdeviceptr at);
/* The live allocation that holds this address: not what a pool has got back. */
struct fake_range *fake_find(CUdeviceptr at);
struct fake_range *fake_range_new(enum fake_type type, CUdeviceptr start, size_t bytes);

/* Addresses in units of a power of two, lowest first. 0: none left. */
struct fake_va {
	uint64_t base, *map;
	size_t units, low;
	unsigned shift;
};

extern struct fake_va fake_device_va, fake_host_va;

CUdeviceptr fake_va_take(struct fake_va *va, size_t bytes, size_t align);
void fake_va_give(struct fake_va *va, CUdeviceptr start, size_t bytes);

/* --- memory.c --------------------------------------------------------------------------------- */

void fake_memory_init(void);
struct fake_range *fake_memory_new(CUdevice device, CUcontext ctx, size_t bytes,
				   enum fake_type type, CUresult *rc);
void fake_memory_free(struct fake_range *range);
struct fake_physical *fake_physical_new(CUdevice device, size_t bytes, CUresult *rc);
void fake_physical_put(struct fake_physical *physical);
int fake_memory_fd(CUdevice device);
char *fake_memory_alias(CUdevice device, uint32_t page);
/* Where these device bytes lie for us, and how many follow in one piece; NULL: nowhere. */
char *fake_translate(CUdeviceptr at, size_t *run);
void fake_translate_set(CUdeviceptr at, char *alias);
size_t fake_memory_free_bytes(CUdevice device);
size_t fake_memory_pages(const struct fake_range *range, uint32_t *page, size_t room,
			 size_t *offset);
uint32_t fake_memory_page_of(CUdevice device, const char *alias);

/* --- work.c ----------------------------------------------------------------------------------- */

bool fake_may_use(CUcontext ctx, CUdeviceptr at, size_t bytes, bool write);
/* Where these bytes lie for us, host or device, and how many follow in one piece. */
char *fake_where(CUdeviceptr at, size_t *run);

/* --- timeline.c ------------------------------------------------------------------------------- */

enum fake_op_kind { FAKE_OP_FILL8, FAKE_OP_FILL32, FAKE_OP_COPY, FAKE_OP_HOST };

struct fake_op {
	uint64_t end, order;
	enum fake_op_kind kind;
	CUcontext ctx;
	CUdeviceptr to, from;
	size_t bytes;
	uint32_t value;
	CUhostFn fn;
	void *data, *staged; /* staged: bytes taken from pageable memory at the call */
	bool access;         /* check that the context may use the addresses */
};

void fake_settle(void);
void fake_wait_until(uint64_t time);
uint64_t fake_ctx_tail(CUcontext ctx);
uint64_t fake_stream_tail(CUstream stream);
CUstream fake_stream_of(CUstream given, CUresult *rc);
bool fake_stream_is_unused(CUstream given);
CUresult fake_submit(CUstream stream, struct fake_op *op, uint64_t ns);
void fake_perform(struct fake_op *op);
size_t fake_pending(void);
void fake_drop_ctx_ops(CUcontext ctx);

/* --- context.c -------------------------------------------------------------------------------- */

CUcontext fake_current(void);
bool fake_current_dead(void);
bool fake_ctx_alive(CUcontext ctx);

/* --- capture.c -------------------------------------------------------------------------------- */

/* A call that captures forbid: 0, or 900 after their invalidation. */
CUresult fake_unsafe(void);
/* One that waits for a whole context: forbidden while one of its streams captures. */
CUresult fake_unsafe_ctx(CUcontext ctx);
/* Does a stream record into this graph? */
bool fake_recording(CUgraph graph);
CUresult fake_capture_op(CUstream stream, const struct fake_op *op, uint64_t ns);
CUresult fake_capture_alloc(CUstream stream, CUdeviceptr *pointer, size_t bytes);
CUresult fake_capture_free(CUstream stream, CUdeviceptr pointer);
void fake_capture_abandon(CUstream stream);

/* --- ipc.c ------------------------------------------------------------------------------------ */

/* A file that describes physical pages for another process. */
int fake_token_new(CUdevice device, size_t bytes, size_t offset, const uint32_t *pages,
		   size_t count, const CUmemAllocationProp *prop);
/* The pages behind such a file, mapped here; NULL: no such file, or its owner is gone. */
struct fake_physical *fake_token_open(int pid, int token, size_t *bytes, size_t *offset);

/* --- pool.c, vmm.c, host.c -------------------------------------------------------------------- */

CUmemoryPool fake_default_pool(CUdevice device);
void fake_pool_release_idle(CUmemoryPool pool, size_t keep);
void fake_pools_trim(void);
CUresult fake_async_free(struct fake_range *range, CUstream stream, uint64_t ready);
struct fake_range *fake_pool_take(CUmemoryPool pool, CUcontext ctx, size_t bytes, CUstream stream,
				  CUresult *rc);
void fake_unmap_range(struct fake_range *range);
void fake_host_release(struct fake_range *range);

#define D(base, name, version, variant, kind, params, args) CUresult fake_do_##name params;
#include "tests/cuda/fake/driver.def"
#undef D

#endif
