/* SPDX-License-Identifier: MIT */
/*
 * memory: the devices' pages of 2 MiB and what cuMemAlloc and cuMemFree make of them. As on real
 * devices a block below 1 MiB shares its page with others of the same context.
 */
#include "tests/cuda/fake/fake.h"

#include <sys/mman.h>
#include <unistd.h>

#define SMALL ((size_t)1 << 20)
#define SLOT ((size_t)512)
#define SLOTS (FAKE_PAGE / SLOT)

struct device {
	int fd;
	char *alias;
	size_t pages, used, peak, fresh;
	uint32_t *idle;
	size_t idle_count;
	uint64_t *touched;
	struct fake_block *blocks;
};

/* A page that small allocations share. */
struct fake_block {
	CUdeviceptr start;
	CUcontext ctx;
	CUdevice device;
	uint32_t page;
	size_t used;
	uint64_t map[SLOTS / 64];
	struct fake_block *next;
};

static struct device device[FAKE_DEVICES];
static char **page_table;

void fake_memory_init(void)
{
	int i;
	page_table =
		mmap(NULL, (fake.va_bytes / FAKE_PAGE) * sizeof(char *), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (i = 0; i < fake.devices; i++) {
		struct device *d = &device[i];
		d->pages = fake.capacity / FAKE_PAGE;
		d->fd = memfd_create("fake-device", MFD_CLOEXEC);
		if (d->fd < 0 || ftruncate(d->fd, (off_t)fake.capacity) != 0)
			abort();
		d->alias = mmap(NULL, fake.capacity, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_NORESERVE, d->fd, 0);
		d->idle = calloc(d->pages, sizeof(uint32_t));
		d->touched = calloc(d->pages / 64 + 1, 8);
		if (d->alias == MAP_FAILED || d->idle == NULL || d->touched == NULL)
			abort();
	}
}

int fake_memory_fd(CUdevice i)
{
	return device[i].fd;
}

char *fake_memory_alias(CUdevice i, uint32_t page)
{
	return device[i].alias + (size_t)page * FAKE_PAGE;
}

size_t fake_memory_free_bytes(CUdevice i)
{
	return (device[i].pages - device[i].used) * FAKE_PAGE;
}

FAKE_EXPORT uint64_t tmfake_used(int i)
{
	return device[i].used * FAKE_PAGE;
}

FAKE_EXPORT uint64_t tmfake_peak(int i)
{
	return device[i].peak * FAKE_PAGE;
}

FAKE_EXPORT void tmfake_reset_counts(void)
{
	int i;
	fake_lock();
	memset(fake.calls, 0, sizeof(fake.calls));
	for (i = 0; i < fake.devices; i++)
		device[i].peak = device[i].used;
	fake_unlock();
}

/* --- pages ------------------------------------------------------------------------------------ */

static uint32_t take_page(struct device *d)
{
	uint32_t page = d->idle_count > 0 ? d->idle[--d->idle_count] : (uint32_t)d->fresh++;
	if (++d->used > d->peak)
		d->peak = d->used;
	return page;
}

static void give_page(struct device *d, uint32_t page)
{
	uint64_t bit = (uint64_t)1 << (page % 64);
	if (d->touched[page / 64] & bit) {
		madvise(d->alias + (size_t)page * FAKE_PAGE, FAKE_PAGE, MADV_REMOVE);
		d->touched[page / 64] &= ~bit;
	}
	d->idle[d->idle_count++] = page;
	d->used--;
}

uint32_t fake_memory_page_of(CUdevice i, const char *alias)
{
	return (uint32_t)((size_t)(alias - device[i].alias) / FAKE_PAGE);
}

static char **entry_of(CUdeviceptr at)
{
	uint64_t offset = at - FAKE_DEVICE_BASE;
	return at < FAKE_DEVICE_BASE || offset >= fake.va_bytes ? NULL
								: &page_table[offset / FAKE_PAGE];
}

void fake_translate_set(CUdeviceptr at, char *alias)
{
	*entry_of(at) = alias;
}

char *fake_translate(CUdeviceptr at, size_t *run)
{
	char **entry = entry_of(at);
	size_t in = at % FAKE_PAGE;
	int i;
	*run = FAKE_PAGE - in;
	if (entry == NULL || *entry == NULL)
		return NULL;
	for (i = 0; i < fake.devices; i++)
		if (*entry >= device[i].alias && *entry < device[i].alias + fake.capacity) {
			uint32_t page = fake_memory_page_of(i, *entry);
			device[i].touched[page / 64] |= (uint64_t)1 << (page % 64);
		}
	return *entry + in;
}

/* --- small blocks ----------------------------------------------------------------------------- */

static size_t find_slots(const struct fake_block *b, size_t count)
{
	size_t at, run = 0;
	for (at = 0; at < SLOTS; at++) {
		if (b->map[at / 64] == UINT64_MAX) {
			run = 0;
			at |= 63;
			continue;
		}
		run = b->map[at / 64] >> (at % 64) & 1 ? 0 : run + 1;
		if (run == count)
			return at + 1 - count;
	}
	return SLOTS;
}

static void mark_slots(struct fake_block *b, size_t at, size_t count)
{
	for (; count > 0; at++, count--)
		b->map[at / 64] ^= (uint64_t)1 << (at % 64);
}

static struct fake_block *new_block(CUdevice i, CUcontext ctx, CUresult *rc)
{
	struct device *d = &device[i];
	struct fake_block *b;
	CUdeviceptr start;
	*rc = CUDA_ERROR_OUT_OF_MEMORY;
	if (d->used == d->pages)
		return NULL;
	start = fake_va_take(&fake_device_va, FAKE_PAGE, 0);
	if (start == 0)
		return NULL;
	b = calloc(1, sizeof(*b));
	if (b == NULL)
		abort();
	b->start = start;
	b->ctx = ctx;
	b->device = i;
	b->page = take_page(d);
	fake_translate_set(start, fake_memory_alias(i, b->page));
	b->next = d->blocks;
	d->blocks = b;
	return b;
}

static struct fake_range *small_new(CUdevice i, CUcontext ctx, size_t bytes, CUresult *rc)
{
	size_t count = (bytes + SLOT - 1) / SLOT, at = SLOTS;
	struct fake_block *b;
	struct fake_range *range;
	for (b = device[i].blocks; b != NULL; b = b->next) {
		if (b->ctx != ctx || SLOTS - b->used < count)
			continue;
		at = find_slots(b, count);
		if (at < SLOTS)
			break;
	}
	if (b == NULL) {
		b = new_block(i, ctx, rc);
		if (b == NULL)
			return NULL;
		at = 0;
	}
	mark_slots(b, at, count);
	b->used += count;
	range = fake_range_new(FAKE_DEVICE, b->start + at * SLOT, bytes);
	range->block = b;
	return range;
}

/* The page and the place in it of a small allocation, the pages of another. */
size_t fake_memory_pages(const struct fake_range *range, uint32_t *page, size_t room,
			 size_t *offset)
{
	size_t n, count = (range->bytes + FAKE_PAGE - 1) / FAKE_PAGE;
	*offset = 0;
	if (range->block != NULL) {
		*offset = (size_t)(range->start - range->block->start);
		page[0] = range->block->page;
		return 1;
	}
	for (n = 0; n < count && n < room; n++)
		page[n] =
			fake_memory_page_of(range->device, *entry_of(range->start + n * FAKE_PAGE));
	return count;
}

static void small_free(struct fake_range *range)
{
	struct fake_block *b = range->block, **at;
	size_t count = (range->bytes + SLOT - 1) / SLOT;
	mark_slots(b, (size_t)(range->start - b->start) / SLOT, count);
	b->used -= count;
	if (b->used > 0)
		return;
	for (at = &device[b->device].blocks; *at != b; at = &(*at)->next)
		continue;
	*at = b->next;
	fake_translate_set(b->start, NULL);
	give_page(&device[b->device], b->page);
	fake_va_give(&fake_device_va, b->start, FAKE_PAGE);
	free(b);
}

/* --- allocations ------------------------------------------------------------------------------ */

static struct fake_range *large_new(CUdevice i, size_t bytes, CUresult *rc)
{
	struct device *d = &device[i];
	size_t pages = (bytes + FAKE_PAGE - 1) / FAKE_PAGE, n;
	CUdeviceptr start;
	*rc = CUDA_ERROR_OUT_OF_MEMORY;
	if (bytes > fake.capacity || pages > d->pages - d->used)
		return NULL;
	start = fake_va_take(&fake_device_va, bytes, 0);
	if (start == 0)
		return NULL;
	for (n = 0; n < pages; n++)
		fake_translate_set(start + n * FAKE_PAGE, fake_memory_alias(i, take_page(d)));
	return fake_range_new(FAKE_DEVICE, start, bytes);
}

struct fake_range *fake_memory_new(CUdevice i, CUcontext ctx, size_t bytes, enum fake_type type,
				   CUresult *rc)
{
	struct fake_range *range;
	range = bytes < SMALL && type == FAKE_DEVICE ? small_new(i, ctx, bytes, rc)
						     : large_new(i, bytes, rc);
	if (range == NULL)
		return NULL;
	range->type = type;
	range->ctx = ctx;
	range->device = i;
	fake_tree_add(&fake_ranges, range);
	return range;
}

void fake_memory_free(struct fake_range *range)
{
	size_t n, run;
	fake_tree_remove(&fake_ranges, range);
	if (range->token > 0)
		close(range->token);
	if (range->block != NULL) {
		small_free(range);
	} else {
		for (n = 0; n < range->bytes; n += FAKE_PAGE) {
			char *alias = *entry_of(range->start + n);
			give_page(&device[range->device],
				  fake_memory_page_of(range->device, alias));
			fake_translate_set(range->start + n, NULL);
		}
		run = (range->bytes + FAKE_PAGE - 1) & ~(FAKE_PAGE - 1);
		fake_va_give(&fake_device_va, range->start, run);
	}
	free(range);
}

struct fake_physical *fake_physical_new(CUdevice i, size_t bytes, CUresult *rc)
{
	struct device *d = &device[i];
	size_t pages = bytes / FAKE_PAGE, n;
	struct fake_physical *p;
	*rc = CUDA_ERROR_OUT_OF_MEMORY;
	if (pages > d->pages - d->used)
		return NULL;
	p = fake_object(FAKE_HANDLE, sizeof(*p));
	p->page = calloc(pages, sizeof(*p->page));
	p->alias = calloc(pages, sizeof(*p->alias));
	if (p->page == NULL || p->alias == NULL)
		abort();
	for (n = 0; n < pages; n++) {
		p->page[n] = take_page(d);
		p->alias[n] = fake_memory_alias(i, p->page[n]);
	}
	p->device = i;
	p->pages = pages;
	p->refs = p->handles = 1;
	p->id = ++fake.next_id;
	*rc = CUDA_SUCCESS;
	return p;
}

void fake_physical_put(struct fake_physical *p)
{
	size_t n;
	if (--p->refs > 0)
		return;
	for (n = 0; n < p->pages; n++)
		if (p->foreign)
			munmap(p->alias[n], FAKE_PAGE);
		else
			give_page(&device[p->device], p->page[n]);
	free(p->page);
	free(p->alias);
	fake_object_free(p, sizeof(*p));
}

/* --- the driver's functions ------------------------------------------------------------------- */

static CUresult new_device_memory(CUdeviceptr *pointer, size_t bytes, enum fake_type type)
{
	CUcontext ctx = fake_current();
	CUresult rc;
	struct fake_range *range;
	if (pointer == NULL || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	rc = fake_unsafe();
	if (rc != CUDA_SUCCESS)
		return rc;
	range = fake_memory_new(ctx->device, ctx, bytes, type, &rc);
	if (range == NULL)
		return rc;
	*pointer = range->start;
	return CUDA_SUCCESS;
}

/* The first form gives out addresses of 32 bits, which there are none of here. */
CUresult fake_do_cuMemAlloc(unsigned *pointer, unsigned bytes)
{
	return pointer == NULL || bytes == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fake_do_cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
	return new_device_memory(pointer, bytes, FAKE_DEVICE);
}

CUresult fake_do_cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width,
				    size_t height, unsigned element)
{
	size_t row = (width + 511) & ~(size_t)511;
	CUresult rc;
	if (pointer == NULL || pitch == NULL || width == 0 || height == 0 ||
	    (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	if (row > SIZE_MAX / height || width > row)
		return CUDA_ERROR_OUT_OF_MEMORY;
	rc = new_device_memory(pointer, row * height, FAKE_DEVICE);
	if (rc == CUDA_SUCCESS)
		*pitch = row;
	return rc;
}

CUresult fake_do_cuMemFree(unsigned pointer)
{
	(void)pointer;
	return CUDA_ERROR_INVALID_VALUE;
}

/* Waits for everything that the owner's context has begun; then the memory is gone. */
CUresult fake_do_cuMemFree_v2(CUdeviceptr pointer)
{
	struct fake_range *range = fake_find(pointer);
	CUresult rc;
	if (range == NULL || range->start != pointer ||
	    (range->type != FAKE_DEVICE && range->type != FAKE_MANAGED &&
	     range->type != FAKE_ASYNC && range->type != FAKE_GRAPH_MEMORY))
		return CUDA_ERROR_INVALID_VALUE;
	rc = fake_unsafe();
	if (rc != CUDA_SUCCESS)
		return rc;
	if (range->ctx != NULL) {
		fake_wait_until(fake_ctx_tail(range->ctx));
		rc = range->ctx->broken;
	}
	if (range->type == FAKE_ASYNC || range->type == FAKE_GRAPH_MEMORY)
		fake_async_free(range, NULL, fake.now);
	else if (range->type == FAKE_MANAGED)
		fake_host_release(range);
	else
		fake_memory_free(range);
	return rc;
}

CUresult fake_do_cuMemGetInfo_v2(size_t *available, size_t *total)
{
	CUdevice i = fake_current()->device;
	if (available != NULL)
		*available = fake_memory_free_bytes(i);
	if (total != NULL)
		*total = fake.capacity;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)
{
	struct fake_range *range = fake_find(pointer);
	if (range == NULL || range->type == FAKE_REGISTERED)
		return CUDA_ERROR_NOT_FOUND;
	if (base != NULL)
		*base = range->start;
	if (bytes != NULL)
		*bytes = range->bytes;
	return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult tmfake_range(CUdeviceptr at, CUdeviceptr *base, size_t *bytes)
{
	CUresult rc;
	fake_lock();
	rc = fake_do_cuMemGetAddressRange_v2(base, bytes, at);
	fake_unlock();
	return rc;
}
