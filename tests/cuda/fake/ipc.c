/* SPDX-License-Identifier: MIT */
/*
 * ipc: device memory in two processes. A token is a small file that names the owner's device file
 * and the pages in it; the other process opens both under /proc/PID/fd.
 */
#include "tests/cuda/fake/fake.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct token {
	char magic[8];
	int pid, device_fd;
	CUdevice device;
	uint64_t bytes, offset, count;
	CUmemAllocationProp prop;
};

struct handle {
	char magic[8];
	int pid, token;
	uint64_t id;
};

static const char token_magic[8] = "tmtoken";
static const char handle_magic[8] = "tmipc";

int fake_token_new(CUdevice device, size_t bytes, size_t offset, const uint32_t *pages,
		   size_t count, const CUmemAllocationProp *prop)
{
	struct token t = {.pid = getpid(),
			  .device_fd = fake_memory_fd(device),
			  .device = device,
			  .bytes = bytes,
			  .offset = offset,
			  .count = count};
	int fd = memfd_create("fake-token", MFD_CLOEXEC);
	memcpy(t.magic, token_magic, sizeof(t.magic));
	if (prop != NULL)
		t.prop = *prop;
	if (fd < 0)
		return -1;
	if (pwrite(fd, &t, sizeof(t), 0) == (ssize_t)sizeof(t) &&
	    pwrite(fd, pages, count * sizeof(*pages), sizeof(t)) ==
		    (ssize_t)(count * sizeof(*pages)))
		return fd;
	close(fd);
	return -1;
}

static int open_of(int pid, int fd)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

static bool map_pages(struct fake_physical *p, int fd)
{
	size_t n;
	for (n = 0; n < p->pages; n++) {
		p->alias[n] = mmap(NULL, FAKE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				   (off_t)p->page[n] * (off_t)FAKE_PAGE);
		if (p->alias[n] == MAP_FAILED)
			return false;
	}
	return true;
}

struct fake_physical *fake_token_open(int pid, int token, size_t *bytes, size_t *offset)
{
	int fd = open_of(pid, token), device_fd = -1;
	struct fake_physical *p = NULL;
	struct token t;
	if (fd >= 0 && pread(fd, &t, sizeof(t), 0) == (ssize_t)sizeof(t) &&
	    memcmp(t.magic, token_magic, sizeof(t.magic)) == 0)
		device_fd = open_of(t.pid, t.device_fd);
	if (device_fd >= 0) {
		p = fake_object(FAKE_HANDLE, sizeof(*p));
		p->device = t.device;
		p->pages = t.count;
		p->refs = p->handles = 1;
		p->id = ++fake.next_id;
		p->prop = t.prop;
		p->foreign = true;
		p->page = calloc(t.count, sizeof(*p->page));
		p->alias = calloc(t.count, sizeof(*p->alias));
		if (p->page == NULL || p->alias == NULL ||
		    pread(fd, p->page, t.count * sizeof(*p->page), sizeof(t)) < 0 ||
		    !map_pages(p, device_fd))
			abort();
		*bytes = t.bytes;
		*offset = t.offset;
		close(device_fd);
	}
	if (fd >= 0)
		close(fd);
	return p;
}

/* What another process needs to reach this allocation: 64 bytes. */
static CUresult describe(void *to, struct fake_range *range)
{
	struct handle h = {.pid = getpid()};
	size_t count, offset;
	uint32_t *pages;
	if (range->token == 0) {
		count = (range->bytes + FAKE_PAGE - 1) / FAKE_PAGE;
		pages = calloc(count, sizeof(*pages));
		if (pages == NULL)
			abort();
		count = fake_memory_pages(range, pages, count, &offset);
		range->token =
			fake_token_new(range->device, range->bytes, offset, pages, count, NULL);
		free(pages);
		if (range->token < 0) {
			range->token = 0;
			return CUDA_ERROR_OPERATING_SYSTEM;
		}
	}
	memcpy(h.magic, handle_magic, sizeof(h.magic));
	h.token = range->token;
	h.id = range->id;
	memset(to, 0, 64);
	memcpy(to, &h, sizeof(h));
	return CUDA_SUCCESS;
}

/* An address anywhere in an allocation gives the handle of the whole. */
CUresult fake_do_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
	struct fake_range *range = fake_find(pointer);
	if (handle == NULL || range == NULL || range->type != FAKE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	return describe(handle, range);
}

CUresult fake_do_cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer)
{
	struct fake_range *range = fake_find(pointer);
	if (data == NULL || range == NULL || range->type != FAKE_ASYNC)
		return CUDA_ERROR_INVALID_VALUE;
	return describe(data, range);
}

static CUresult open_described(CUdeviceptr *pointer, const void *from)
{
	struct handle h;
	struct fake_physical *p;
	struct fake_range *range;
	size_t bytes, offset;
	CUdeviceptr base;
	memcpy(&h, from, sizeof(h));
	if (memcmp(h.magic, handle_magic, sizeof(h.magic)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (h.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	p = fake_token_open(h.pid, h.token, &bytes, &offset);
	if (p == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	base = fake_va_take(&fake_device_va, p->pages * FAKE_PAGE, 0);
	if (base == 0) {
		fake_physical_put(p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (size_t n = 0; n < p->pages; n++)
		fake_translate_set(base + n * FAKE_PAGE, p->alias[n]);
	range = fake_range_new(FAKE_IPC, base + offset, bytes);
	range->ctx = fake_current();
	range->device = p->device;
	range->physical = p;
	fake_tree_add(&fake_ranges, range);
	*pointer = range->start;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags)
{
	return pointer == NULL || flags > 1 ? CUDA_ERROR_INVALID_VALUE
					    : open_described(pointer, &handle);
}

CUresult fake_do_cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool,
					CUmemPoolPtrExportData *data)
{
	return pointer == NULL || data == NULL || !fake_is(pool, FAKE_POOL)
		       ? CUDA_ERROR_INVALID_VALUE
		       : open_described(pointer, data);
}

CUresult fake_do_cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags)
{
	return fake_do_cuIpcOpenMemHandle_v2(pointer, handle, flags);
}

CUresult fake_do_cuIpcCloseMemHandle(CUdeviceptr pointer)
{
	struct fake_range *range = fake_find(pointer);
	if (range == NULL || range->type != FAKE_IPC || range->start != pointer)
		return CUDA_ERROR_INVALID_VALUE;
	fake_wait_until(fake_ctx_tail(range->ctx));
	fake_unmap_range(range);
	return CUDA_SUCCESS;
}
