/* SPDX-License-Identifier: MIT */
/*
 * module: the interface between the library proper (shim/module.h) and the hooks, and the CUDA
 * lines of the report at exit. These come from the hooks' own records: at exit the driver may be
 * gone, and is not called.
 */
#include "shim/module.h"

#include "cuda_hooks/caller.h"
#include "cuda_hooks/context.h"
#include "cuda_hooks/driver.h"
#include "cuda_hooks/hooks.h"
#include "cuda_hooks/note.h"
#include "cuda_hooks/pools.h"
#include "cuda_hooks/track.h"
#include "shim/boot.h"
#include "shim/ledger/ledger.h"

static const char *const kind_names[TM_TRACK_KINDS] = {
	[TM_LEDGER_GPU_DEVICE] = "device",      [TM_LEDGER_GPU_ASYNC] = "stream-ordered",
	[TM_LEDGER_GPU_VMM] = "virtual memory", [TM_LEDGER_GPU_MANAGED] = "managed",
	[TM_LEDGER_GPU_PINNED] = "pinned host", [TM_LEDGER_GPU_REGISTERED] = "registered host",
	[TM_LEDGER_GPU_ARRAY] = "arrays",       [TM_LEDGER_GPU_IPC] = "of other processes",
};

static void add_device(struct tm_fmt_out *out, unsigned device)
{
	struct tm_track_total total;
	unsigned kind;
	tm_track_total(device, &total);
	for (kind = 0; kind < TM_TRACK_KINDS; kind++) {
		char live[24], peak[24];
		if (total.peak_bytes[kind] == 0 && total.objects[kind] == 0)
			continue;
		tm_fmt_bytes(live, sizeof(live), total.live_bytes[kind]);
		tm_fmt_bytes(peak, sizeof(peak), total.peak_bytes[kind]);
		tm_fmt_add(out, "  GPU %u %-16s%12s%12s%12zu\n", device, kind_names[kind], live,
			   peak, (size_t)total.objects[kind]);
	}
}

static void add_bytes(struct tm_fmt_out *out, const char *name, uint64_t bytes, const char *meaning)
{
	char text[24];
	if (bytes == 0)
		return;
	tm_fmt_bytes(text, sizeof(text), bytes);
	tm_fmt_add(out, "  %-18s%12s  %s\n", name, text, meaning);
}

static void add_pools(struct tm_fmt_out *out)
{
	struct tm_pools_totals t;
	tm_pools_totals(&t);
	if (t.hits + t.misses == 0)
		return;
	tm_fmt_add(out, "  %-18s%12zu  of %zu device requests\n", "CUDA pool hits", (size_t)t.hits,
		   (size_t)(t.hits + t.misses));
	add_bytes(out, "CUDA kept", t.idle_bytes, "device memory, free for reuse");
	add_bytes(out, "CUDA host kept", t.host_idle_bytes, "pinned memory, free for reuse");
	add_bytes(out, "CUDA slabs", t.slab_bytes, "of the driver, cut into blocks");
}

/* [lock] Writes the pools' figures to the ledger. */
static void write_pools(void)
{
	struct tm_ledger_header *header = tm_ledger_header();
	struct tm_ledger_gpu_pool *area;
	uint32_t count;
	if (header == NULL || !tm_hooks_pools())
		return;
	area = tm_ledger_area(TM_LEDGER_GPU_POOLS_AT, TM_LEDGER_GPU_POOLS * sizeof(*area));
	if (area == NULL)
		return;
	count = tm_pools_write(area);
	__atomic_store_n(&header->gpu_pools, count, __ATOMIC_RELEASE);
}

static uint64_t sample(void)
{
	uint64_t bytes = 0;
	unsigned device;
	if (!tm_hooks_try())
		return UINT64_MAX;
	for (device = 0; device < tm_track_devices(); device++)
		bytes += tm_track_live(device);
	if (tm_track_devices() != 0)
		write_pools();
	tm_hooks_unlock();
	return bytes;
}

static bool each_block(void (*see)(uint32_t row, uint32_t born_ms, void *arg), void *arg)
{
	if (!tm_hooks_try())
		return false;
	tm_track_each(see, arg);
	tm_hooks_unlock();
	return true;
}

static void report(struct tm_fmt_out *out)
{
	struct tm_driver_counts counts;
	uint64_t hidden = tm_driver_hidden();
	unsigned device;
	tm_driver_counts(&counts);
	if (tm_track_devices() != 0) {
		tm_fmt_add(out, "  %-22s%12s%12s%12s\n", "CUDA memory", "live", "peak", "blocks");
		for (device = 0; device < tm_track_devices(); device++)
			add_device(out, device);
	}
	add_pools(out);
	if (counts.other_driver != 0)
		tm_fmt_add(out, "  %-18s%12zu  %s\n", "CUDA bypassed", (size_t)counts.other_driver,
			   "lookups in a second driver: not seen");
	if (hidden != 0)
		tm_fmt_add(out, "  %-18s%12zu  %s\n", "CUDA hidden", (size_t)hidden,
			   "drivers in other namespaces (dlmopen): not seen");
	if (tm_track_lost() != 0)
		tm_fmt_add(out, "  %-18s%12zu  %s\n", "CUDA blocks lost", (size_t)tm_track_lost(),
			   "no memory for their records");
}

static void unloaded(void)
{
	tm_runtime_unloaded();
	tm_caller_unloaded();
	tm_driver_unloaded();
}

static TM_AT_START_CODE void fork_child(void)
{
	/*
	 * most processes have no driver: keep their tables as loaded, so that the pages stay clean
	 */
	if (!tm_hooks_were_used())
		return;
	tm_hooks_fork_child();
	tm_context_fork_child();
	tm_track_fork_child();
	tm_note_fork_child();
}

const struct tm_module tm_cuda_module = {
	.boot = tm_hooks_boot,
	.want_names = tm_driver_want_names,
	.is_defined = tm_driver_is_defined,
	.unloaded = unloaded,
	.fork_child = fork_child,
	.each_visible = tm_track_each_visible,
	.sample = sample,
	.each_block = each_block,
	.report = report,
};
