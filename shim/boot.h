/* SPDX-License-Identifier: MIT */
/*
 * boot: COLD -> BOOTING -> READY, and the one read-only root.
 *
 * Whichever exported function is called first boots the library: nothing depends on a constructor
 * (H01). The exported functions are tail jumps through tm_root.ops; before boot these point at
 * variants that boot and then do the call. Boot uses no function of libc, no lock and no allocation,
 * works with a zeroed .bss and without an environment, and ends with tm_root write-protected.
 *
 * Threads: any. A second one that comes while the first boots waits for it; the booting thread
 * itself, should it re-enter (a signal handler), is served from early memory.
 * Invariant (tm_boot_check): in state READY every pointer of ops is set and none is a cold variant.
 */
#ifndef TM_BOOT_H
#define TM_BOOT_H

#include "shim/base/attrs.h"
#include "shim/base/tunables.h"

/*
 * What the exported functions jump through. Each of these sees the return address of the program's
 * call. Alignments have been made powers of two by the caller, but for posix_memalign, which checks.
 */
struct tm_ops {
	void *(*malloc)(size_t size);
	void (*free)(void *p);
	void *(*calloc)(size_t n, size_t size);
	void *(*realloc)(void *p, size_t size);
	void *(*memalign)(size_t align, size_t size);
	int (*posix_memalign)(void **ret_p, size_t align, size_t size);
	size_t (*usable_size)(void *p);
	void *(*op_new)(size_t size);                       /* never NULL */
	void *(*op_new_aligned)(size_t size, size_t align); /* never NULL */
	void *(*op_new_nothrow)(size_t size);
	void *(*op_new_aligned_nothrow)(size_t size, size_t align);
	void (*op_delete)(void *p);
	void (*op_delete_sized)(void *p, size_t size); /* size is a hint (H38) */
};

enum tm_server {
	TM_SERVER_NONE,   /* not booted */
	TM_SERVER_ENGINE, /* ours */
	TM_SERVER_LIBC,   /* libc, or the next library that defines malloc: we are passive */
};

enum tm_passive_reason {
	TM_PASSIVE_NOT,
	TM_PASSIVE_OFF,       /* TIERMALLOC=off */
	TM_PASSIVE_SANITIZER, /* the program brings a sanitizer's allocator (H80) */
	TM_PASSIVE_LIBC,      /* the C library is not glibc (H25) */
	TM_PASSIVE_NO_CORE,   /* the engine could not get its first memory */
};

/* The next definitions behind this library, for passing calls on. [const after boot] */
struct tm_next {
	void *(*malloc)(size_t size);
	void (*free)(void *p);
	void *(*calloc)(size_t n, size_t size);
	void *(*realloc)(void *p, size_t size);
	void *(*memalign)(size_t align, size_t size);
	int (*posix_memalign)(void **ret_p, size_t align, size_t size);
	size_t (*usable_size)(void *p);
};

/* Its own pages, as large as those of any kernel of the architecture. */
#if defined(__aarch64__)
#define TM_ROOT_ALIGN 65536
#else
#define TM_ROOT_ALIGN 4096
#endif

struct tm_root {
	struct tm_ops ops;
	uintptr_t next_dlsym;  /* jumped to by dl_*.S; 0: not known */
	uintptr_t next_dlopen; /* jumped to by dl_*.S; 0: not known */
	enum tm_server server;
	enum tm_passive_reason passive_reason;
	bool behind;         /* another definition of malloc is called first (H09): see boot.c */
	bool secure;         /* AT_SECURE: no environment is taken, no file written (H27) */
	struct tm_next next; /* set in passive mode only */
	struct tm_options options; /* what the environment says, else defaults */
	size_t page_bytes;         /* of the kernel */
	uintptr_t brk_start;       /* program break at boot: a heap of libc's can only begin here */
	uintptr_t stack_end;       /* of the first thread; 0: unknown */
	int pid;                   /* of the process that booted */
	uint32_t generation;       /* of the process image that booted, see os/lock.h */
	uint8_t random[16];        /* AT_RANDOM, stirred: for addresses and canaries */
	char program[64];          /* base name of the program file, cut; "" where unknown */
};

/* Aligned and padded, so that it can be protected without its neighbours. */
union tm_root_pages {
	struct tm_root root;
	unsigned char
		pages[(sizeof(struct tm_root) + TM_ROOT_ALIGN - 1) / TM_ROOT_ALIGN * TM_ROOT_ALIGN];
};

extern TM_HIDDEN union tm_root_pages tm_root_pages;
#define tm_root (tm_root_pages.root)

/*
 * Boots if that has not happened. True: tm_root is ready. False: this thread is booting right now,
 * or waited a second for another that is; it takes early memory.
 */
bool tm_boot(void);

/* True once the library is READY: it never waits, never boots. */
bool tm_boot_is_ready(void);

/*
 * Supplied by the engine (shim/alloc.c): sets up what its functions need. 0, or -errno, upon which the
 * library is passive. tm_root is complete but for ops, and still writable. Afterwards ops holds the
 * functions of alloc.h, which tm_alloc_ops may replace by variants that the options ask for.
 */
int tm_core_boot(void);
void tm_alloc_ops(struct tm_ops *ops);

/* 0, or the source line of the invariant that does not hold. */
int tm_boot_check(void);

#endif
