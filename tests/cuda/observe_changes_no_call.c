/* SPDX-License-Identifier: MIT */
/*
 * Observing changes nothing: the same random calls, NULLs and nonsense among them, give the same
 * results and fill the same out-parameters with and without the library, call by call. The program
 * plays one seed into a file in two processes, bare and preloaded, and compares the files. Addresses
 * and handles of the fake driver do not depend on the process, so they are compared too.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "config.h"
#include "tests/cuda/claim.h"

#define SENTINEL 0xa5a5a5a5a5a5a5a5ull

/*
 * One letter per argument:
 *   P out address   H out host address  Q out size or 8 bytes  I out int  S out stream  E out event
 *   C out context   A out array         M out pool  G out handle  K out IPC handle  F out function
 *   d device address  h host address  n size  s stream  e event  c context  a array  m pool
 *   g VMM handle  x flags (mostly 0)  i small number  v device  t symbol  r version  T status
 *   b bytes to read or write on the host  R properties of physical memory  X access  L location
 *   Y pool properties  D array shape  3 shape in 3D  V mode (in and out)  N attribute of pointers
 */
static const struct call {
	const char *name, *args;
} calls[] = {
	{"cuInit", "x"},
	{"cuDriverGetVersion", "I"},
	{"cuDeviceGetCount", "I"},
	{"cuDeviceGet", "Ii"},
	{"cuDeviceTotalMem_v2", "Qv"},
	{"cuDeviceGetAttribute", "Iiv"},
	{"cuCtxCreate_v2", "Cxv"},
	{"cuCtxCreate_v4", "C0xv"},
	{"cuCtxDestroy_v2", "c"},
	{"cuCtxPushCurrent_v2", "c"},
	{"cuCtxPopCurrent_v2", "C"},
	{"cuCtxSetCurrent", "c"},
	{"cuCtxGetCurrent", "C"},
	{"cuCtxGetDevice", "I"},
	{"cuCtxSynchronize", ""},
	{"cuCtxRecordEvent", "ce"},
	{"cuCtxEnablePeerAccess", "cx"},
	{"cuCtxDisablePeerAccess", "c"},
	{"cuDevicePrimaryCtxRetain", "Cv"},
	{"cuDevicePrimaryCtxRelease", "v"},
	{"cuDevicePrimaryCtxRelease_v2", "v"},
	{"cuDevicePrimaryCtxReset", "v"},
	{"cuDevicePrimaryCtxReset_v2", "v"},
	{"cuDevicePrimaryCtxGetState", "vII"},
	{"cuMemAlloc_v2", "Pn"},
	{"cuMemAlloc_v2", "Pn"},
	{"cuMemAlloc_v2", "Pn"},
	{"cuMemAllocPitch_v2", "PQnni"},
	{"cuMemAllocManaged", "Pnx"},
	{"cuMemFree_v2", "d"},
	{"cuMemFree_v2", "d"},
	{"cuMemGetInfo_v2", "QQ"},
	{"cuMemGetAddressRange_v2", "QQd"},
	{"cuMemAllocHost_v2", "Hn"},
	{"cuMemHostAlloc", "Hnx"},
	{"cuMemFreeHost", "h"},
	{"cuMemHostGetDevicePointer_v2", "Phx"},
	{"cuMemHostGetFlags", "Ih"},
	{"cuMemHostRegister_v2", "bnx"},
	{"cuMemHostRegister", "bnx"},
	{"cuMemHostUnregister", "b"},
	{"cuPointerGetAttribute", "QNd"},
	{"cuPointerGetAttribute", "QNd"},
	{"cuMemGetHandleForAddressRange", "0dnxx"},
	{"cuArrayCreate_v2", "AD"},
	{"cuArray3DCreate_v2", "A3"},
	{"cuArrayDestroy", "a"},
	{"cuMipmappedArrayCreate", "A3i"},
	{"cuMipmappedArrayDestroy", "a"},
	{"cuIpcGetMemHandle", "Kd"},
	{"cuIpcCloseMemHandle", "d"},
	{"cuMemAllocAsync", "Pns"},
	{"cuMemAllocAsync_ptsz", "Pns"},
	{"cuMemAllocFromPoolAsync", "Pnms"},
	{"cuMemAllocFromPoolAsync_ptsz", "Pnms"},
	{"cuMemFreeAsync", "ds"},
	{"cuMemFreeAsync_ptsz", "ds"},
	{"cuMemPoolCreate", "MY"},
	{"cuMemPoolDestroy", "m"},
	{"cuMemPoolTrimTo", "mn"},
	{"cuMemPoolGetAttribute", "miQ"},
	{"cuMemPoolSetAttribute", "miQ"},
	{"cuDeviceGetDefaultMemPool", "Mv"},
	{"cuDeviceGetMemPool", "Mv"},
	{"cuDeviceSetMemPool", "vm"},
	{"cuMemGetDefaultMemPool", "MLi"},
	{"cuMemGetMemPool", "MLi"},
	{"cuMemSetMemPool", "Lim"},
	{"cuMemAddressReserve", "Pnn0x"},
	{"cuMemAddressFree", "dn"},
	{"cuMemCreate", "GnRx"},
	{"cuMemRelease", "g"},
	{"cuMemMap", "dn0gx"},
	{"cuMemUnmap", "dn"},
	{"cuMemSetAccess", "dnXi"},
	{"cuMemGetAllocationGranularity", "QRi"},
	{"cuMemRetainAllocationHandle", "Gd"},
	{"cuStreamCreate", "Sx"},
	{"cuStreamCreateWithPriority", "Sxi"},
	{"cuStreamDestroy_v2", "s"},
	{"cuStreamSynchronize", "s"},
	{"cuStreamSynchronize_ptsz", "s"},
	{"cuStreamQuery", "s"},
	{"cuStreamWaitEvent", "sex"},
	{"cuEventCreate", "Ex"},
	{"cuEventDestroy_v2", "e"},
	{"cuEventRecord", "es"},
	{"cuEventQuery", "e"},
	{"cuEventSynchronize", "e"},
	{"cuStreamBeginCapture", "s"},
	{"cuStreamBeginCapture_v2", "si"},
	{"cuStreamEndCapture", "sQ"},
	{"cuStreamEndCapture_ptsz", "sQ"},
	{"cuStreamIsCapturing", "sI"},
	{"cuThreadExchangeStreamCaptureMode", "V"},
	{"cuMemcpy", "ddn"},
	{"cuMemcpyHtoD_v2", "dbn"},
	{"cuMemcpyDtoH_v2", "bdn"},
	{"cuMemcpyHtoDAsync_v2", "dbns"},
	{"cuMemcpyDtoHAsync_v2", "bdns"},
	{"cuMemsetD8_v2", "din"},
	{"cuMemsetD32Async", "dins"},
	{"cuGetProcAddress", "tFrx"},
	{"cuGetProcAddress_v2", "tFrxT"},
	{"cuGetProcAddress_v2", "tFrxT"},
	{"cuGetExportTable", "Q0"},
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))
#define KEEP 32

enum { ADDRESS, HOST, STREAM, EVENT, CONTEXT, ARRAY, POOL, HANDLE, KINDS };

static uint64_t kept[KINDS][KEEP];
static unsigned kept_count[KINDS];
static uint64_t state;
static unsigned char host_bytes[1 << 16] __attribute__((aligned(4096)));

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

static void keep(int kind, uint64_t value)
{
	if (kept_count[kind] < KEEP)
		kept[kind][kept_count[kind]++] = value;
	else
		kept[kind][draw(KEEP)] = value;
}

/* Something known, often; inside of it; nothing; nonsense. */
static uint64_t known(int kind)
{
	uint64_t value = kept_count[kind] ? kept[kind][draw(kept_count[kind])] : 0;
	switch (draw(16)) {
	case 0: return 0;
	case 1: return 0x7770;
	case 2: return kind == ADDRESS || kind == HOST ? value + 512 * draw(8) : value;
	case 3: return kind == STREAM ? 1 + draw(2) : value;
	default: return value;
	}
}

static uint64_t size(void)
{
	static const uint64_t sizes[] = {
		0,         1,       4,       511,     512,      4096,     65536,
		1 << 20,   2 << 20, 3 << 20, 4 << 20, 16 << 20, 64 << 20, (uint64_t)1 << 40,
		UINT64_MAX};
	return draw(3) ? sizes[1 + draw(10)] : sizes[draw(15)];
}

struct slot {
	uint64_t word[8];
	int kind; /* what to keep of it; -1: nothing */
	bool used;
};

static uint64_t out(struct slot *s, int kind)
{
	int i;
	for (i = 0; i < 8; i++)
		s->word[i] = SENTINEL;
	s->kind = kind;
	s->used = draw(24) != 0;
	return s->used ? (uint64_t)(uintptr_t)s->word : 0;
}

static uint64_t input(struct slot *s, const void *from, size_t bytes)
{
	uint64_t at = out(s, -1);
	if (at != 0)
		memcpy(s->word, from, bytes);
	return at;
}

static uint64_t argument(char letter, struct slot *s)
{
	static const char *const symbols[] = {"cuMemAlloc",
					      "cuMemFree",
					      "cuMemAllocAsync",
					      "cuInit",
					      "cuGetProcAddress",
					      "cuMemCreate",
					      "cuCtxRecordEvent",
					      "cuNothing",
					      "cu",
					      "",
					      "cuMemAlloc_v2",
					      "cuStreamBeginCapture",
					      "cuDevicePrimaryCtxReset"};
	static const int versions[] = {0,     2000,  3020,  7000,  10010, 11020,
				       11030, 12000, 12050, 13000, 99000};
	CUmemAllocationProp prop = {.type = 1, .location = {1, (int)draw(3)}};
	CUmemAccessDesc access = {{1, (int)draw(3)}, (int)draw(4)};
	CUmemPoolProps props = {.allocType = (int)draw(2), .location = {1, (int)draw(3)}};
	CUmemLocation location = {(int)draw(3), (int)draw(3)};
	CUDA_ARRAY_DESCRIPTOR two = {draw(300), draw(4), (int)draw(4), (unsigned)draw(5)};
	CUDA_ARRAY3D_DESCRIPTOR three = {draw(300),    draw(4),           draw(3),
					 (int)draw(4), (unsigned)draw(5), 0};
	int mode = (int)draw(4);
	switch (letter) {
	case 'P': return out(s, ADDRESS);
	case 'H': return out(s, HOST);
	case 'S': return out(s, STREAM);
	case 'E': return out(s, EVENT);
	case 'C': return out(s, CONTEXT);
	case 'A': return out(s, ARRAY);
	case 'M': return out(s, POOL);
	case 'G': return out(s, HANDLE);
	case 'K':
	case 'I':
	case 'Q':
	case 'T': return out(s, -1);
	case 'F': return out(s, -2);
	case 'd': return known(ADDRESS);
	case 'h': return known(HOST);
	case 's': return draw(3) ? known(STREAM) : 0;
	case 'e': return known(EVENT);
	case 'c': return known(CONTEXT);
	case 'a': return known(ARRAY);
	case 'm': return known(POOL);
	case 'g': return known(HANDLE);
	case 'n': return size();
	case 'x': return draw(8) ? draw(2) : draw(64);
	case 'i': return draw(12);
	case 'v': return draw(3);
	case 'N': return draw(22);
	case 'r': return (uint64_t)versions[draw(11)];
	case 't': return draw(20) ? (uint64_t)(uintptr_t)symbols[draw(13)] : 0;
	case 'b': return draw(16) ? (uint64_t)(uintptr_t)(host_bytes + 4096 * draw(8)) : 0;
	case 'R': return input(s, &prop, sizeof(prop));
	case 'X': return input(s, &access, sizeof(access));
	case 'Y': return input(s, &props, 64);
	case 'L': return input(s, &location, sizeof(location));
	case 'D': return input(s, &two, sizeof(two));
	case '3': return input(s, &three, sizeof(three));
	case 'V': return input(s, &mode, sizeof(mode));
	default: return 0;
	}
}

/* A host copy may be as long as our buffer; longer ones would be the program's own mistake. */
static bool sane(const struct call *call, const uint64_t *arg)
{
	const char *b = strchr(call->args, 'b');
	if (strcmp(call->name, "cuMemHostUnregister") == 0)
		return true;
	if (b != NULL && (arg[b - call->args] == 0 || arg[2] > 4096 * 4))
		return strncmp(call->name, "cuMemHostRegister", 17) == 0 && arg[1] <= 4096 * 4;
	return strncmp(call->name, "cuMemcpy", 8) != 0 || b != NULL || arg[2] <= 4 << 20;
}

static void note(FILE *file, uint64_t number, const struct call *call, const uint64_t *arg,
		 CUresult rc, struct slot *slot)
{
	size_t i, w;
	fprintf(file, "%llu %s", (unsigned long long)number, call->name);
	for (i = 0; call->args[i]; i++) {
		/* Our own addresses differ between processes. */
		if (!strchr("bt", call->args[i]) && slot[i].kind == 0 && !slot[i].used)
			fprintf(file, " %llx", (unsigned long long)arg[i]);
	}
	fprintf(file, " -> %d", rc);
	for (i = 0; call->args[i]; i++) {
		if (!slot[i].used)
			continue;
		fprintf(file, " [");
		for (w = 0; w < 8; w++) {
			uint64_t value = slot[i].word[w];
			/* Of a function only whether there is one: lookups_lead_where_they_should. */
			if (slot[i].kind == -2 && w == 0 && value != SENTINEL)
				value = value != 0;
			if (call->args[i] == 'K' && rc == 0 && w == 1)
				value = 1; /* holds the process's number */
			if (value != SENTINEL)
				fprintf(file, " %zu:%llx", w, (unsigned long long)value);
		}
		fprintf(file, " ]");
	}
	fprintf(file, "\n");
}

static CUresult invoke(void *fn, const uint64_t *a)
{
	CUresult (*call)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
	memcpy(&call, &fn, sizeof(fn));
	return call(a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void play(const char *path, uint64_t seed, uint64_t count)
{
	FILE *file = fopen(path, "w");
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *fn[CALLS];
	uint64_t number;
	CUcontext ctx;
	size_t c, i;
	if (file == NULL || driver == NULL)
		exit(2);
	state = seed * 2654435761u + 88172645463325252u;
	for (c = 0; c < CALLS; c++)
		fn[c] = dlsym(driver, calls[c].name);
	/* A few calls come before cuInit; then there is a context to start with. */
	for (number = 0; number < count; number++) {
		struct slot slot[8];
		uint64_t arg[8] = {0};
		const struct call *call = &calls[c = draw(CALLS)];
		memset(slot, 0, sizeof(slot));
		if (number == 40) {
			ok(cuInit(0));
			ok(cuDevicePrimaryCtxRetain(&ctx, 0));
			ok(cuCtxSetCurrent(ctx));
			keep(CONTEXT, (uintptr_t)ctx);
		}
		for (i = 0; call->args[i]; i++)
			arg[i] = argument(call->args[i], &slot[i]);
		if (fn[c] == NULL || !sane(call, arg))
			continue;
		if (draw(200) == 0)
			tmfake_fail(call->name, 1,
				    draw(2) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN);
		CUresult rc = invoke(fn[c], arg);
		tmfake_forgive();
		note(file, number, call, arg, rc, slot);
		for (i = 0; call->args[i]; i++)
			if (rc == 0 && slot[i].used && slot[i].kind >= 0 &&
			    strchr("PHSECAMG", call->args[i]))
				keep(slot[i].kind, slot[i].word[0]);
	}
	fprintf(file, "misuse %llu live %llu\n", (unsigned long long)tmfake_misuse(),
		(unsigned long long)tmfake_live());
	fclose(file);
}

/* The first line that differs; NULL where none does. Lines are counted. */
static bool same(const char *a, const char *b, uint64_t *lines)
{
	FILE *fa = fopen(a, "r"), *fb = fopen(b, "r");
	char la[4096], lb[4096];
	bool equal = fa != NULL && fb != NULL;
	while (equal) {
		char *ra = fgets(la, sizeof(la), fa), *rb = fgets(lb, sizeof(lb), fb);
		if (ra == NULL && rb == NULL)
			break;
		*lines += 1;
		if (ra == NULL || rb == NULL || strcmp(la, lb) != 0) {
			claim_say("bare:    %s", ra ? la : "(no line)");
			claim_say("library: %s", rb ? lb : "(no line)");
			equal = false;
		}
	}
	if (fa != NULL)
		fclose(fa);
	if (fb != NULL)
		fclose(fb);
	return equal;
}

int main(int argc, char **argv)
{
	static const char *const drivers[] = {"", "v11020", "v11040", "v12020"};
	static const char *const modes[] = {"observe", "off"};
	uint64_t seeds = getenv("TM_LONG") ? 200 : 3, count = getenv("TM_FUZZ") ? 4000 : 10000;
	uint64_t seed, lines = 0, runs = 0;
	char path[PATH_MAX], text[64];
	size_t d, m;
	if (argc > 1) {
		const char *number = getenv("TM_SEED");
		play(argv[1], strtoull(number ? number : "1", NULL, 10), count);
		return claim_end();
	}
	if (!TM_HAVE_CUDA)
		return claim_skip("built without the CUDA hooks");
	setenv("TMFAKE_DEVICES", "2", 1);
	/* The library may ask the driver things of its own: only waiting moves the clock. */
	setenv("TMFAKE_LATENCY", "*:0", 1);
	setenv("TMFAKE_CAPACITY", "256M", 1);
	for (d = 0; d < 4; d++) {
		snprintf(path, sizeof(path), "%s/%s", getenv("TM_TESTS"), drivers[d]);
		setenv("LD_LIBRARY_PATH", path, 1);
		for (seed = 1; seed <= seeds; seed++) {
			struct claim_output out;
			snprintf(text, sizeof(text), "%llu", (unsigned long long)(seed * 10 + d));
			setenv("TM_SEED", text, 1);
			int status = claim_again("", "bare.log", &out);
			claim(status == 0, "bare: %d %s", status, out.text);
			for (m = 0; m < 2; m++) {
				setenv("TIERMALLOC_CUDA", modes[m], 1);
				status = claim_again(getenv("TM_LIB"), "ours.log", &out);
				claim(status == 0, "%s: %d %s", modes[m], status, out.text);
				claim(same("bare.log", "ours.log", &lines),
				      "driver %s seed %s mode %s", path, text, modes[m]);
				runs++;
			}
		}
	}
	printf("%llu calls compared in %llu runs\n", (unsigned long long)lines,
	       (unsigned long long)runs);
	return claim_end();
}
