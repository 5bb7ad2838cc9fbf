/* SPDX-License-Identifier: MIT */
/*
 * device: --device cuda. There are no kernels: memory that an engine would keep on a device
 * (weights, keys and values, temporaries) is mirrored there block by block and uploaded through a
 * pinned buffer, so that the device's allocator gets an engine's requests. Answers are computed by
 * the processor.
 *
 * The runtime (libcudart) is opened on request; the program has no reference to it. Blocks smaller
 * than YI_DEVICE_LEAST bytes are not mirrored. Any thread may call.
 */
#ifndef YI_DEVICE_H
#define YI_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/runner/error.h"
#include "tools/runner/mem.h"

#define YI_DEVICE_LEAST ((size_t)64 << 10)

/*
 * Opens the runtime and its device. Returns 0, or a negative errno with error (status 1) if there
 * is none.
 */
int yi_device_open(struct yi_error *error);

/*
 * Create and drop the mirror of a host block. A failure is recorded and reported at the end; the
 * host's block stays valid.
 */
void yi_device_mirror(enum yi_mem_class class, const void *block, size_t bytes);
void yi_device_forget(const void *block);

/* Copies from the host: what an engine uploads once, or after each evaluation. */
void yi_device_upload(const void *block, const void *bytes_from, size_t bytes);

/*
 * Waits for the device, frees everything and prints a summary on stderr (unless quiet). Returns
 * `code`; if that is 0 and the runtime has failed, a negative errno with error.
 */
int yi_device_end(int code, bool quiet, struct yi_error *error);

#endif
