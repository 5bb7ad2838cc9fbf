/* SPDX-License-Identifier: MIT */
#include "tools/runner/device.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGING_BYTES ((size_t)4 << 20)
#define BUCKETS 4096u
#define HOST_TO_DEVICE 1

/* Functions of the runtime that are used. */
static struct {
	void *library;
	int (*get_device_count)(int *count);
	int (*set_device)(int device);
	int (*malloc)(void **ptr, size_t bytes);
	int (*free)(void *ptr);
	int (*malloc_host)(void **ptr, size_t bytes);
	int (*free_host)(void *ptr);
	int (*memcpy)(void *to, const void *from, size_t bytes, int kind);
	int (*synchronize)(void);
} cuda;

/* A host block and its mirror. */
struct mirror {
	struct mirror *next;
	const void *block;
	void *at;
	size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mirror *bucket[BUCKETS];
static void *staging;
static uint64_t live_bytes, peak_bytes;
static int trouble; /* first error of the runtime */

static int find(const char *name, void *ret_function)
{
	void *found = dlsym(cuda.library, name);

	/* A function pointer from dlsym is copied, not cast. */
	memcpy(ret_function, &found, sizeof(found));
	return found ? 0 : -ENOENT;
}

static int open_library(void)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12",
					    "libcudart.so.11.0", "libcudart.so"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !cuda.library; i++)
		cuda.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!cuda.library)
		return -ENOENT;
	if (find("cudaGetDeviceCount", &cuda.get_device_count) ||
	    find("cudaSetDevice", &cuda.set_device) || find("cudaMalloc", &cuda.malloc) ||
	    find("cudaFree", &cuda.free) || find("cudaMallocHost", &cuda.malloc_host) ||
	    find("cudaFreeHost", &cuda.free_host) || find("cudaMemcpy", &cuda.memcpy) ||
	    find("cudaDeviceSynchronize", &cuda.synchronize))
		return -ENOSYS;
	return 0;
}

int yi_device_open(struct yi_error *error)
{
	static const struct yi_mem_watch watch = {yi_device_mirror, yi_device_forget,
						  yi_device_upload};

	int count = 0, rc = open_library();

	if (rc)
		return yi_error_set(error, YI_EXIT_TROUBLE, rc,
				    "--device cuda: no CUDA runtime (libcudart.so) can be loaded, "
				    "install one or leave the option out");
	rc = cuda.get_device_count(&count);
	if (rc || count == 0)
		return yi_error_set(error, YI_EXIT_TROUBLE, -ENODEV,
				    "--device cuda: the CUDA runtime finds no device (error %d)",
				    rc);
	rc = cuda.set_device(0);
	if (!rc)
		rc = cuda.malloc_host(&staging, STAGING_BYTES);
	if (rc) {
		staging = NULL;
		return yi_error_set(error, YI_EXIT_TROUBLE, -ENODEV,
				    "--device cuda: device 0 cannot be used (error %d)", rc);
	}
	yi_mem_set_watch(&watch);
	return 0;
}

static struct mirror **place(const void *block)
{
	struct mirror **at = &bucket[((uintptr_t)block >> 12) * 2654435761u % BUCKETS];

	while (*at && (*at)->block != block)
		at = &(*at)->next;
	return at;
}

static void note(int rc)
{
	if (rc && !trouble)
		trouble = rc;
}

static void drop(struct mirror **at)
{
	struct mirror *mirror = *at;

	*at = mirror->next;
	live_bytes -= mirror->bytes;
	note(cuda.free(mirror->at));
	free(mirror);
}

void yi_device_mirror(enum yi_mem_class class, const void *block, size_t bytes)
{
	struct mirror *mirror, **at;

	if (!staging || bytes < YI_DEVICE_LEAST ||
	    (class != YI_MEM_WEIGHTS && class != YI_MEM_KV && class != YI_MEM_ACTIVATIONS))
		return;
	mirror = calloc(1, sizeof(*mirror));
	if (!mirror)
		return;
	mirror->block = block;
	mirror->bytes = bytes;
	pthread_mutex_lock(&lock);
	at = place(block);
	if (*at)
		drop(at);
	at = place(block);
	int rc = cuda.malloc(&mirror->at, bytes);
	note(rc);
	if (rc) {
		free(mirror);
	} else {
		mirror->next = *at;
		*at = mirror;
		live_bytes += bytes;
		if (live_bytes > peak_bytes)
			peak_bytes = live_bytes;
	}
	pthread_mutex_unlock(&lock);
}

void yi_device_forget(const void *block)
{
	struct mirror **at;

	if (!staging)
		return;
	pthread_mutex_lock(&lock);
	at = place(block);
	if (*at)
		drop(at);
	pthread_mutex_unlock(&lock);
}

void yi_device_upload(const void *block, const void *bytes_from, size_t bytes)
{
	const unsigned char *from = bytes_from;
	struct mirror *mirror;

	if (!staging)
		return;
	pthread_mutex_lock(&lock);
	mirror = *place(block);
	for (size_t done = 0, part; mirror && done < bytes && done < mirror->bytes; done += part) {
		part = bytes - done < STAGING_BYTES ? bytes - done : STAGING_BYTES;
		if (part > mirror->bytes - done)
			part = mirror->bytes - done;
		memcpy(staging, from + done, part);
		note(cuda.memcpy((unsigned char *)mirror->at + done, staging, part,
				 HOST_TO_DEVICE));
	}
	pthread_mutex_unlock(&lock);
}

int yi_device_end(int code, bool quiet, struct yi_error *error)
{
	if (!staging)
		return code;
	pthread_mutex_lock(&lock);
	note(cuda.synchronize());
	for (size_t i = 0; i < BUCKETS; i++)
		while (bucket[i])
			drop(&bucket[i]);
	note(cuda.free_host(staging));
	staging = NULL;
	pthread_mutex_unlock(&lock);
	if (!quiet)
		fprintf(stderr, "device: %.1f MiB at most\n", (double)peak_bytes / (1 << 20));
	if (trouble && !code)
		return yi_error_set(error, YI_EXIT_TROUBLE, -EIO,
				    "--device cuda: the CUDA runtime failed (error %d)", trouble);
	return code;
}
