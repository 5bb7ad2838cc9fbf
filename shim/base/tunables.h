/* SPDX-License-Identifier: MIT */
/*
 * tunables: parses the environment variables. Reads an array of "NAME=value", checks every value
 * against tunables.def and fills struct tm_options. Pure: no libc, no allocation, no printing;
 * texts are copied into memory of the caller's, because a program may overwrite its environment.
 * Used by the library once at boot, and by the command to show what the library would do.
 *
 * An invalid value, an unknown variable or key, and a variable whose component is not built are
 * each reported to the caller once, and the default is used.
 */
#ifndef TM_BASE_TUNABLES_H
#define TM_BASE_TUNABLES_H

#include "shim/base/attrs.h"
#include "shim/base/parse.h"

/* Index into arrays by tier. 0: TIERMALLOC_AUTO; in arrays the total. */
enum tm_tier {
	TM_TIER_ALL,
#define X(tier, name, meaning) TM_TIER_##tier,
#include "shim/base/tiers.def"
#undef X
	TM_TIER_COUNT
};

/* The enums below have the order of the words in their rows of tunables.def. */
enum tm_mode { TM_MODE_OFF, TM_MODE_ON, TM_MODE_OBSERVE };
enum tm_huge { TM_HUGE_AUTO, TM_HUGE_ALWAYS, TM_HUGE_NEVER, TM_HUGE_2M, TM_HUGE_1G };
enum tm_numa { TM_NUMA_AUTO, TM_NUMA_OFF, TM_NUMA_INTERLEAVE, TM_NUMA_LOCAL, TM_NUMA_NODES };
enum tm_giveback { TM_GIVEBACK_AUTO, TM_GIVEBACK_OFF, TM_GIVEBACK_EAGER };
enum tm_guard { TM_GUARD_OFF, TM_GUARD_SAMPLE, TM_GUARD_ALL };
enum tm_on_error { TM_ON_ERROR_REPORT, TM_ON_ERROR_ABORT, TM_ON_ERROR_TRUST };
enum tm_ledger { TM_LEDGER_OFF, TM_LEDGER_ON, TM_LEDGER_STACK, TM_LEDGER_DEEP };
enum tm_report { TM_REPORT_NONE, TM_REPORT_EXIT, TM_REPORT_LEAK, TM_REPORT_FRAG, TM_REPORT_FULL };
enum tm_cuda { TM_CUDA_OFF, TM_CUDA_OBSERVE, TM_CUDA_POOL };
enum tm_cuda_pool { TM_CUDA_POOL_AUTO, TM_CUDA_POOL_CACHE, TM_CUDA_POOL_SLAB, TM_CUDA_POOL_VMM };
enum tm_cuda_free_sync { TM_CUDA_FREE_STRICT, TM_CUDA_FREE_EVENT };
enum tm_python { TM_PYTHON_OFF, TM_PYTHON_ON };
enum tm_thread { TM_THREAD_AUTO, TM_THREAD_NEVER };
enum tm_deepbind { TM_DEEPBIND_DROP, TM_DEEPBIND_KEEP, TM_DEEPBIND_GLOBS };

/* Bits of tm_options.log; enum tm_msg_level of os/msg.h has the same values. */
enum tm_log {
	TM_LOG_QUIET = 0,
	TM_LOG_WARN = 1 << 0,
	TM_LOG_INFO = 1 << 1,
	TM_LOG_CUDA = 1 << 2,
	TM_LOG_TIERS = 1 << 3,
	TM_LOG_GIVEBACK = 1 << 4,
};

enum tm_tunable {
#define T(name, field, kind, words, value, allowed, part, meaning, details) TM_TUNABLE_##name,
#include "shim/base/tunables.def"
#undef T
	TM_TUNABLE_COUNT
};

/* In increasing order of precedence. */
enum tm_source { TM_SOURCE_DEFAULT, TM_SOURCE_FOREIGN, TM_SOURCE_CONF, TM_SOURCE_ENV };

/* Special values of sizes, times and numbers. */
#define TM_OPTION_NONE UINT64_MAX
#define TM_OPTION_AUTO (UINT64_MAX - 1)

/* Texts are stored in tm_tunables_input.store; NULL: not set. */
struct tm_options {
	uint32_t mode; /* enum tm_mode; the other 32-bit fields likewise hold their enum */
	uint32_t huge;
	uint32_t numa;
	uint32_t giveback;
	uint32_t source_drop; /* 0 or 1 */
	uint32_t guard;
	uint32_t guard_one_in; /* TM_GUARD_SAMPLE: one block in guard_one_in is guarded */
	uint32_t on_error;
	int32_t fill_alloc; /* byte, or -1 */
	int32_t fill_free;
	uint32_t align_bytes;
	uint32_t ledger;
	uint32_t python;
	uint32_t report;
	uint32_t cuda;
	uint32_t cuda_pool;
	uint32_t cuda_free_sync;
	uint32_t thread;
	uint32_t deepbind;
	uint32_t log; /* bits of enum tm_log */

	uint64_t max_bytes[TM_TIER_COUNT]; /* TM_OPTION_NONE: no ceiling */
	uint64_t keep_bytes[TM_TIER_COUNT];
	uint64_t decay_ms[TM_TIER_COUNT];
	uint64_t leak_window_ms;
	uint64_t cuda_keep_bytes;
	uint64_t cuda_host_bytes;

	const char *rules;
	const char *profile;
	const char *pools; /* NULL: auto; "none"; or a list for tm_tunables_next_pool */
	const char *numa_nodes;
	const char *dir;
	const char *report_file;
	const char *target;
	const char *trace;
	const char *deepbind_globs;

	/* From other allocators' variables. */
	uint32_t decay_percent; /* TCMALLOC_RELEASE_RATE: of the default times; default 100 */
	uint32_t retain;        /* 1: asked to keep freed memory for ever; we keep it for long */

	uint8_t source[TM_TUNABLE_COUNT]; /* enum tm_source */
};

enum tm_tunables_trouble {
	TM_TROUBLE_VALUE,      /* the value is not allowed */
	TM_TROUBLE_VARIABLE,   /* unknown variable TIERMALLOC_... */
	TM_TROUBLE_KEY,        /* unknown key in TIERMALLOC_CONF */
	TM_TROUBLE_ITEM,       /* an item of TIERMALLOC_CONF that is not key=value */
	TM_TROUBLE_NOT_BUILT,  /* this build lacks the component of the variable */
	TM_TROUBLE_PARTLY,     /* this build lacks the component of the value; partly in effect */
	TM_TROUBLE_ROOM,       /* no memory for the text */
	TM_TROUBLE_TRANSLATED, /* another allocator's variable was adopted: not a warning */
	TM_TROUBLE_FOREIGN,    /* another allocator's variable was ignored: not a warning */
};

struct tm_tunables_problem {
	enum tm_tunables_trouble trouble;
	struct tm_str name;
	struct tm_str value;
	/* allowed values, the name probably meant, or the component; or NULL */
	const char *allowed;
};

typedef void tm_tunables_report_fn(void *context, const struct tm_tunables_problem *problem);

struct tm_tunables_input {
	char *const *env; /* NULL-terminated; NULL: read nothing (AT_SECURE) */
	char *store;      /* for texts; must live as long as the options */
	size_t store_bytes;
	tm_tunables_report_fn *report; /* NULL: don't report problems */
	void *context;
};

/* Bytes of store needed for this environment; 0: it sets none of our variables. */
size_t tm_tunables_store_bytes(char *const *env);

/* Parses the environment and fills all of *ret_options. */
void tm_tunables_read(struct tm_options *ret_options, const struct tm_tunables_input *input);

/* True: a warning; false: printed only with TIERMALLOC_LOG=info. */
bool tm_tunables_is_warning(const struct tm_tunables_problem *problem);

/* Writes the problem as one line without "tiermalloc: " and newline. Result as tm_fmt. */
size_t tm_tunables_describe(char *buf, size_t size, const struct tm_tunables_problem *problem);

/*
 * The library's copy of a row of tunables.def. Texts are char arrays, not pointers: pointers would
 * need relocation, which makes the loader write to, and so copy, these pages in every process. A
 * text that is too long does not compile.
 */
struct tm_tunable_row {
	char name[28];
	char value[8]; /* the default, as text */
	char words[68];
	char allowed[56];
	uint16_t offset; /* of the field in struct tm_options */
	uint8_t kind;    /* enum tm_tunable_kind */
	uint8_t part;    /* the component it needs, see tm_tunables_part */
	bool built;
};

extern TM_HIDDEN const struct tm_tunable_row tm_tunables_rows[TM_TUNABLE_COUNT];

/* The component that the row needs, for messages. */
const char *tm_tunables_part(const struct tm_tunable_row *row);

/* Prints the value in the notation of the environment variable. Result as tm_fmt. */
size_t tm_tunables_print(char *buf, size_t size, const struct tm_options *options,
			 enum tm_tunable which);

const char *tm_tunables_source_name(enum tm_source source);

/* An item of a pool list, e.g. 768K*64@session. */
struct tm_tunables_pool {
	uint64_t bytes;
	uint64_t count;
	enum tm_tier tier; /* TM_TIER_ALL: not named */
};

/* Takes the next item off "*rest". 1: parsed; 0: nothing is left; -EINVAL: invalid item. */
int tm_tunables_next_pool(struct tm_str *rest, struct tm_tunables_pool *ret_pool);

/* "persistent", "session", "temporary"; TM_TIER_ALL for another word. */
enum tm_tier tm_tunables_tier(struct tm_str name);
const char *tm_tunables_tier_name(enum tm_tier tier);

#endif
