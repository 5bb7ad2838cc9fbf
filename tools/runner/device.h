/* SPDX-License-Identifier: MIT */
/*
 * device: --device cuda. There are no kernels: what an engine would keep on a device (weights, keys and
 * values, temporaries) is mirrored there, block by block, and copied to by a pinned buffer, so that the
 * device's allocator sees what an engine would ask of it. Answers are computed by the processor.
 *
 * The runtime (libcudart) is opened when it is asked for; the program has no reference to it. Blocks of
 * fewer than YI_DEVICE_LEAST bytes are not worth a device's memory. Any thread may call.
 */
#ifndef YI_DEVICE_H
#define YI_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/runner/error.h"
#include "tools/runner/mem.h"

#define YI_DEVICE_LEAST ((size_t)64 << 10)

/* Opens the runtime and its device; 0, or a negative errno with error (status 1) where there is none. */
int yi_device_open(struct yi_error *error);

/* What cannot be had ends in yi_device_trouble; the host's block is good in any case. */
void yi_device_mirror(enum yi_mem_class class, const void *block, size_t bytes);
void yi_device_forget(const void *block);

/* Copies from the host: what an engine uploads once, or after each evaluation. */
void yi_device_upload(const void *block, const void *bytes_from, size_t bytes);

/*
 * Waits, gives everything back and says on stderr what there was (quiet: not). code, or where that is 0
 * and the runtime failed meanwhile, a negative errno with error.
 */
int yi_device_end(int code, bool quiet, struct yi_error *error);

#endif
