/* SPDX-License-Identifier: MIT */
/*
 * Every function of the driver, asked for in every way, at every version, with every flag: what the
 * library replaces is replaced, everything else and every status is the driver's own. PLT, dlsym,
 * the getters of four and five arguments (each asked for itself too), on drivers of four releases.
 */
/* libs: libcuda.so.1 */
#include "tests/cuda/seen.h"

static const struct {
	const char *base, *name, *own;
} rows[] = {
#define OWN_NONE(name) NULL
#define OWN_PTSZ(name) #name "_ptsz"
#define OWN_PTDS(name) #name "_ptds"
#define D(base, name, version, variant, kind, params, args) {#base, #name, OWN_##variant(name)},
#include "tests/cuda/fake/driver.def"
#undef D
};

static const int versions[] = {-1,    0,     1999,  2000,  3000,  3020,  4000,  4010,
			       5000,  6000,  6050,  7000,  9020,  10000, 10010, 10020,
			       11000, 11020, 11030, 11040, 11060, 11070, 12000, 12010,
			       12020, 12030, 12050, 12080, 13000, 14000};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static CUresult (*get4)(const char *, void **, int, uint64_t);
static CUresult (*get5)(const char *, void **, int, uint64_t, int *);
static unsigned long replaced, compared;

/* `got` stands for the driver's `real`: replaced if it is one of ours to replace, else the same. */
static void same_or_ours(const char *name, void *got, void *real)
{
	Dl_info info;
	compared++;
	if (real == NULL || dladdr(real, &info) == 0 || info.dli_sname == NULL) {
		claim(got == real, "%s: %p for %p", name, got, real);
		return;
	}
	if (!seen_hooked(info.dli_sname)) {
		claim(got == real, "%s: %s of %s instead of the driver's", name, info.dli_sname,
		      seen_owner(got));
		return;
	}
	replaced++;
	claim(seen_ours(got), "%s: not replaced", name);
	Dl_info ours;
	claim(dladdr(got, &ours) && ours.dli_sname && strcmp(ours.dli_sname, info.dli_sname) == 0,
	      "%s leads to another function", name);
}

static void by_dlsym(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	size_t i;
	for (i = 0; i < COUNT(rows); i++) {
		void *fn = dlsym(driver, rows[i].name), *own;
		claim(fn == NULL || seen_ours(fn) == seen_hooked(rows[i].name), "%s of %s",
		      rows[i].name, seen_owner(fn));
		if (rows[i].own == NULL)
			continue;
		own = dlsym(driver, rows[i].own);
		claim(own == NULL || seen_ours(own) == seen_hooked(rows[i].own), "%s of %s",
		      rows[i].own, seen_owner(own));
	}
}

static void by_getter(const char *symbol, int version, uint64_t flags)
{
	void *got = (void *)0x51, *real = (void *)0x51;
	int status = 77, real_status = 77;
	CUresult rc, real_rc = tmfake_lookup(symbol, &real, version, flags, &real_status);
	if (get5 != NULL) {
		rc = get5(symbol, &got, version, flags, &status);
		claim(rc == real_rc && status == real_status, "%s %d: %d/%d, not %d/%d", symbol,
		      version, rc, status, real_rc, real_status);
		same_or_ours(symbol, got, real);
		got = (void *)0x51;
		rc = get5(symbol, &got, version, flags, NULL);
		claim(rc == real_rc, "%s %d without a status", symbol, version);
		same_or_ours(symbol, got, real);
	}
	if (get4 != NULL) {
		got = (void *)0x51;
		rc = get4(symbol, &got, version, flags);
		claim(rc == real_rc, "%s %d: %d, not %d", symbol, version, rc, real_rc);
		same_or_ours(symbol, got, real);
	}
}

static void all_lookups(void)
{
	static const char *const strange[] = {
		"",           "cu",          "cuda",        "cuMemAlloc_v2",      "cuMemFree_v2",
		"cumemalloc", "cuMemAlloc ", "cudnnCreate", "cuGetProcAddress_v2"};
	size_t i, v, f;
	for (v = 0; v < COUNT(versions); v++)
		for (f = 0; f < 5; f++) {
			for (i = 0; i < COUNT(rows); i++)
				by_getter(rows[i].base, versions[v], f);
			for (i = 0; i < COUNT(strange); i++)
				by_getter(strange[i], versions[v], f);
			by_getter(NULL, versions[v], f);
		}
	if (get5 != NULL)
		gives(CUDA_ERROR_INVALID_VALUE, get5("cuMemAlloc", NULL, 13000, 0, NULL));
	if (get4 != NULL)
		gives(CUDA_ERROR_INVALID_VALUE, get4("cuMemAlloc", NULL, 11030, 0));
}

/* The getter is asked for itself and the answer used: what it gives out is watched too. */
static void getters_of_getters(void)
{
	void *fn = NULL;
	int status;
	if (get5 == NULL)
		return;
	ok(get5("cuGetProcAddress", &fn, 12000, 0, &status));
	claim(seen_ours(fn), "five arguments");
	memcpy(&get5, &fn, sizeof(fn));
	ok(get5("cuGetProcAddress", &fn, 11030, 0, &status));
	claim(seen_ours(fn), "four arguments");
	memcpy(&get4, &fn, sizeof(fn));
	all_lookups();
}

static int part(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *fn;
	fn = dlsym(driver, "cuGetProcAddress_v2");
	memcpy(&get5, &fn, sizeof(fn));
	fn = dlsym(driver, "cuGetProcAddress");
	memcpy(&get4, &fn, sizeof(fn));
	by_dlsym();
	all_lookups();
	getters_of_getters();
	claim(compared == 0 || replaced > 0);
	printf("%lu lookups compared, %lu replaced\n", compared, replaced);
	fflush(stdout);
	return claim_end();
}

int main(int argc, char **argv)
{
	static const char *const drivers[] = {"", "v11020", "v11040", "v12020"};
	char path[PATH_MAX];
	size_t d;
	(void)argv;
	SEEN_NEEDS_HOOKS();
	if (argc > 1)
		return part();
	claim(seen_ours((void *)(uintptr_t)cuMemAlloc_v2), "the program's own call");
	claim(!seen_ours((void *)(uintptr_t)cuInit) || seen_hooked("cuInit"));
	claim(seen_ours(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2")));
	claim(!seen_ours(dlsym(RTLD_DEFAULT, "cuGetExportTable")), "never touched");
	for (d = 0; d < 4; d++) {
		struct claim_output out;
		snprintf(path, sizeof(path), "%s/%s", getenv("TM_TESTS"), drivers[d]);
		setenv("LD_LIBRARY_PATH", path, 1);
		int status = claim_again(claim_preload(), "part", &out);
		claim(status == 0, "%s: %d %s", path, status, out.text);
		printf("%s %s", drivers[d], out.text);
	}
	return claim_end();
}
