/* SPDX-License-Identifier: MIT */
/*
 * The same random steps on the bare driver and on every pool: each result is the same, and every block holds
 * what was written to it. Two threads take the steps in turn, each with contexts of its own; blocks of all
 * kinds are freed in every way, twice, inside, while kernels run, while streams are captured, in contexts that
 * end or are reset under them. What pools may do differently is left out: addresses, ranges, handles for other
 * processes, frees while a stream is captured (a pool keeps the block where the driver ends the capture).
 * TM_SEED=N TM_MODE=slab: one seed, one mode.
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_DEVICES=2 TMFAKE_CAPACITY=64G */
#include "tests/cuda/modes.h"

#include <pthread.h>
#include <semaphore.h>

/* No header of the driver says so; its library does. */
CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream);

#define STEPS 4000
#define BLOCKS 48
#define CONTEXTS 4
#define STREAMS 6

enum kind { NONE, DEVICE, ASYNC, MANAGED, PITCH, PINNED, PINNED_FLAGS };

static struct block {
	enum kind kind;
	CUdeviceptr at;
	size_t bytes;
	uint32_t value; /* what its first and last words hold; 0: not known */
	int context;
	bool busy; /* a kernel may still write to it: only a plain free waits for that */
} blocks[BLOCKS];

static CUcontext contexts[CONTEXTS]; /* 0 and 1: primary, of both devices; NULL: there is none */
static struct {
	CUstream handle;
	int context;
	bool captured;
} streams[STREAMS];
static bool reached[2]; /* device 0 may use memory of 1, and the other way round */
static FILE *file;
static uint64_t state;
static int step, current[2], actor;

static unsigned draw(unsigned below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)((state >> 11) % below);
}

/* The result, in the record; true: it succeeded. */
static bool note(const char *what, int detail, CUresult rc)
{
	fprintf(file, "%d.%d %s %d: %d\n", step, actor, what, detail, (int)rc);
	return rc == CUDA_SUCCESS;
}

static bool capturing(void)
{
	int i;
	for (i = 0; i < STREAMS; i++)
		if (streams[i].captured)
			return true;
	return false;
}

static bool is_usable(const struct block *b)
{
	return b->kind != NONE && current[actor] >= 0 && b->context == current[actor];
}

static size_t size(void)
{
	static const size_t sizes[] = {4,       512,     4096,    65536,   1 << 20,
				       2 << 20, 3 << 20, 4 << 20, 9 << 20, 130 << 20};
	return draw(20) == 0 ? 0 : sizes[draw(10)] + (draw(3) == 0 ? 4 * draw(1000) : 0);
}

/* --- blocks --------------------------------------------------------------------------------------- */

static void fill(struct block *b)
{
	uint32_t value = 1 + draw(1u << 30);
	CUresult first, last;
	if (!is_usable(b) || capturing())
		return;
	first = cuMemsetD32_v2(b->at, value, 1);
	last = cuMemsetD32_v2(b->at + b->bytes / 4 * 4 - 4, value, 1);
	note("fill", b->kind, first != CUDA_SUCCESS ? first : last);
	/* A free on another stream would not wait for it. */
	note("synchronise", -1, cuStreamSynchronize(NULL));
	b->value = first == CUDA_SUCCESS && last == CUDA_SUCCESS ? value : 0;
}

static void look(const struct block *b)
{
	uint32_t first = 0, last = 0;
	if (b->value == 0 || !is_usable(b) || capturing())
		return;
	if (note("look", b->kind, cuMemcpyDtoH_v2(&first, b->at, 4)) &&
	    note("look", b->kind, cuMemcpyDtoH_v2(&last, b->at + b->bytes / 4 * 4 - 4, 4)))
		claim(first == b->value && last == b->value, "step %d: %x %x, not %x", step, first,
		      last, b->value);
}

static void allocate(struct block *b)
{
	struct block new = {.kind = 1 + draw(6), .bytes = size(), .context = current[actor]};
	CUstream stream = draw(3) ? streams[draw(STREAMS)].handle : NULL;
	size_t pitch = 0;
	void *host = NULL;
	CUresult rc = CUDA_ERROR_UNKNOWN;
	if (draw(2))
		new.kind = DEVICE;
	/* Of nodes of a graph the driver alone decides. */
	if (new.kind == ASYNC && capturing())
		return;
	switch (new.kind) {
	case NONE: break;
	case DEVICE: rc = cuMemAlloc_v2(&new.at, new.bytes); break;
	case ASYNC: rc = cuMemAllocAsync(&new.at, new.bytes, stream); break;
	case MANAGED: rc = cuMemAllocManaged(&new.at, new.bytes, 1 + draw(2)); break;
	case PITCH: rc = cuMemAllocPitch_v2(&new.at, &pitch, new.bytes, 1 + draw(3), 4); break;
	case PINNED: rc = cuMemAllocHost_v2(&host, new.bytes); break;
	case PINNED_FLAGS: rc = cuMemHostAlloc(&host, new.bytes, draw(2) * 2); break;
	}
	if (!note("allocate", new.kind, rc))
		return;
	if (host != NULL)
		new.at = (uintptr_t)host;
	*b = new;
	fill(b);
}

/* One free of it, in any way. */
static CUresult give(const struct block *b, CUdeviceptr at, unsigned how)
{
	if (b->kind == PINNED || b->kind == PINNED_FLAGS)
		return how == 9 ? cuMemFree_v2(at) : cuMemFreeHost((void *)(uintptr_t)at);
	if (how < 6)
		return cuMemFree_v2(at);
	return how < 8 ? cuMemFreeAsync(at, streams[how - 6].handle)
		       : cuMemFreeAsync_ptsz(at, NULL);
}

static void release(struct block *b)
{
	unsigned how = draw(b->busy ? 6 : 10);
	look(b);
	if (capturing())
		return;
	if (draw(8) == 0 && b->bytes > 4)
		note("free inside", b->kind,
		     give(b, b->at + 4 * (1 + draw((unsigned)(b->bytes / 4 - 1))), how));
	if (!note("free", b->kind * 10 + (int)how, give(b, b->at, how)))
		return;
	if (draw(6) == 0)
		note("free again", b->kind * 10 + (int)how, give(b, b->at, how));
	b->kind = NONE;
}

static void run_kernel(struct block *b)
{
	unsigned s = draw(STREAMS);
	if (!is_usable(b) || b->kind >= PINNED || b->kind == ASYNC || b->bytes < 64 ||
	    streams[s].captured || streams[s].context != current[actor])
		return;
	/* Behind the first word and before the last; it may still run when the block is freed. */
	b->busy |= note(
		"kernel", b->kind,
		tmfake_fill(streams[s].handle, b->at + 8, 0xdead0000 + draw(65536), 4, 1000000));
}

static void copy(const struct block *from, struct block *to)
{
	int here = current[actor];
	bool peer = (here == 0 || here == 1) && reached[here] && to->kind == DEVICE &&
		    to->context == 1 - here;
	CUresult rc;
	if (!is_usable(from) || to->kind == NONE || from == to || capturing() || from->value == 0 ||
	    !(is_usable(to) || peer))
		return;
	rc = cuMemcpy(to->at, from->at, 4);
	if (note("copy", from->kind * 10 + (int)to->kind, rc))
		to->value = 0;
	note("synchronise", -1, cuStreamSynchronize(NULL));
}

static void ask(const struct block *b)
{
	static const int plain[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				    CU_POINTER_ATTRIBUTE_IS_MANAGED,
				    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
				    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, CU_POINTER_ATTRIBUTE_MAPPED};
	CUdeviceptr at = b->at + (b->bytes > 8 ? 4 * draw((unsigned)(b->bytes / 4)) : 0);
	unsigned which = draw(5);
	uint64_t value = 0, owner = 0;
	int i;
	if (b->kind == NONE || current[actor] < 0)
		return;
	if (note("attribute", plain[which], cuPointerGetAttribute(&value, plain[which], at)))
		note("is", plain[which], (CUresult)(value & 0xff));
	/* Stream-ordered memory keeps the context that it was first made in. */
	if (b->kind != ASYNC &&
	    note("owner", 0, cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, at)))
		for (i = 0; i < CONTEXTS; i++)
			if (owner == (uintptr_t)contexts[i] && owner != 0)
				note("owner is", i, 0);
	note("range", b->kind, cuMemGetAddressRange_v2(NULL, NULL, at));
	note("unmap", b->kind, b->kind == DEVICE ? cuMemUnmap(b->at, 2 * MIB) : 0);
	if (b->kind >= PINNED)
		note("register", b->kind,
		     cuMemHostRegister_v2((void *)(uintptr_t)(b->at & ~(CUdeviceptr)4095), 4096,
					  0));
	else
		note("free on the host", b->kind, cuMemFreeHost((void *)(uintptr_t)at));
}

/* --- contexts and streams ----------------------------------------------------------------------------- */

static void forget(int context)
{
	int i;
	for (i = 0; i < BLOCKS; i++) {
		/* Stream-ordered memory outlives a reset; who frees it is the driver's to say. */
		if (blocks[i].context == context && blocks[i].kind != NONE)
			blocks[i].kind = NONE;
	}
	for (i = 0; i < STREAMS; i++)
		if (streams[i].context == context)
			streams[i].handle = NULL, streams[i].context = -1,
			streams[i].captured = false;
}

static void change_current(void)
{
	int c = (int)draw(CONTEXTS + 1) - 1;
	CUcontext popped;
	if (c >= 0 && contexts[c] == NULL)
		return;
	if (draw(2)) {
		note("set", c, cuCtxSetCurrent(c < 0 ? NULL : contexts[c]));
		current[actor] = c;
		return;
	}
	/* Pushed, used, popped. */
	if (c >= 0 && note("push", c, cuCtxPushCurrent_v2(contexts[c]))) {
		int was = current[actor];
		struct block *b = &blocks[draw(BLOCKS)];
		current[actor] = c;
		if (b->kind == NONE)
			allocate(b);
		else
			release(b);
		note("pop", c, cuCtxPopCurrent_v2(&popped));
		current[actor] = was;
	}
}

static void end_or_make(void)
{
	int c = 2 + (int)draw(2);
	if (contexts[c] == NULL) {
		CUcontext popped;
		if (note("create", c, cuCtxCreate_v2(&contexts[c], 0, (int)draw(2))))
			note("pop", c, cuCtxPopCurrent_v2(&popped));
		return;
	}
	/* A context that is current elsewhere stays so, dead: that is for another test. */
	if (draw(8) || current[0] == c || current[1] == c || capturing())
		return;
	if (note("destroy", c, cuCtxDestroy_v2(contexts[c]))) {
		contexts[c] = NULL;
		forget(c);
	}
}

static void reset(void)
{
	int device = (int)draw(2);
	if (draw(30) || capturing())
		return;
	note("reset", device, cuDevicePrimaryCtxReset_v2(device));
	forget(device);
	/* Nobody reaches it any more, nor does it. */
	reached[0] = reached[1] = false;
}

static void change_stream(void)
{
	unsigned s = draw(STREAMS);
	CUgraph graph = NULL;
	if (streams[s].handle == NULL) {
		if (note("stream", (int)s, cuStreamCreate(&streams[s].handle, draw(2))))
			streams[s].context = current[actor];
		return;
	}
	if (streams[s].context != current[actor])
		return;
	if (streams[s].captured) {
		note("end", (int)s, cuStreamEndCapture(streams[s].handle, &graph));
		streams[s].captured = false;
		if (graph != NULL)
			cuGraphDestroy(graph);
	} else if (draw(4) == 0 && actor == 0) {
		/* Ended by the thread that began it. */
		streams[s].captured = note(
			"begin", (int)s,
			cuStreamBeginCapture_v2(streams[s].handle, CU_STREAM_CAPTURE_MODE_RELAXED));
	} else if (draw(6) == 0) {
		if (note("gone", (int)s, cuStreamDestroy_v2(streams[s].handle)))
			streams[s].handle = NULL;
	} else if (!capturing()) {
		note("synchronise", (int)s, cuStreamSynchronize(streams[s].handle));
	}
}

static void change_peers(void)
{
	int from = current[actor];
	CUresult rc;
	if ((from != 0 && from != 1) || capturing())
		return;
	if (reached[from])
		rc = cuCtxDisablePeerAccess(contexts[1 - from]);
	else
		rc = cuCtxEnablePeerAccess(contexts[1 - from], 0);
	if (note("peer", from, rc))
		reached[from] = !reached[from];
}

/* --- two threads, one at a time ------------------------------------------------------------------------- */

static void take_step(void)
{
	struct block *b = &blocks[draw(BLOCKS)];
	unsigned what = draw(100);
	if (what < 60 && b->kind == NONE)
		allocate(b);
	else if (what < 60)
		release(b);
	else if (what < 68)
		run_kernel(b);
	else if (what < 74)
		look(b);
	else if (what < 80)
		ask(b);
	else if (what < 84)
		copy(b, &blocks[draw(BLOCKS)]);
	else if (what < 91)
		change_current();
	else if (what < 93)
		end_or_make();
	else if (what < 94)
		reset();
	else if (what < 95)
		change_peers();
	else
		change_stream();
}

static sem_t go[2];

static void *act(void *data)
{
	int me = *(const int *)data;
	bool last;
	for (;;) {
		while (sem_wait(&go[me]) != 0)
			continue;
		if (step == STEPS)
			return NULL;
		actor = me;
		take_step();
		fflush(file);
		/* Behind the post the other one counts. */
		last = ++step == STEPS;
		sem_post(&go[last ? 1 - me : (int)draw(2)]);
		if (last)
			return NULL;
	}
}

static void body(const char *mode)
{
	static const int names[] = {0, 1};
	pthread_t other;
	char command[256];
	int i;
	state = strtoull(getenv("TM_SEED"), NULL, 10) * 2654435761u + 88172645463325252u;
	file = fopen(mode, "we");
	if (file == NULL)
		exit(2);
	for (i = 0; i < STREAMS; i++)
		streams[i].context = -1;
	ok(cuInit(0));
	for (i = 0; i < 2; i++)
		ok(cuDevicePrimaryCtxRetain(&contexts[i], i));
	current[0] = current[1] = -1;
	sem_init(&go[0], 0, 1);
	sem_init(&go[1], 0, 0);
	pthread_create(&other, NULL, act, (void *)(uintptr_t)&names[1]);
	act((void *)(uintptr_t)&names[0]);
	pthread_join(other, NULL);
	fclose(file);
	claim(tmfake_misuse() == 0);
	/* Mapped memory belongs to no context. */
	snprintf(command, sizeof(command),
		 "%s bare >expected; %s '%s' | diff expected - >difference",
		 modes_is(mode, "vmm") ? "grep -v owner" : "cat",
		 modes_is(mode, "vmm") ? "grep -v owner" : "cat", mode);
	claim(system(command) == 0, "%s, seed %s", mode, getenv("TM_SEED"));
	claim(system("head -n 6 difference") == 0);
}

int main(int argc, char **argv)
{
	unsigned seed, seeds = getenv("TM_LONG") ? 100 : 4;
	const char *only = getenv("TM_SEED");
	char number[16];
	if (argc > 1)
		return modes_run(argc, argv, body, 0);
	for (seed = 1; seed <= seeds; seed++) {
		snprintf(number, sizeof(number), "%u", seed);
		setenv("TM_SEED", only != NULL ? only : number, 1);
		modes_run(argc, argv, body, MODES_ALL);
		if (only != NULL)
			break;
	}
	return claim_end();
}
