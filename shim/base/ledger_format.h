/* SPDX-License-Identifier: MIT */
/*
 * ledger_format: layout of the file that holds a process's account; written by the library, read by
 * the command. 64-bit little-endian. The file is sparse and has its full length from the start;
 * regions never written read as zeros.
 *
 * It is a shared mapping updated by plain stores, so it is consistent at any moment: after kill -9
 * each thread has at most one object counted without a side entry. A reader of a running process
 * reads each word atomically, but not all words at the same moment. Records whose words belong
 * together have a `seq`, odd during a write: a reader copies, compares seq, and after three tries
 * gives up (torn). Tables have their record count in the header; a record below it may be unwritten
 * (first word 0). Records are never removed unless said so. Times are milliseconds of
 * CLOCK_MONOTONIC; the header's pair (begun_ms, begun_unix_ns) converts them to dates.
 */
#ifndef TM_BASE_LEDGER_FORMAT_H
#define TM_BASE_LEDGER_FORMAT_H

#include "shim/base/attrs.h"

#define TM_LEDGER_MAGIC UINT64_C(0x31524744454c4d54) /* "TMLEDGR1" */
#define TM_LEDGER_VERSION 4u

#define TM_LEDGER_TIERS 4u /* 0: unknown, or the total; 1.. as in tiers.def */
#define TM_LEDGER_TIER_WORDS 32u
#define TM_LEDGER_PROCESS_WORDS 64u
#define TM_LEDGER_MODULES 2048u
#define TM_LEDGER_STACKS 16384u
#define TM_LEDGER_FRAMES 262144u /* words in the pool of frames */
#define TM_LEDGER_STACK_DEPTH 64u
#define TM_LEDGER_POOLS 64u
#define TM_LEDGER_SIZES 4096u
#define TM_LEDGER_DECISIONS 8192u
#define TM_LEDGER_RING_S 600u
#define TM_LEDGER_RING_MIN 1440u
#define TM_LEDGER_RING_H 720u
#define TM_LEDGER_SAMPLES (TM_LEDGER_RING_S + TM_LEDGER_RING_MIN + TM_LEDGER_RING_H)
#define TM_LEDGER_EVENTS 1024u
#define TM_LEDGER_WINDOWS 128u
#define TM_LEDGER_COHORTS 32u
#define TM_LEDGER_COHORT_SITES 1024u
#define TM_LEDGER_GPU_ROWS 1024u
#define TM_LEDGER_GPU_POOLS 64u
#define TM_LEDGER_LIVES 8192u
#define TM_LEDGER_HEAPS 8192u
#define TM_LEDGER_ROWS 4096u
#define TM_LEDGER_GRANULES ((uint64_t)16 << 20)

/* Areas: byte offsets in the file. Those below 1 GiB (the tables) are one mapping. */
#define TM_LEDGER_COUNTERS_AT ((uint64_t)4 << 10) /* struct tm_ledger_counters */
#define TM_LEDGER_POOLS_AT ((uint64_t)8 << 10)
#define TM_LEDGER_WINDOWS_AT ((uint64_t)16 << 10)
#define TM_LEDGER_COMMAND_AT ((uint64_t)32 << 10) /* NUL-terminated arguments */
#define TM_LEDGER_COMMAND_BYTES ((uint64_t)16 << 10)
#define TM_LEDGER_MAPS_AT ((uint64_t)64 << 10) /* text: lines of /proc/PID/maps */
#define TM_LEDGER_MAPS_BYTES ((uint64_t)512 << 10)
#define TM_LEDGER_EVENTS_AT ((uint64_t)576 << 10)
#define TM_LEDGER_SIZES_AT ((uint64_t)640 << 10)
#define TM_LEDGER_GPU_AT ((uint64_t)896 << 10)
#define TM_LEDGER_GPU_POOLS_AT ((uint64_t)960 << 10)
#define TM_LEDGER_MODULES_AT ((uint64_t)1 << 20)
#define TM_LEDGER_STACKS_AT ((uint64_t)2 << 20)
#define TM_LEDGER_SUSPECTS_AT ((uint64_t)2560 << 10)
#define TM_LEDGER_SUSPECTS 2048u
#define TM_LEDGER_SAMPLES_AT ((uint64_t)3 << 20)
#define TM_LEDGER_DECISIONS_AT ((uint64_t)4 << 20)
#define TM_LEDGER_SHEETS_AT ((uint64_t)5 << 20) /* two struct tm_ledger_sheet, written in turn */
#define TM_LEDGER_SHEET_BYTES ((uint64_t)256 << 10)
#define TM_LEDGER_PYTHON_AT ((uint64_t)5632 << 10)
#define TM_LEDGER_PYTHON_BYTES ((uint64_t)512 << 10)
#define TM_LEDGER_FRAMES_AT ((uint64_t)6 << 20)
#define TM_LEDGER_COHORTS_AT ((uint64_t)8 << 20)
#define TM_LEDGER_LIVES_AT ((uint64_t)10 << 20)
#define TM_LEDGER_TABLES_BYTES ((uint64_t)12 << 20) /* everything above, with its gaps */
#define TM_LEDGER_ROWS_AT ((uint64_t)1 << 30)       /* one stride per heap: its rows, by number */
#define TM_LEDGER_ROWS_STRIDE ((uint64_t)128 << 10)
#define TM_LEDGER_GRANULES_AT ((uint64_t)2 << 30) /* one record per 64 KiB of the zone */
#define TM_LEDGER_SIDES_AT ((uint64_t)4 << 30)    /* side entries, by offset */
#define TM_LEDGER_SIDES_BYTES ((uint64_t)4 << 30)
/*
 * Verdicts of the leak scan: a bitmap per enum tm_ledger_verdict. A slot's bit: (its entry's offset
 * in the sides area) / 3. From TM_LEDGER_VERDICT_BLOCKS on, a large block's bit: its granule.
 */
#define TM_LEDGER_VERDICTS_AT ((uint64_t)8 << 30)
#define TM_LEDGER_VERDICT_STRIDE ((uint64_t)256 << 20)
#define TM_LEDGER_VERDICT_BLOCKS ((uint64_t)192 << 20)
/*
 * Birth times (TM_LEDGER_HAS_BIRTHS): u64 nanoseconds of CLOCK_MONOTONIC, 0: unknown. Each 256 KiB
 * of side entries have a stride of times; in it, a slot's index is (its entry's offset in those 256
 * KiB) / 3. Of large blocks: by granule. Unknown for side entries beyond the last stride.
 */
#define TM_LEDGER_BIRTHS_AT ((uint64_t)9 << 30)
#define TM_LEDGER_BIRTHS_SIDES ((uint64_t)256 << 10)
#define TM_LEDGER_BIRTHS_STRIDE ((uint64_t)704 << 10)
#define TM_LEDGER_BIRTHS_STRIDES 4096u
#define TM_LEDGER_BLOCK_BIRTHS_AT                                                                  \
	(TM_LEDGER_BIRTHS_AT + TM_LEDGER_BIRTHS_STRIDES * TM_LEDGER_BIRTHS_STRIDE)
#define TM_LEDGER_BYTES ((uint64_t)12 << 30)
_Static_assert(TM_LEDGER_VERDICTS_AT + 4 * TM_LEDGER_VERDICT_STRIDE <= TM_LEDGER_BIRTHS_AT &&
		       TM_LEDGER_BLOCK_BIRTHS_AT + TM_LEDGER_GRANULES * 8 <= TM_LEDGER_BYTES,
	       "areas do not touch");

enum tm_ledger_verdict {
	TM_LEDGER_ONCE,     /* unreachable in the last scan */
	TM_LEDGER_TWICE,    /* the same object also in the scan before */
	TM_LEDGER_INDIRECT, /* unreachable, but another unreachable object points to it */
	TM_LEDGER_STALE,    /* unreachable, but a dead stack word still points to it */
};

/* header.features */
#define TM_LEDGER_HAS_STACKS 1u  /* stacks are captured */
#define TM_LEDGER_HAS_EPOCHS 2u  /* side entries have birth epochs, windows advance */
#define TM_LEDGER_HAS_SAMPLES 4u /* TIERMALLOC_LEDGER=stack or deep */
#define TM_LEDGER_HAS_BIRTHS 8u  /* deep */
#define TM_LEDGER_HAS_TIERS 16u  /* granule records have tiers */
#define TM_LEDGER_HAS_SIZES 32u
#define TM_LEDGER_STAYS 64u /* the file is kept after a clean exit */
#define TM_LEDGER_HAS_PYTHON 128u
#define TM_LEDGER_OBSERVES 256u /* tiers are decided, but blocks lie as without tiers */

/* header.control: requests of the command to the process. */
enum tm_ledger_control {
	TM_LEDGER_NO_REQUEST,
	TM_LEDGER_SCAN_SNAPSHOT, /* leak scan of a forked image, without stopping threads */
	TM_LEDGER_SCAN_STOP,     /* the same, all threads stopped while it is forked */
	TM_LEDGER_REFRESH,       /* update counters, samples and maps now */
};

struct tm_ledger_header {
	uint64_t magic; /* written last */
	uint32_t version;
	uint32_t pid;        /* in the process's own pid namespace */
	uint64_t start_time; /* clock ticks since boot, as in /proc/PID/stat */
	uint64_t zone_base;  /* address of granule 0 */
	uint64_t granules;   /* [atomic] number of records that may be written */
	uint64_t heaps;      /* [atomic] number of heaps with rows */
	uint64_t begun_unix_s;
	uint64_t private_bytes; /* [atomic] side entries outside the file, invisible here */
	uint32_t clean_exit;    /* 1: the process ended regularly */
	uint32_t maps_bytes;    /* [atomic] length of the text in the maps area */
	char program[64];
	/* Fields since version 2. */
	uint64_t begun_ms;
	uint64_t begun_unix_ns;
	uint64_t ended_ms;
	uint64_t heartbeat_ms; /* [atomic] */
	uint64_t boot_id[2];
	uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
	uint64_t parent_start_time;
	uint32_t parent; /* process id */
	uint32_t forked; /* 1: made by fork; objects of row 0 are the parent's */
	uint32_t features;
	uint32_t page_bytes;
	uint8_t exe_build_id[32];
	uint32_t exe_build_id_bytes;
	uint32_t command_bytes; /* of the command line; truncated at TM_LEDGER_COMMAND_BYTES */
	/* Record counts of the tables, each [atomic]. */
	uint32_t modules;
	uint32_t stacks;
	uint32_t frames; /* words used in the pool of frames */
	uint32_t pools;
	uint32_t decisions;
	uint32_t cohort_sites;
	uint32_t gpu_rows;
	uint32_t python_bytes; /* used in the area of Python functions */
	uint64_t samples[3];   /* total written into the rings of seconds, minutes, hours */
	uint64_t events;       /* total written */
	/* Records that did not fit, each [atomic]. */
	uint64_t modules_lost;
	uint64_t stacks_lost;
	uint64_t sizes_lost; /* blocks whose size got no record */
	uint64_t decisions_lost;
	uint64_t gpu_rows_lost;
	/* Epochs: one per window. A side entry holds tm_ledger_epoch8 of its birth epoch. */
	uint32_t epoch;     /* [atomic] current; the first is 1 */
	uint32_t window_ms; /* length of a window; the leak tests' limits scale with it */
	uint64_t epoch_begun_ms;
	uint32_t windows; /* [atomic] n finished: the last is record (n - 1) % TM_LEDGER_WINDOWS */
	uint32_t old_windows; /* age in windows at which an object is old (A of the growth test) */
	uint64_t scan_ns;     /* duration of the last census */
	/* Leak scan. */
	uint32_t control;      /* [atomic] enum tm_ledger_control, written by the command */
	uint32_t control_seq;  /* [atomic] incremented by each request; futex word */
	uint32_t control_done; /* [atomic] seq of the last answered request; futex word */
	int32_t control_error; /* result of that request: 0 or -errno */
	uint32_t scan_passes;
	uint32_t scan_level; /* enum tm_ledger_control of the last pass */
	uint32_t scan_epoch; /* objects born in it or later were not judged */
	uint32_t threads_stopped;
	uint32_t threads_missed;
	uint32_t stop_us; /* how long the threads were stopped, including the fork */
	uint64_t scanned_bytes;
	uint64_t scan_ms; /* when the last pass ended */
	uint64_t unused[2];
	/* Spans with side entries outside the file: other threads used them when it began. */
	uint64_t before_span_bytes;
	/* Since version 3. The program's marks since the ledger began, as of the last sample. */
	uint64_t sessions, sessions_ended, tokens;
	uint64_t sheets;      /* [atomic] n written: the last is number (n - 1) % 2 */
	uint64_t births_lost; /* [atomic] objects whose birth time could not be stored */
	uint64_t lives_lost;  /* [atomic] objects freed whose site got no record of lives */
	uint32_t lives;       /* [atomic] records of lives */
	/* Of the last scan: */
	uint32_t scan_hidden;  /* objects not judged because their site hides its pointers */
	uint64_t opaque_bytes; /* memory that may hold pointers but could not be read */
	/* CPython: address range of _PyEval_EvalFrameDefault; 0: unknown. */
	uint64_t python_begin, python_end;
	uint32_t gpu_pools; /* [atomic] records of device pools */
	uint32_t own_mib;   /* below zone_base: addresses reserved for the library's own mappings */
};
_Static_assert(sizeof(struct tm_ledger_header) <= 4096, "one page");

/* An epoch as one byte in a side entry. 0: too old to tell, or before the first epoch. */
TM_INLINE unsigned tm_ledger_epoch8(uint32_t epoch)
{
	return epoch == 0 ? 0 : (epoch - 1) % 255 + 1;
}

/* Age of an object in epochs, by the current epoch and its entry's byte; UINT32_MAX: unknown. */
TM_INLINE uint32_t tm_ledger_age(uint32_t epoch, unsigned epoch8)
{
	return epoch8 == 0 ? UINT32_MAX : (tm_ledger_epoch8(epoch) + 255 - epoch8) % 255;
}

/* Indices of stats.def's words, e.g. tier[t][TM_LEDGER_TIER_live_bytes]. Updated each second. */
enum tm_ledger_stat {
#define X_TIER(name) TM_LEDGER_TIER_##name,
#define X_PROCESS(name)
#define X(scope, name, unit, kind, meaning) X_##scope(name)
#include "shim/base/stats.def"
#undef X_TIER
#undef X_PROCESS
	TM_LEDGER_TIER_COUNT,
	TM_LEDGER_BEFORE_PROCESS = -1,
#define X_TIER(name)
#define X_PROCESS(name) TM_LEDGER_PROCESS_##name,
#include "shim/base/stats.def"
#undef X_TIER
#undef X_PROCESS
#undef X
	TM_LEDGER_PROCESS_COUNT,
};
_Static_assert(TM_LEDGER_TIER_COUNT <= TM_LEDGER_TIER_WORDS, "words by tier");
_Static_assert(TM_LEDGER_PROCESS_COUNT <= TM_LEDGER_PROCESS_WORDS, "words of the process");

struct tm_ledger_counters {
	uint32_t seq;
	uint32_t unused;
	uint64_t at_ms;
	uint64_t rss_bytes, file_rss_bytes, shmem_rss_bytes, swap_bytes;
	uint64_t peak_rss_bytes;
	uint64_t limit_bytes; /* of the control group; 0: none */
	uint64_t tier[TM_LEDGER_TIERS][TM_LEDGER_TIER_WORDS];
	uint64_t process[TM_LEDGER_PROCESS_WORDS];
	/* At the largest RSS seen: */
	uint64_t at_peak_ms, at_peak_rss, at_peak_live;
};
_Static_assert(sizeof(struct tm_ledger_counters) <= 4096, "one page");

/*
 * Breakdown of the resident memory, as text: for each mapping with resident pages, and each stack
 * guard, its header line of /proc/PID/smaps and these lines: "Rss"; if present "AnonHugePages",
 * "Swap" and "VmFlags" (only nr, io, pf). Anonymous mappings also have "Own: BEGIN-END N kB" for
 * each range that the library mapped (N: resident) and "Pymalloc: N kB M kB" for CPython's pools
 * (N: resident, M: their size).
 */
struct tm_ledger_sheet {
	uint64_t at_ms;
	uint64_t rss_bytes; /* by statm before or after the text was read: the nearer to its sum */
	uint32_t text_bytes;
	uint32_t cut; /* 1: not all mappings fitted */
	char text[];
};

/* A loaded object. If it is loaded again after an unload it gets a new record. */
struct tm_ledger_module {
	uint64_t base;                   /* address in memory - address in the file; may be 0 */
	uint64_t begin, end;             /* of its mappings; end: written last, 0: unwritten */
	uint64_t loaded_ms, unloaded_ms; /* loaded: first seen; unloaded: 0: still loaded */
	uint32_t load_epoch, unload_epoch;
	uint8_t build_id[32];
	uint32_t build_id_bytes;
	uint32_t path_bytes; /* full length; if larger than path, its end is missing */
	char path[424];
};
_Static_assert(sizeof(struct tm_ledger_module) == 512, "layout");

enum tm_ledger_unwinder {
	TM_LEDGER_BY_NOTHING, /* the return address alone */
	TM_LEDGER_BY_FRAMES,  /* chain of frame pointers, verified */
	TM_LEDGER_BY_CFI,     /* .eh_frame */
	TM_LEDGER_BY_LIBUNWIND,
};

/*
 * A stack of a key (row.site, row.height); with height 0 the first one seen. A key has several if
 * its samples differed. Frames are return addresses, innermost first: frame 0 is the site.
 */
struct tm_ledger_stack {
	uint64_t site : 48; /* written last */
	uint64_t height : 16;
	uint32_t frames_at; /* index into the pool of frames */
	uint16_t frames;
	uint8_t unwinder;  /* enum tm_ledger_unwinder */
	uint8_t truncated; /* 1: the walk ended before the stack did */
	uint32_t epoch;    /* of the capture; selects the modules that its addresses lie in */
	uint32_t samples;  /* [atomic] times the key was captured with this stack */
	uint32_t hash;     /* of the frames */
	uint32_t thread;   /* tid of the captured thread */
};
_Static_assert(sizeof(struct tm_ledger_stack) == 32, "layout");

/*
 * With TM_LEDGER_HAS_PYTHON a site with bit 47 set stands for a C call and a Python line; the
 * return address is frame 0 of its stack. After the return addresses, the stack lists the active
 * Python functions, innermost first, one word each: offset of the function's record, line, and a
 * flag for the outermost function of one call of the interpreter loop.
 */
#define TM_LEDGER_PYTHON_SITE (UINT64_C(1) << 47)
#define TM_LEDGER_PYTHON_FRAME (UINT64_C(1) << 63)
#define TM_LEDGER_PYTHON_ENTRY (UINT64_C(1) << 62) /* bits 32 to 61: line; 0 to 31: offset */

/* A Python function. File and qualified name follow, UTF-8 without NUL. Padded to 8 bytes. */
struct tm_ledger_python {
	uint32_t line; /* first line */
	uint16_t file_bytes, name_bytes;
};
_Static_assert(sizeof(struct tm_ledger_python) == 8, "layout");

struct tm_ledger_pool {
	uint64_t slot_bytes; /* 0: unwritten */
	uint32_t tier;
	uint32_t count; /* configured number of slots */
	uint64_t hits, misses, exhausted;
	uint64_t high_water; /* most slots in use at once */
	uint64_t in_use;
	uint64_t unused;
};
_Static_assert(sizeof(struct tm_ledger_pool) * TM_LEDGER_POOLS <= 8192, "area");

/* Blocks of one exact requested size, at least 4 KiB; in no order. */
struct tm_ledger_size {
	uint64_t size;       /* 0: unused */
	uint64_t count;      /* [atomic] ever allocated */
	uint32_t live, peak; /* [atomic] live now, most at once */
	uint32_t tier;
	uint32_t flags; /* TM_LEDGER_SIZE_SEEN */
};
_Static_assert(sizeof(struct tm_ledger_size) * TM_LEDGER_SIZES <= (256 << 10), "area");

/* flags: slots, counted by the census only: live and peak as of a census, count a lower bound. */
#define TM_LEDGER_SIZE_SEEN 1u

enum tm_ledger_authority {
	TM_LEDGER_BY_DEFAULT,
	TM_LEDGER_BY_SIZE,
	TM_LEDGER_BY_PROFILE,
	TM_LEDGER_BY_LEARNING,
	TM_LEDGER_BY_RULE,
	TM_LEDGER_BY_CALLER, /* tiermalloc_alloc & co. */
	TM_LEDGER_BY_PHASE,  /* loading or serving */
};

/* tm_ledger_decision.flags */
#define TM_LEDGER_DECIDES_LARGE 1u /* for requests of at least 256 KiB, a separate record */
#define TM_LEDGER_DECIDES_NONE 2u  /* no site: the rule in line `rule` has matched nothing yet */

/* The tier of a site's requests, and the reason. */
struct tm_ledger_decision {
	uint64_t site : 48; /* written last, 0: unwritten; 1: see TM_LEDGER_DECIDES_NONE */
	uint64_t height : 16;
	uint8_t tier;
	uint8_t authority; /* enum tm_ledger_authority */
	uint8_t size_log2; /* of the requests; 0: all sizes */
	uint8_t phase;     /* 0 unknown, 1 load, 2 serve */
	uint16_t rule;     /* TM_LEDGER_BY_RULE: its line */
	uint16_t flags;
	uint64_t objects, bytes;
	uint32_t short_lived, long_lived; /* learned: objects freed early, objects that survived */
	uint64_t unused[3];
};
_Static_assert(sizeof(struct tm_ledger_decision) == 64, "layout");

/* A sample. Three consecutive rings (1 s, 1 min, 1 h); the n-th sample is at n % length. */
struct tm_ledger_sample {
	uint64_t at_ms; /* 0: unwritten; a reader compares it before and after its copy */
	uint64_t rss_bytes;
	uint64_t live_bytes[TM_LEDGER_TIERS];
	uint64_t slot_bytes[TM_LEDGER_TIERS];
	uint64_t cached_bytes[TM_LEDGER_TIERS];
	uint64_t gpu_bytes;
	uint64_t objects;          /* ever allocated */
	uint64_t sessions, tokens; /* since the ledger began, by the program's marks */
};
_Static_assert(sizeof(struct tm_ledger_sample) == 144, "layout");

enum tm_ledger_event_kind {
	TM_LEDGER_NO_EVENT,
	TM_LEDGER_OUT_OF_MEMORY, /* a: requested bytes */
	TM_LEDGER_GIVE_BACK, /* a: bytes given back, b: why (0 idle, 1 pressure, 2 limit, 3 trim) */
	TM_LEDGER_TIER_CEILING,   /* a: requested bytes, b: live bytes */
	TM_LEDGER_POOL_EXHAUSTED, /* a: slot bytes, b: slots */
	TM_LEDGER_LIMIT_NEAR,     /* a: bytes used, b: limit of the control group */
	TM_LEDGER_LEDGER_FULL,    /* a: bytes that went to private memory */
	TM_LEDGER_FORKED,         /* a: child's process id */
	TM_LEDGER_SCANNED,        /* a: unreachable objects, b: their bytes */
	TM_LEDGER_PHASE,          /* a: new phase */
	TM_LEDGER_MARK,           /* a, b: from tiermalloc_mark */
};

struct tm_ledger_event {
	uint64_t seq; /* number + 1, written last; 0 during a write */
	uint64_t at_ms;
	uint16_t kind; /* enum tm_ledger_event_kind */
	uint16_t tier;
	uint32_t count; /* equal events within a second, merged into this one */
	uint64_t a, b;
	uint64_t site : 48;
	uint64_t height : 16;
	uint64_t unused[2];
};
_Static_assert(sizeof(struct tm_ledger_event) == 64, "layout");

/* A window of the growth test. */
struct tm_ledger_window {
	uint32_t seq; /* epoch of the window, written last; 0: unwritten */
	uint32_t sites;
	uint64_t begun_ms, ended_ms;
	uint64_t live_objects, live_bytes;
	uint64_t births; /* objects allocated in the window */
	uint64_t rss_bytes;
	uint32_t sessions, tokens; /* the program's marks in the window */
	uint64_t unused[8];
};
_Static_assert(sizeof(struct tm_ledger_window) == 128, "layout");

/*
 * A site in the growth test; only the sites that grow most have a record. cohort[i]: live objects
 * born i windows ago (last element: or more). ring: indexed by epoch % TM_LEDGER_WINDOWS. For
 * device memory, site and height are those of its row.
 */
struct tm_ledger_cohorts {
	uint64_t site : 48; /* 0: unused */
	uint64_t height : 16;
	uint32_t seq;         /* odd during a write */
	uint32_t first_epoch; /* first epoch in the ring */
	uint32_t last_epoch;  /* last epoch in the ring */
	uint32_t gpu_row;     /* device memory: row number + 1; 0: host memory */
	uint64_t live_objects, live_bytes;
	uint64_t objects; /* ever allocated */
	uint32_t cohort[TM_LEDGER_COHORTS];
	uint32_t died[TM_LEDGER_COHORTS]; /* objects seen to be freed at this age in windows */
	struct {
		uint32_t births;
		uint32_t old;      /* objects older than header.old_windows */
		uint32_t live_kib; /* of all live objects */
	} ring[TM_LEDGER_WINDOWS];
};
_Static_assert(sizeof(struct tm_ledger_cohorts) * TM_LEDGER_COHORT_SITES <= (2u << 20), "area");

/*
 * A site with unreachable objects (leak scan); hash table by key, open addressing. If half of them
 * are freed later, the program did have pointers to them: xored, compressed, or stored where a scan
 * does not look. From then on the site's objects count in header.scan_hidden, not as leaks.
 */
struct tm_ledger_suspect {
	uint64_t site : 48; /* 0: unused */
	uint64_t height : 16;
	uint32_t once;   /* objects unreachable in the last scan */
	uint32_t same;   /* of these, unreachable in the scan before too */
	uint32_t judged; /* sum of `once` over all earlier scans */
	uint32_t freed;  /* of these, freed by the next scan */
	uint32_t hidden; /* 1: the site hides its pointers */
	uint32_t unused;
};
_Static_assert(sizeof(struct tm_ledger_suspect) == 32, "layout");

/* Exact lifetimes of a site's objects (TM_LEDGER_HAS_BIRTHS). Each word [atomic]. */
struct tm_ledger_lives {
	uint64_t site : 48; /* written last; 0: unused */
	uint64_t height : 16;
	uint64_t objects; /* freed */
	uint64_t sum_ns, least_ns, most_ns;
	uint32_t by_us[32]; /* histogram by log2 of microseconds + 1 */
	uint32_t by_s[20];  /* histogram by log2 of seconds + 1 */
	uint64_t unused;
};
_Static_assert(sizeof(struct tm_ledger_lives) == 256, "layout");
_Static_assert(TM_LEDGER_LIVES_AT + sizeof(struct tm_ledger_lives) * TM_LEDGER_LIVES <=
		       TM_LEDGER_TABLES_BYTES,
	       "areas do not touch");

/* Device and pinned memory of one site. */
struct tm_ledger_gpu {
	uint64_t site : 48; /* written last; 0: unused */
	uint64_t height : 16;
	uint64_t context;
	uint16_t device;
	uint16_t kind; /* enum tm_ledger_gpu_kind */
	uint32_t tier;
	uint64_t live_objects, live_bytes, peak_bytes;
	uint64_t objects, bytes;
};
_Static_assert(sizeof(struct tm_ledger_gpu) == 64, "layout");

/*
 * Memory that the library's pools hold on a context's device, and how much of it is in use, as of
 * the last sample. The record of a destroyed context is zeros.
 */
struct tm_ledger_gpu_pool {
	uint64_t context; /* written last; 0: unused */
	uint32_t device;
	uint32_t unused;
	uint64_t cache_idle_bytes; /* free whole blocks kept for reuse */
	uint64_t host_idle_bytes;  /* the same of pinned host memory */
	uint64_t slab_bytes, slab_live_bytes;
	uint64_t vmm_bytes, vmm_live_bytes; /* chunks */
	uint64_t hits, misses;
	uint64_t unused2[6];
};
_Static_assert(sizeof(struct tm_ledger_gpu_pool) == 128, "layout");

enum tm_ledger_gpu_kind {
	TM_LEDGER_GPU_DEVICE,  /* cuMemAlloc & co. */
	TM_LEDGER_GPU_ASYNC,   /* stream-ordered */
	TM_LEDGER_GPU_VMM,     /* cuMemCreate */
	TM_LEDGER_GPU_MANAGED, /* managed */
	TM_LEDGER_GPU_PINNED,  /* cuMemHostAlloc: the host's */
	TM_LEDGER_GPU_REGISTERED,
	TM_LEDGER_GPU_ARRAY,
	TM_LEDGER_GPU_IPC, /* opened IPC handles, imported pool pointers */
};

enum tm_ledger_kind {
	TM_LEDGER_NOTHING,
	TM_LEDGER_SMALL,  /* a span with 3-byte entries */
	TM_LEDGER_MEDIUM, /* a span with 8-byte entries */
	TM_LEDGER_BLOCK,  /* a large block, whole pages */
};

/*
 * A TM_LEDGER_MEDIUM span with slots up to this is an arena: objects take several slots in a row.
 */
#define TM_LEDGER_LINE_MAX 1024u

/* The span or large block that begins in a granule. */
struct tm_ledger_granule {
	uint8_t kind;        /* enum tm_ledger_kind; written last at the begin, first at the end */
	uint8_t tier;        /* 0: unknown */
	uint16_t heap;       /* the heap whose rows the ids refer to */
	uint32_t slot_bytes; /* spans: slot size; blocks: number of 4 KiB pages */
	uint16_t slots, first; /* spans: slots [first, slots) were used; blocks: first page */
	uint16_t id;           /* blocks: row * 16 */
	uint16_t epoch8;       /* blocks: birth epoch */
	uint64_t at;           /* spans: offset in the sides area; blocks: requested bytes */
};
_Static_assert(sizeof(struct tm_ledger_granule) == 24, "layout");

/*
 * A row: counters of one call site in one heap. Its stack: tm_ledger_stack with the same site and
 * height. Row 0: objects inherited by fork, older than the account, or of sites that got no row.
 */
struct tm_ledger_row {
	uint64_t key; /* 0: unused */
	uint64_t objects;
	uint64_t bytes;
	uint64_t site : 48;
	uint64_t height : 16;
};
_Static_assert(sizeof(struct tm_ledger_row) == 32, "layout");

/*
 * Side entries. Small slots: u16 id (row << 4 | requested & 15), u8 epoch8. Medium slots: id in
 * bits 0..15, epoch8 16..23, requested bytes 24..63. An id of TM_LEDGER_ID_FREE: the slot is free.
 */
#define TM_LEDGER_ID_FREE 0xffffu

#define TM_LEDGER_FITS(at, record, count, next)                                                    \
	_Static_assert((at) + sizeof(struct record) * (count) <= (next), "areas do not touch")
TM_LEDGER_FITS(TM_LEDGER_POOLS_AT, tm_ledger_pool, TM_LEDGER_POOLS, TM_LEDGER_WINDOWS_AT);
TM_LEDGER_FITS(TM_LEDGER_EVENTS_AT, tm_ledger_event, TM_LEDGER_EVENTS, TM_LEDGER_SIZES_AT);
TM_LEDGER_FITS(TM_LEDGER_LIVES_AT, tm_ledger_lives, TM_LEDGER_LIVES, TM_LEDGER_TABLES_BYTES);
TM_LEDGER_FITS(TM_LEDGER_WINDOWS_AT, tm_ledger_window, TM_LEDGER_WINDOWS, TM_LEDGER_COMMAND_AT);
TM_LEDGER_FITS(TM_LEDGER_SIZES_AT, tm_ledger_size, TM_LEDGER_SIZES, TM_LEDGER_GPU_AT);
TM_LEDGER_FITS(TM_LEDGER_GPU_AT, tm_ledger_gpu, TM_LEDGER_GPU_ROWS, TM_LEDGER_GPU_POOLS_AT);
TM_LEDGER_FITS(TM_LEDGER_GPU_POOLS_AT, tm_ledger_gpu_pool, TM_LEDGER_GPU_POOLS,
	       TM_LEDGER_MODULES_AT);
TM_LEDGER_FITS(TM_LEDGER_MODULES_AT, tm_ledger_module, TM_LEDGER_MODULES, TM_LEDGER_STACKS_AT);
TM_LEDGER_FITS(TM_LEDGER_STACKS_AT, tm_ledger_stack, TM_LEDGER_STACKS, TM_LEDGER_SUSPECTS_AT);
TM_LEDGER_FITS(TM_LEDGER_SUSPECTS_AT, tm_ledger_suspect, TM_LEDGER_SUSPECTS, TM_LEDGER_SAMPLES_AT);
TM_LEDGER_FITS(TM_LEDGER_SAMPLES_AT, tm_ledger_sample, TM_LEDGER_SAMPLES, TM_LEDGER_DECISIONS_AT);
TM_LEDGER_FITS(TM_LEDGER_DECISIONS_AT, tm_ledger_decision, TM_LEDGER_DECISIONS,
	       TM_LEDGER_SHEETS_AT);
TM_LEDGER_FITS(TM_LEDGER_COHORTS_AT, tm_ledger_cohorts, TM_LEDGER_COHORT_SITES, TM_LEDGER_LIVES_AT);
_Static_assert(TM_LEDGER_SHEETS_AT + 2 * TM_LEDGER_SHEET_BYTES <= TM_LEDGER_PYTHON_AT &&
		       TM_LEDGER_PYTHON_AT + TM_LEDGER_PYTHON_BYTES <= TM_LEDGER_FRAMES_AT &&
		       TM_LEDGER_FRAMES_AT + sizeof(uint64_t) * TM_LEDGER_FRAMES <=
			       TM_LEDGER_COHORTS_AT,
	       "areas do not touch");

#endif
