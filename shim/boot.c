/* SPDX-License-Identifier: MIT */
#include "shim/boot.h"

#include <elf.h>
#include <errno.h>
#include <stdatomic.h>

#include "shim/alloc.h"
#include "shim/base/version.h"
#include "shim/cxx.h"
#include "shim/dl.h"
#include "shim/early.h"
#include "shim/elf.h"
#include "shim/foreign.h"
#include "shim/heap/emergency.h"
#include "shim/heap/heap.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/python.h"
#include "shim/module.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"
#include "shim/os/msg.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/passive.h"
#include "shim/trace.h"

/* Not 0, so that the word lies in .data, on a page that the loader has already written. */
enum { COLD = 1, BOOTING, READY };

/* How long a second thread waits for the booting one; a boot takes 50 us. */
#define WAIT_ROUNDS 1000
#define WAIT_NS 1000000

static _Atomic uint32_t state = COLD;
static _Atomic int booting_tid;

/* Set by the loader before any of our code runs: the stack address of argc (glibc >= 2.2.5). */
extern void *__libc_stack_end;
#pragma weak __libc_stack_end
extern char **environ;
#pragma weak environ

/* Functions that only the run-time library of a sanitizer defines. */
void __asan_init(void);
void __tsan_init(void);
void __msan_init(void);
void __hwasan_init(void);
void __lsan_init(void);
#pragma weak __asan_init
#pragma weak __tsan_init
#pragma weak __msan_init
#pragma weak __hwasan_init
#pragma weak __lsan_init

/* --- before boot ------------------------------------------------------------------------------ */

/*
 * A mapping for requests that don't fit into early memory. Works before this library is relocated.
 */
static void *early_alloc(size_t align, size_t size)
{
	void *p = tm_early_alloc(align, size);
	return p != NULL ? p : tm_emergency_map(size, align);
}

static void early_free(void *p)
{
	if (tm_emergency_owns(p))
		tm_emergency_free(p);
	else
		tm_early_free(p);
}

static size_t early_usable(const void *p)
{
	return tm_emergency_owns(p) ? tm_emergency_bytes(p) : tm_early_usable(p);
}

static void *early_or_enomem(size_t align, size_t size)
{
	void *p = early_alloc(align, size);
	if (p == NULL)
		errno = ENOMEM;
	return p;
}

static void *cold_malloc(size_t size)
{
	return tm_boot() ? tm_root.ops.malloc(size) : early_or_enomem(1, size);
}

static void cold_free(void *p)
{
	if (p == NULL)
		return;
	if (tm_boot())
		tm_root.ops.free(p);
	else
		early_free(p);
}

static void *cold_calloc(size_t n, size_t size)
{
	size_t bytes;
	if (tm_boot())
		return tm_root.ops.calloc(n, size);
	return early_or_enomem(1, __builtin_mul_overflow(n, size, &bytes) ? SIZE_MAX : bytes);
}

static void *early_realloc(void *old, size_t size)
{
	size_t keep = early_usable(old), i;
	unsigned char *p = early_or_enomem(1, size);
	if (p == NULL)
		return NULL;
	for (i = 0; i < keep && i < size; i++)
		p[i] = ((const unsigned char *)old)[i];
	early_free(old);
	return p;
}

static void *cold_realloc(void *p, size_t size)
{
	return tm_boot() ? tm_root.ops.realloc(p, size) : early_realloc(p, size);
}

static void *cold_memalign(size_t align, size_t size)
{
	return tm_boot() ? tm_root.ops.memalign(align, size) : early_or_enomem(align, size);
}

static int cold_posix_memalign(void **ret_p, size_t align, size_t size)
{
	void *p;
	if (tm_boot())
		return tm_root.ops.posix_memalign(ret_p, align, size);
	p = early_alloc(align, size);
	if (p == NULL)
		return ENOMEM;
	*ret_p = p;
	return 0;
}

static size_t cold_usable_size(void *p)
{
	return tm_boot() ? tm_root.ops.usable_size(p) : early_usable(p);
}

static void *cold_new(size_t size)
{
	void *p;
	if (tm_boot())
		return tm_root.ops.op_new(size);
	p = early_alloc(1, size);
	return p != NULL ? p : tm_cxx_new_failed(size, 1);
}

static void *cold_new_aligned(size_t size, size_t align)
{
	void *p;
	if (tm_boot())
		return tm_root.ops.op_new_aligned(size, align);
	p = early_alloc(align, size);
	return p != NULL ? p : tm_cxx_new_failed(size, align);
}

static void *cold_new_nothrow(size_t size)
{
	return tm_boot() ? tm_root.ops.op_new_nothrow(size) : early_alloc(1, size);
}

static void *cold_new_aligned_nothrow(size_t size, size_t align)
{
	return tm_boot() ? tm_root.ops.op_new_aligned_nothrow(size, align)
			 : early_alloc(align, size);
}

static void cold_delete_sized(void *p, size_t size)
{
	if (p == NULL)
		return;
	if (tm_boot())
		tm_root.ops.op_delete_sized(p, size);
	else
		early_free(p);
}

#define COLD_OPS                                                                                   \
	{                                                                                          \
		.malloc = cold_malloc, .free = cold_free, .calloc = cold_calloc,                   \
		.realloc = cold_realloc, .memalign = cold_memalign,                                \
		.posix_memalign = cold_posix_memalign, .usable_size = cold_usable_size,            \
		.op_new = cold_new, .op_new_aligned = cold_new_aligned,                            \
		.op_new_nothrow = cold_new_nothrow,                                                \
		.op_new_aligned_nothrow = cold_new_aligned_nothrow, .op_delete = cold_free,        \
		.op_delete_sized = cold_delete_sized                                               \
	}

TM_ALIGNED(TM_ROOT_ALIGN)
union tm_root_pages tm_root_pages = {.root = {.ops = COLD_OPS}};

/* --- what the kernel left on the stack -------------------------------------------------------- */

static char *no_env[] = {NULL};

/* The environment, also before libc has set `environ` (H04). */
static char **find_environment(void)
{
	if (&environ != NULL && environ != NULL)
		return environ;
	if (tm_root.stack_end == 0)
		return no_env;
	/* the stack has argc, the arguments and a NULL before it */
	return (char **)tm_root.stack_end + *(uintptr_t *)tm_root.stack_end + 2;
}

static void copy_program(const char *path)
{
	const char *name = path;
	size_t i;
	for (; *path != '\0'; path++)
		if (*path == '/')
			name = path + 1;
	for (i = 0; i + 1 < sizeof(tm_root.program) && name[i] != '\0'; i++)
		tm_root.program[i] = name[i];
	tm_root.program[i] = '\0';
}

/* Not found by walking past the environment: for a privileged program the loader shortens that. */
static void read_auxv(void)
{
	uintptr_t random = tm_proc_auxv(AT_RANDOM), file = tm_proc_auxv(AT_EXECFN);
	tm_root.page_bytes = tm_proc_page_bytes();
	tm_root.secure = tm_proc_is_secure();
	if (file != 0)
		copy_program((const char *)file);
	if (random != 0)
		__builtin_memcpy(tm_root.random, (const void *)random, sizeof(tm_root.random));
}

/* The first 8 bytes of AT_RANDOM are libc's stack canary: nothing we derive may reveal them. */
static void stir_random(void)
{
	uint64_t w[2], mix;
	unsigned i;
	__builtin_memcpy(w, tm_root.random, sizeof(w));
	mix = w[1] ^ (uintptr_t)&w;
	for (i = 0; i < 2; i++) {
		mix += UINT64_C(0x9e3779b97f4a7c15);
		w[i] = (mix ^ (mix >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		w[i] = (w[i] ^ (w[i] >> 27)) * UINT64_C(0x94d049bb133111eb);
		w[i] ^= w[i] >> 31;
	}
	__builtin_memcpy(tm_root.random, w, sizeof(w));
}

/* --- which functions serve -------------------------------------------------------------------- */

/*
 * A statically linked run-time library hides its own names but exports those that it interposes: no
 * other program defines both of these.
 */
static TM_AT_START_CODE bool has_static_sanitizer(void)
{
	struct tm_elf_object program;
	return tm_elf_program(&program) && tm_elf_find(&program, "__tls_get_addr") != 0 &&
	       tm_elf_find(&program, "__cxa_atexit") != 0;
}

static bool has_sanitizer(void)
{
	return &__asan_init != NULL || &__tsan_init != NULL || &__msan_init != NULL ||
	       &__hwasan_init != NULL || &__lsan_init != NULL || has_static_sanitizer();
}

static void go_on(void)
{
	struct tm_ops ops = {.malloc = tm_alloc_malloc,
			     .free = tm_alloc_free,
			     .calloc = tm_alloc_calloc,
			     .realloc = tm_alloc_realloc,
			     .memalign = tm_alloc_aligned,
			     .posix_memalign = tm_alloc_posix_memalign,
			     .usable_size = tm_alloc_usable,
			     .op_new = tm_alloc_new,
			     .op_new_aligned = tm_alloc_new_aligned,
			     .op_new_nothrow = tm_alloc_new_nothrow,
			     .op_new_aligned_nothrow = tm_alloc_new_aligned_nothrow,
			     .op_delete = tm_alloc_free,
			     .op_delete_sized = tm_alloc_free_sized};
	tm_root.server = TM_SERVER_ENGINE;
	tm_fork_generation_init();
	tm_root.generation = tm_fork_generation();
	if (tm_core_boot() != 0) {
		tm_passive_begin(TM_PASSIVE_NO_CORE);
		return;
	}
	tm_alloc_ops(&ops);
	tm_passive_behind(&ops);
	tm_trace_ops(&ops);
	tm_python_ops(&ops);
	tm_root.ops = ops;
	if (tm_module_cuda() != NULL)
		tm_module_cuda()->boot();
}

/* --- options ---------------------------------------------------------------------------------- */

/* Texts of the environment are copied, since programs overwrite theirs (setproctitle). */
static char option_store[4096];

static void count_problem(void *context, const struct tm_tunables_problem *problem)
{
	(void)problem;
	++*(unsigned *)context;
}

static void tell_problem(void *context, const struct tm_tunables_problem *problem)
{
	char line[400];

	_Static_assert(TM_TUNABLE_COUNT < TM_MSG_BURST, "a bad value of each variable is told");
	(void)context;
	tm_tunables_describe(line, sizeof(line), problem);
	tm_msg(tm_tunables_is_warning(problem) ? TM_MSG_WARN : TM_MSG_INFO, "%s", line);
}

/*
 * Reads twice if there is a problem: whether to report it (TIERMALLOC_LOG) is known only at the
 * end.
 */
static void read_options(char **env)
{
	unsigned problems = 0;
	struct tm_tunables_input input = {.env = tm_root.secure ? NULL : env,
					  .store = option_store,
					  .store_bytes = sizeof(option_store),
					  .report = count_problem,
					  .context = &problems};
	size_t wanted = tm_root.secure ? 0 : tm_tunables_store_bytes(env);
	if (wanted > sizeof(option_store)) {
		char *room =
			tm_mem_map((wanted + tm_root.page_bytes - 1) & ~(tm_root.page_bytes - 1));
		if (room != NULL) {
			input.store = room;
			input.store_bytes = wanted;
		}
	}
	tm_tunables_read(&tm_root.options, &input);
	tm_msg_set_mask(tm_root.options.log);
	if (problems == 0 || has_sanitizer())
		return;
	input.report = tell_problem;
	tm_tunables_read(&tm_root.options, &input);
}

/* --- release calls ---------------------------------------------------------------------------- */

/* The definition that the program's call of a name reaches, leaving out wrappers of ours. */
static TM_AT_START_CODE uintptr_t called_first(const char *name)
{
	struct tm_elf_object self;
	uintptr_t first = tm_elf_first(name);
	return tm_elf_self(&self) && tm_elf_find(&self, name) == first ? tm_elf_next(name) : first;
}

static bool is_libc(uintptr_t address, const char *name)
{
	struct tm_elf_object libc;
	return !tm_elf_libc(&libc) || tm_elf_find(&libc, name) == address;
}

/*
 * Releases user memory through libc's symbols, which registration caches interpose (H52). Their
 * code may call anything in libc, so the helper, which has no libc state, must not run it: then the
 * program's own threads purge. In effect only from the end of boot on: an interposer's own dlsym
 * may have triggered this boot, before it is initialised.
 */
static struct tm_mem_release_ops find_release(void)
{
	struct tm_mem_release_ops ops = {0};
	uintptr_t unmap = called_first("munmap"), advise = called_first("madvise");
	uintptr_t move = called_first("mremap");
	if (!is_libc(unmap, "munmap") || !is_libc(advise, "madvise"))
		tm_root.options.thread = TM_THREAD_NEVER;
	TM_ELF_FUNCTION(unmap, &ops.munmap);
	TM_ELF_FUNCTION(advise, &ops.madvise);
	TM_ELF_FUNCTION(move, &ops.mremap);
	return ops;
}

static TM_COLD void tell_who_serves(void)
{
	const char *ledger = tm_ledger_path();
	bool serves = tm_root.server == TM_SERVER_ENGINE;
	tm_msg(TM_MSG_INFO, "version %s %s process %d (%s)%s%s%s", tm_version_string(),
	       serves ? "serves" : "leaves to the next allocator", (int)tm_root.pid,
	       tm_root.program,
	       !serves          ? ": "
	       : ledger != NULL ? ", ledger '"
				: ", no ledger: ",
	       !serves          ? tm_passive_reason()
	       : ledger != NULL ? ledger
				: tm_ledger_why_none(),
	       serves && ledger != NULL ? "'" : "");
}

static void boot(void)
{
	struct tm_mem_release_ops release;
	struct tm_elf_object libc;
	tm_root.stack_end = &__libc_stack_end != NULL ? (uintptr_t)__libc_stack_end : 0;
	read_auxv();
	stir_random();
	tm_root.pid = tm_sys_getpid();
	tm_root.brk_start = (uintptr_t)tm_syscall6(SYS_brk, 0, 0, 0, 0, 0, 0);
	tm_msg_init();
	tm_clock_init();
	read_options(find_environment());
	release = find_release();
	tm_dl_boot();
	if (!tm_elf_libc(&libc))
		tm_passive_begin(TM_PASSIVE_LIBC);
	else if (has_sanitizer())
		tm_passive_begin(TM_PASSIVE_SANITIZER);
	else if (tm_root.options.mode == TM_MODE_OFF)
		tm_passive_begin(TM_PASSIVE_OFF);
	else
		go_on();
	tm_mem_use_libc(release);
	/* if this fails (unusual page size, seccomp filter), the root just stays writable */
	tm_mem_protect(&tm_root_pages, sizeof(tm_root_pages), PROT_READ);
	if (tm_msg_wants(TM_MSG_INFO))
		tell_who_serves();
}

/* --- the state machine ------------------------------------------------------------------------ */

static bool wait_for_boot(void)
{
	struct timespec pause = {0, WAIT_NS};
	unsigned i;
	if (atomic_load_explicit(&booting_tid, memory_order_relaxed) == tm_sys_gettid())
		return false;
	for (i = 0; i < WAIT_ROUNDS; i++) {
		if (atomic_load_explicit(&state, memory_order_acquire) == READY)
			return true;
		tm_sys_nanosleep(&pause);
	}
	return false;
}

TM_AT_START_CODE TM_COLD bool tm_boot(void)
{
	uint32_t seen = COLD;
	if (atomic_load_explicit(&state, memory_order_acquire) == READY)
		return true;
	/*
	 * The loader gives the first thread's variables their values after it has relocated
	 * everything. Resolvers of indirect functions run before that: they get early memory, and
	 * boot waits.
	 */
	if (tm_heap_word == 0)
		return false;
	if (!atomic_compare_exchange_strong_explicit(&state, &seen, BOOTING, memory_order_acq_rel,
						     memory_order_acquire))
		return seen == READY || wait_for_boot();
	atomic_store_explicit(&booting_tid, tm_sys_gettid(), memory_order_relaxed);
	boot();
	atomic_store_explicit(&state, READY, memory_order_release);
	return true;
}

TM_AT_START_CODE bool tm_boot_is_ready(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == READY;
}

int tm_boot_check(void)
{
	const struct tm_ops *o = &tm_root.ops;
	if (!tm_boot_is_ready())
		return 0;
	if (o->malloc == NULL || o->malloc == cold_malloc || o->free == NULL ||
	    o->free == cold_free)
		return __LINE__;
	if (o->calloc == NULL || o->realloc == NULL || o->memalign == NULL ||
	    o->posix_memalign == NULL)
		return __LINE__;
	if (o->usable_size == NULL || o->op_new == NULL || o->op_new_aligned == NULL)
		return __LINE__;
	if (o->op_new_nothrow == NULL || o->op_new_aligned_nothrow == NULL)
		return __LINE__;
	return o->op_delete == NULL || o->op_delete_sized == NULL ? __LINE__ : 0;
}
