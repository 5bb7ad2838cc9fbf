/* SPDX-License-Identifier: MIT */
/*
 * boot: initialises the library (COLD -> BOOTING -> READY) and owns tm_root, the table of function
 * pointers and settings that is read-only afterwards.
 *
 * The first call of any exported function boots the library; nothing depends on a constructor
 * (H01). The exported functions are tail jumps through tm_root.ops, which before boot points to
 * cold variants that boot and then perform the call. Boot uses no libc function, no lock and no
 * allocation, needs nothing but a zeroed .bss, works without an environment, and ends by
 * write-protecting tm_root.
 *
 * Any thread may boot. Another thread that arrives meanwhile waits for the boot to end; if the
 * booting thread re-enters (signal handler), it is served from early memory (early.h). Invariant
 * (tm_boot_check): in state READY every pointer of ops is set and none is a cold variant.
 */
#ifndef TM_BOOT_H
#define TM_BOOT_H

#include "shim/base/attrs.h"
#include "shim/base/tunables.h"

/*
 * Targets of the exported functions' tail jumps; each sees the return address of the program's
 * call. Callers have rounded alignments to powers of two, except for posix_memalign, which checks
 * them.
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
	void (*op_delete_sized)(void *p, size_t size); /* size: only a hint (H38) */
};

enum tm_server {
	TM_SERVER_NONE,   /* not booted */
	TM_SERVER_ENGINE, /* this library */
	TM_SERVER_LIBC,   /* passive: libc, or the next library that defines malloc */
};

enum tm_passive_reason {
	TM_PASSIVE_NOT,
	TM_PASSIVE_OFF,       /* TIERMALLOC=off */
	TM_PASSIVE_SANITIZER, /* the program brings a sanitizer's allocator (H80) */
	TM_PASSIVE_LIBC,      /* the C library is not glibc (H25) */
	TM_PASSIVE_NO_CORE,   /* the engine could not get its first memory */
};

/*
 * The definitions that follow this library in load order, to forward calls to. [const after boot]
 */
struct tm_next {
	void *(*malloc)(size_t size);
	void (*free)(void *p);
	void *(*calloc)(size_t n, size_t size);
	void *(*realloc)(void *p, size_t size);
	void *(*memalign)(size_t align, size_t size);
	int (*posix_memalign)(void **ret_p, size_t align, size_t size);
	size_t (*usable_size)(void *p);
};

/* tm_root has pages of its own: the largest page size of the architecture's kernels. */
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
	bool behind;               /* an earlier library interposes malloc (H09), see boot.c */
	bool secure;               /* AT_SECURE: ignores the environment, writes no file (H27) */
	struct tm_next next;       /* set in passive mode only */
	struct tm_options options; /* from the environment, else defaults */
	size_t page_bytes;         /* of the kernel */
	uintptr_t brk_start;       /* program break at boot: libc's main heap starts at or above */
	uintptr_t stack_end;       /* of the first thread; 0: unknown */
	int pid;                   /* of the process that booted */
	uint32_t generation;       /* of the process image that booted, see os/lock.h */
	uint8_t random[16];        /* hash of AT_RANDOM: for addresses and canaries */
	char program[64];          /* base name of the program file, truncated; "": unknown */
};

/* Aligned and padded to whole pages, so that mprotect affects nothing else. */
union tm_root_pages {
	struct tm_root root;
	unsigned char
		pages[(sizeof(struct tm_root) + TM_ROOT_ALIGN - 1) / TM_ROOT_ALIGN * TM_ROOT_ALIGN];
};

extern TM_HIDDEN union tm_root_pages tm_root_pages;
#define tm_root (tm_root_pages.root)

/*
 * Boots the library unless done. True: tm_root is ready. False: this thread is already booting, or
 * has waited one second for another thread's boot; the caller must use early memory.
 */
bool tm_boot(void);

/* True once the library is READY. Neither waits nor boots. */
bool tm_boot_is_ready(void);

/*
 * Supplied by the engine (shim/core.c): initialises the heap. Called while tm_root is complete
 * except for ops and still writable. 0, or -errno, upon which the library becomes passive. On
 * success boot has tm_alloc_ops fill ops with the functions of alloc.h or the variants that the
 * options select.
 */
int tm_core_boot(void);
void tm_alloc_ops(struct tm_ops *ops);

/* 0, or the source line of the violated invariant. */
int tm_boot_check(void);

#endif
