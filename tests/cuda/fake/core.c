/* SPDX-License-Identifier: MIT */
/* core: the lock, the environment, what every call does first and last, and control.h. */
#include "tests/cuda/fake/fake.h"

#include <unistd.h>

struct fake_state fake = {.lock = PTHREAD_MUTEX_INITIALIZER};
__thread struct fake_thread fake_self;

struct fault {
	enum fake_id id;
	unsigned left; /* calls until it strikes; 0: unused */
	CUresult code;
};

static struct fault faults[64];
static unsigned armed; /* of these; mostly none, and then no call looks */
static int overrides[32][2];
static size_t override_count;
static uint64_t next_thread;

/* What calls cost in ns where a plain call costs 1 us: of the order that devices show. */
static const struct {
	const char *name;
	uint64_t ns;
} costs[] = {
	{"cuMemAlloc_v2", 60000},
	{"cuMemFree_v2", 40000},
	{"cuMemAllocPitch_v2", 60000},
	{"cuMemAllocHost_v2", 300000},
	{"cuMemHostAlloc", 300000},
	{"cuMemFreeHost", 200000},
	{"cuMemAllocManaged", 80000},
	{"cuMemCreate", 29000},
	{"cuMemMap", 8000},
	{"cuMemSetAccess", 38000},
	{"cuMemUnmap", 34000},
	{"cuMemRelease", 23000},
	{"cuMemAddressReserve", 18000},
	{"cuMemAddressFree", 35000},
	{"cuMemHostRegister_v2", 250000},
	{"cuCtxSynchronize", 3000},
	{"cuIpcOpenMemHandle_v2", 100000},
	{"cuEventQuery", 500},
	{"cuCtxRecordEvent", 1500},
};

static int find_export(const char *name, size_t length)
{
	int id;
	for (id = 0; id < FAKE_IDS; id++)
		if (strlen(fake_rows[id].name) == length &&
		    memcmp(fake_rows[id].name, name, length) == 0)
			return id;
	return -1;
}

static uint64_t number(const char *text, uint64_t otherwise)
{
	char *end;
	uint64_t value;
	if (text == NULL || *text == '\0')
		return otherwise;
	value = strtoull(text, &end, 0);
	switch (*end) {
	case 'K': return value << 10;
	case 'M': return value << 20;
	case 'G': return value << 30;
	case 'T': return value << 40;
	default: return value;
	}
}

/* "name:a:b,name:a:b": calls take for each. */
static void each(const char *list, void (*take)(const char *name, size_t length, long a, long b))
{
	while (list != NULL && *list != '\0') {
		size_t length = strcspn(list, ":,");
		char *end = NULL;
		long a = 0, b = 0;
		if (list[length] == ':')
			a = strtol(list + length + 1, &end, 0);
		if (end != NULL && *end == ':')
			b = strtol(end + 1, NULL, 0);
		take(list, length, a, b);
		list += strcspn(list, ",");
		list += *list == ',';
	}
}

static void take_fault(const char *name, size_t length, long nth, long code)
{
	int id = find_export(name, length);
	size_t i;
	for (i = 0; id >= 0 && i < sizeof(faults) / sizeof(faults[0]); i++)
		if (faults[i].left == 0) {
			faults[i] = (struct fault){(enum fake_id)id, (unsigned)nth, (CUresult)code};
			armed += nth > 0;
			return;
		}
}

static void take_latency(const char *name, size_t length, long ns, long unused)
{
	int id = find_export(name, length);
	(void)unused;
	if (id >= 0)
		fake.cost[id] = (uint64_t)ns;
	for (id = 0; length == 1 && *name == '*' && id < FAKE_IDS; id++)
		fake.cost[id] = (uint64_t)ns;
}

static void take_override(const char *name, size_t length, long value, long unused)
{
	(void)length;
	(void)unused;
	if (override_count < sizeof(overrides) / sizeof(overrides[0])) {
		overrides[override_count][0] = atoi(name);
		overrides[override_count++][1] = (int)value;
	}
}

int fake_attribute_override(int attribute, int value)
{
	size_t i;
	for (i = 0; i < override_count; i++)
		if (overrides[i][0] == attribute)
			return overrides[i][1];
	return value;
}

static void in_child(void)
{
	pthread_mutex_init(&fake.lock, NULL);
	fake.forked = fake.initialized;
}

static void at_exit(void)
{
	fake.exited = true;
}

static void configure(void)
{
	size_t i;
	const char *trace = getenv("TMFAKE_TRACE");
	fake.configured = true;
	fake.version = (int)number(getenv("TMFAKE_VERSION"), (uint64_t)fake_built_version);
	fake.devices = (int)number(getenv("TMFAKE_DEVICES"), 1);
	fake.capacity = number(getenv("TMFAKE_CAPACITY"), (uint64_t)8 << 30) & ~(FAKE_PAGE - 1);
	fake.va_bytes = number(getenv("TMFAKE_VA"), (uint64_t)4 << 40);
	fake.seed = fake.random = number(getenv("TMFAKE_SEED"), 0);
	fake.peers = number(getenv("TMFAKE_PEERS"), 1) != 0;
	fake.strict = number(getenv("TMFAKE_STRICT"), 0) != 0;
	if (fake.devices > FAKE_DEVICES)
		fake.devices = FAKE_DEVICES;
	for (i = 0; i < FAKE_IDS; i++)
		fake.cost[i] = 1000;
	for (i = 0; i < sizeof(costs) / sizeof(costs[0]); i++)
		take_latency(costs[i].name, strlen(costs[i].name), (long)costs[i].ns, 0);
	each(getenv("TMFAKE_LATENCY"), take_latency);
	each(getenv("TMFAKE_FAIL"), take_fault);
	each(getenv("TMFAKE_ATTR"), take_override);
	if (trace != NULL && *trace != '\0')
		fake.trace = fopen(trace, "we");
	pthread_atfork(NULL, NULL, in_child);
}

/* The driver's own exit handler, registered by cuInit as the real one's is. */
void fake_init_process(void)
{
	fake_memory_init();
	atexit(at_exit);
	fake.initialized = true;
}

uint64_t fake_random(uint64_t below)
{
	fake.random += 0x9e3779b97f4a7c15u;
	uint64_t z = fake.random;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return below == 0 ? 0 : (z ^ (z >> 31)) % below;
}

void fake_misused(const char *what, const char *name)
{
	char line[160];
	int length;
	fake.misuse++;
	if (!fake.strict)
		return;
	length = snprintf(line, sizeof(line), "fake driver: %s: %s\n", name, what);
	if (write(2, line, (size_t)length) < 0)
		fake.misuse++;
}

void fake_lock(void)
{
	pthread_mutex_lock(&fake.lock);
	if (!fake.configured)
		configure();
	if (fake_self.id == 0)
		fake_self.id = ++next_thread;
}

void fake_unlock(void)
{
	pthread_mutex_unlock(&fake.lock);
}

static CUresult strike(enum fake_id id)
{
	size_t i;
	CUresult rc = CUDA_SUCCESS;
	for (i = 0; armed > 0 && i < sizeof(faults) / sizeof(faults[0]); i++)
		if (faults[i].left > 0 && faults[i].id == id && --faults[i].left == 0) {
			rc = faults[i].code;
			armed--;
		}
	return rc;
}

CUresult fake_enter(enum fake_id id, bool per_thread)
{
	const struct fake_row *row = &fake_rows[id];
	CUresult rc;
	fake_lock();
	fake.calls[id]++;
	fake_self.per_thread = per_thread;
	fake.now += fake.cost[id];
	if (fake.seed != 0)
		fake.now += fake_random(fake.cost[id] * 4 + 1);
	if (row->kind != FAKE_KIND_FREE) {
		if (fake.exited) {
			fake_misused("called after exit", row->name);
			return CUDA_ERROR_DEINITIALIZED;
		}
		if (fake.forked) {
			fake_misused("called in a forked child", row->name);
			return CUDA_ERROR_NOT_INITIALIZED;
		}
		if (!fake.initialized)
			return CUDA_ERROR_NOT_INITIALIZED;
		fake_settle();
	}
	rc = strike(id);
	if (rc == CUDA_SUCCESS && row->kind == FAKE_KIND_CTX) {
		if (fake_current() == NULL)
			return CUDA_ERROR_INVALID_CONTEXT;
		if (fake_current_dead())
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		rc = fake_current()->broken;
	}
	return rc;
}

CUresult fake_leave(enum fake_id id, CUresult rc)
{
	if (fake.trace != NULL && !fake.forked) {
		fprintf(fake.trace, "%lu %s %d\n", (unsigned long)fake_self.id, fake_rows[id].name,
			rc);
		fflush(fake.trace);
	}
	fake_unlock();
	return rc;
}

/* --- control.h -------------------------------------------------------------------------------- */

FAKE_EXPORT uint64_t tmfake_now(void)
{
	uint64_t now;
	fake_lock();
	now = fake.now;
	fake_unlock();
	return now;
}

FAKE_EXPORT void tmfake_advance(uint64_t ns)
{
	fake_lock();
	fake.now += ns;
	fake_settle();
	fake_unlock();
}

FAKE_EXPORT uint64_t tmfake_calls(const char *name)
{
	uint64_t sum = 0;
	int id;
	fake_lock();
	for (id = 0; id < FAKE_IDS; id++)
		if (name == NULL || strcmp(name, fake_rows[id].name) == 0)
			sum += fake.calls[id];
	fake_unlock();
	return sum;
}

FAKE_EXPORT uint64_t tmfake_memory_calls(void)
{
	static const enum fake_id ids[] = {
		FAKE_ID_cuMemAlloc_v2, FAKE_ID_cuMemFree_v2, FAKE_ID_cuMemAddressReserve,
		FAKE_ID_cuMemCreate,   FAKE_ID_cuMemMap,     FAKE_ID_cuMemSetAccess,
		FAKE_ID_cuMemUnmap,    FAKE_ID_cuMemRelease, FAKE_ID_cuMemAddressFree};
	uint64_t sum = 0;
	size_t i;
	fake_lock();
	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		sum += fake.calls[ids[i]];
	fake_unlock();
	return sum;
}

FAKE_EXPORT int tmfake_fail(const char *name, unsigned nth, int code)
{
	int id;
	fake_lock();
	id = find_export(name, strlen(name));
	take_fault(name, strlen(name), nth, code);
	fake_unlock();
	return id < 0 ? -1 : 0;
}

FAKE_EXPORT void tmfake_forgive(void)
{
	fake_lock();
	memset(faults, 0, sizeof(faults));
	armed = 0;
	fake_unlock();
}

FAKE_EXPORT void tmfake_break(CUcontext ctx, int code)
{
	fake_lock();
	if (fake_ctx_alive(ctx))
		ctx->broken = code;
	fake_unlock();
}

FAKE_EXPORT uint64_t tmfake_misuse(void)
{
	return fake.misuse;
}

FAKE_EXPORT uint64_t tmfake_pending(void)
{
	uint64_t pending;
	fake_lock();
	pending = fake_pending();
	fake_unlock();
	return pending;
}

FAKE_EXPORT uint64_t tmfake_live(void)
{
	uint64_t live;
	fake_lock();
	live = fake_ranges.count - fake.idle_ranges;
	fake_unlock();
	return live;
}
