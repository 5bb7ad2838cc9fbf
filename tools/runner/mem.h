/* SPDX-License-Identifier: MIT */
/*
 * Memory by class: what the runner requests from malloc, counted for the summary at the end of a
 * run.
 *
 * Every block of the runner is allocated here, so that live bytes, peaks and calls are known per
 * class and one limit covers all (--memory-limit). Underneath are malloc, posix_memalign, realloc
 * and free, nothing else: the allocator under test gets an engine's requests.
 *
 * Any thread may call. Counters are atomic; sizes are those of malloc_usable_size.
 */
#ifndef YI_MEM_H
#define YI_MEM_H

#include <stddef.h>
#include <stdint.h>

enum yi_mem_class {
	YI_MEM_WEIGHTS,     /* parameters read into memory (mapped ones are counted apart) */
	YI_MEM_KV,          /* keys and values of sessions, pooled buffers included */
	YI_MEM_ACTIVATIONS, /* temporaries of one evaluation */
	YI_MEM_TOKENIZER,   /* vocabulary and its tables */
	YI_MEM_REQUESTS,    /* prompts, tokens, texts, request state */
	YI_MEM_OTHER,       /* metadata, model description, threads */
	YI_MEM_CLASSES
};

struct yi_mem_count {
	uint64_t live_bytes, peak_bytes, blocks, allocs, frees, refused;
};

/* Return NULL with errno ENOMEM if malloc does or if the limit would be exceeded. */
void *yi_mem_alloc(enum yi_mem_class class, size_t bytes);
void *yi_mem_zeroed(enum yi_mem_class class, size_t bytes);
void *yi_mem_aligned(enum yi_mem_class class, size_t align, size_t bytes);
/* A product that overflows is ENOMEM too. */
void *yi_mem_array(enum yi_mem_class class, size_t count, size_t bytes);
/* NULL: the old block is untouched. */
void *yi_mem_resize(enum yi_mem_class class, void *block, size_t bytes);
char *yi_mem_text(enum yi_mem_class class, const char *text, size_t bytes);
void yi_mem_free(enum yi_mem_class class, void *block);

/*
 * Callbacks for blocks (device.h): after a block was allocated, before it is freed, and after its
 * bytes moved.
 */
struct yi_mem_watch {
	void (*had)(enum yi_mem_class class, const void *block, size_t bytes);
	void (*goes)(const void *block);
	void (*moved)(const void *block, const void *bytes_from, size_t bytes);
};

/* Sets the callbacks; NULL: none, the default. To be called before other threads allocate. */
void yi_mem_set_watch(const struct yi_mem_watch *watch);

/* 0: no limit (the default).  Counts all classes together. */
void yi_mem_set_limit(uint64_t bytes);
void yi_mem_read(enum yi_mem_class class, struct yi_mem_count *ret_count);
uint64_t yi_mem_live_bytes(void);
uint64_t yi_mem_peak_bytes(void);
const char *yi_mem_class_name(enum yi_mem_class class);

#endif
