/* SPDX-License-Identifier: MIT */
/*
 * ledger_format: the file in which a process keeps its account, as the library writes it and the
 * command reads it. Native byte order of a 64-bit little-endian machine. The file is sparse and has
 * its full length from the start; what was never written reads as zeros.
 *
 * Written in place by plain stores, so that it is whole at every instant: after kill -9 each thread
 * may have counted at most one object that has no entry yet. A reader of a running process sees each
 * word exactly, not all at one moment. Where words belong together a record has a `seq`: odd while
 * it is written. A reader copies the record, compares seq, tries three times, then counts it torn.
 *
 * Tables of records have a count in the header; records below it may still be unwritten (their first
 * word is 0). Nothing is removed but where it is said. Times are milliseconds of CLOCK_MONOTONIC;
 * the header has one pair (begun_ms, begun_unix_ns) to turn them into dates.
 */
#ifndef TM_BASE_LEDGER_FORMAT_H
#define TM_BASE_LEDGER_FORMAT_H

#include "shim/base/attrs.h"

#define TM_LEDGER_MAGIC UINT64_C(0x31524744454c4d54) /* "TMLEDGR1" */
#define TM_LEDGER_VERSION 4u

#define TM_LEDGER_TIERS 4u /* 0: not told apart or total; 1.. as in tiers.def */
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

/* Areas of the file, bytes from its start. Those below 1 GiB are one mapping. */
#define TM_LEDGER_COUNTERS_AT ((uint64_t)4 << 10) /* struct tm_ledger_counters */
#define TM_LEDGER_POOLS_AT ((uint64_t)8 << 10)
#define TM_LEDGER_WINDOWS_AT ((uint64_t)16 << 10)
#define TM_LEDGER_COMMAND_AT ((uint64_t)32 << 10) /* command line, words end in NUL */
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
#define TM_LEDGER_SHEETS_AT ((uint64_t)5 << 20) /* two struct tm_ledger_sheet, by turns */
#define TM_LEDGER_SHEET_BYTES ((uint64_t)256 << 10)
#define TM_LEDGER_PYTHON_AT ((uint64_t)5632 << 10)
#define TM_LEDGER_PYTHON_BYTES ((uint64_t)512 << 10)
#define TM_LEDGER_FRAMES_AT ((uint64_t)6 << 20)
#define TM_LEDGER_COHORTS_AT ((uint64_t)8 << 20)
#define TM_LEDGER_LIVES_AT ((uint64_t)10 << 20)
#define TM_LEDGER_TABLES_BYTES ((uint64_t)12 << 20) /* all of the above, holes included */
#define TM_LEDGER_ROWS_AT ((uint64_t)1 << 30)       /* a stride for each heap: rows by number */
#define TM_LEDGER_ROWS_STRIDE ((uint64_t)128 << 10)
#define TM_LEDGER_GRANULES_AT ((uint64_t)2 << 30) /* a record for each 64 KiB of the zone */
#define TM_LEDGER_SIDES_AT ((uint64_t)4 << 30)    /* side entries, by offset */
#define TM_LEDGER_SIDES_BYTES ((uint64_t)4 << 30)
/*
 * Verdicts of the leak scan, bitmaps. A slot's bit: (its entry's offset in the sides) / 3. Behind
 * them, at TM_LEDGER_VERDICT_BLOCKS, a block's bit: its granule.
 */
#define TM_LEDGER_VERDICTS_AT ((uint64_t)8 << 30)
#define TM_LEDGER_VERDICT_STRIDE ((uint64_t)256 << 20)
#define TM_LEDGER_VERDICT_BLOCKS ((uint64_t)192 << 20)
/*
 * Times of birth (TM_LEDGER_HAS_BIRTHS), u64 nanoseconds of CLOCK_MONOTONIC, 0: not known. A slot's:
 * entries of each 256 KiB of the sides have a stride, in it the time number (offset in them) / 3. A
 * block's: by granule. Of sides beyond the last stride nothing is known.
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
	TM_LEDGER_TWICE,    /* and in the one before, the same object */
	TM_LEDGER_INDIRECT, /* of the unreachable ones: pointed to by another one */
	TM_LEDGER_STALE,    /* unreachable, but a dead word of a stack still points to it */
};

/* header.features */
#define TM_LEDGER_HAS_STACKS 1u  /* stacks are captured */
#define TM_LEDGER_HAS_EPOCHS 2u  /* entries carry birth epochs, windows advance */
#define TM_LEDGER_HAS_SAMPLES 4u /* TIERMALLOC_LEDGER=stack or deep */
#define TM_LEDGER_HAS_BIRTHS 8u  /* deep */
#define TM_LEDGER_HAS_TIERS 16u  /* granules carry tiers */
#define TM_LEDGER_HAS_SIZES 32u
#define TM_LEDGER_STAYS 64u /* the file is kept after a clean exit */
#define TM_LEDGER_HAS_PYTHON 128u

/* header.control: asked for by the command, answered by the process. */
enum tm_ledger_control {
	TM_LEDGER_NO_REQUEST,
	TM_LEDGER_SCAN_SNAPSHOT, /* leak scan of an image, no thread is interrupted */
	TM_LEDGER_SCAN_STOP,     /* all threads stand still for a moment */
	TM_LEDGER_REFRESH,       /* counters, samples, maps now */
};

struct tm_ledger_header {
	uint64_t magic; /* written last */
	uint32_t version;
	uint32_t pid;        /* as the process sees itself */
	uint64_t start_time; /* clock ticks since boot, as /proc/PID/stat has it */
	uint64_t zone_base;  /* address of granule 0 */
	uint64_t granules;   /* [atomic] records from here on were never written */
	uint64_t heaps;      /* [atomic] heaps that have rows */
	uint64_t begun_unix_s;
	uint64_t private_bytes; /* [atomic] entries outside the file: not counted */
	uint32_t clean_exit;    /* 1: the process ended by itself */
	uint32_t maps_bytes;    /* [atomic] text in the maps area */
	char program[64];
	/* From here on since version 2. */
	uint64_t begun_ms;
	uint64_t begun_unix_ns;
	uint64_t ended_ms;
	uint64_t heartbeat_ms; /* [atomic] */
	uint64_t boot_id[2];
	uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
	uint64_t parent_start_time;
	uint32_t parent; /* process id */
	uint32_t forked; /* 1: made by fork; objects in row "inherited" are the parent's */
	uint32_t features;
	uint32_t page_bytes;
	uint8_t exe_build_id[32];
	uint32_t exe_build_id_bytes;
	uint32_t command_bytes; /* of the command line, cut at TM_LEDGER_COMMAND_BYTES */
	/* Counts of tables, each [atomic]. */
	uint32_t modules;
	uint32_t stacks;
	uint32_t frames; /* words of the pool in use */
	uint32_t pools;
	uint32_t decisions;
	uint32_t cohort_sites;
	uint32_t gpu_rows;
	uint32_t python_bytes; /* of the area in use */
	uint64_t samples[3];   /* ever written into the rings of seconds, minutes, hours */
	uint64_t events;       /* ever written */
	/* What did not fit, each [atomic]. */
	uint64_t modules_lost;
	uint64_t stacks_lost;
	uint64_t sizes_lost; /* blocks of a size that has no record */
	uint64_t decisions_lost;
	uint64_t gpu_rows_lost;
	/* Epochs: one per window. An entry holds tm_ledger_epoch8 of its birth's. */
	uint32_t epoch;     /* [atomic] current; the first is 1 */
	uint32_t window_ms; /* length of a window, scaled limits of the leak tests follow it */
	uint64_t epoch_begun_ms;
	uint32_t windows; /* [atomic] finished: record (n - 1) % TM_LEDGER_WINDOWS is the last */
	uint32_t old_windows; /* an object is old after so many (A of the growth test) */
	uint64_t scan_ns;     /* what the last scan of entries took */
	/* Leak scan. */
	uint32_t control;      /* [atomic] enum tm_ledger_control, written by the command */
	uint32_t control_seq;  /* [atomic] + 1 with each request; futex word */
	uint32_t control_done; /* [atomic] seq of the last request answered; futex word */
	int32_t control_error; /* of that one: 0 or -errno */
	uint32_t scan_passes;
	uint32_t scan_level; /* enum tm_ledger_control */
	uint32_t scan_epoch; /* objects born in this epoch or later were not judged */
	uint32_t threads_stopped;
	uint32_t threads_missed;
	uint32_t stop_us; /* how long the threads stood still, fork included */
	uint64_t scanned_bytes;
	uint64_t scan_ms; /* when the last pass ended */
	/* Objects from before the ledger (a process gets one when it holds more than 4 MiB). */
	uint64_t before_objects;
	uint64_t before_bytes;
	uint64_t before_span_bytes; /* spans whose entries stay outside the file */
	/* Since version 3. The program's marks since the ledger began, as of the last sample. */
	uint64_t sessions, sessions_ended, tokens;
	uint64_t sheets;      /* [atomic] ever written: the last is (n - 1) % 2 */
	uint64_t births_lost; /* [atomic] objects whose birth could not be kept */
	uint64_t lives_lost;  /* [atomic] lives of sites that had no room */
	uint32_t lives;       /* [atomic] records */
	/* Of the last scan: */
	uint32_t scan_hidden;  /* objects of sites whose pointers are hidden: not judged */
	uint64_t opaque_bytes; /* memory that may hold pointers and could not be read */
	/* Of a Python: its _PyEval_EvalFrameDefault, 0: not known. */
	uint64_t python_begin, python_end;
	uint32_t gpu_pools; /* [atomic] records */
	uint32_t own_mib; /* below zone_base, that are the library's own, whatever it maps there */
};
_Static_assert(sizeof(struct tm_ledger_header) <= 4096, "one page");

/* What an entry holds of an epoch: 0 is "before all that can be told apart". */
TM_INLINE unsigned tm_ledger_epoch8(uint32_t epoch)
{
	return epoch == 0 ? 0 : (epoch - 1) % 255 + 1;
}

/* Epochs since birth of what an entry holds, by the current epoch; UINT32_MAX: not told apart. */
TM_INLINE uint32_t tm_ledger_age(uint32_t epoch, unsigned epoch8)
{
	return epoch8 == 0 ? UINT32_MAX : (tm_ledger_epoch8(epoch) + 255 - epoch8) % 255;
}

/* Words of stats.def, in its order: tier[t][TM_LEDGER_TIER_live_bytes]. Brought up to date each second. */
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
 * What the resident memory consists of, for the time after the process: each mapping with resident
 * pages, and guards of stacks, by its line of /proc/PID/smaps and of what follows it there "Rss",
 * "AnonHugePages" (if any), "Swap" (if any) and "VmFlags" (nr, io, pf alone; if any). Of anonymous ones
 * also "Own: BEGIN-END N kB", for each part that the library mapped what of it is resident, and
 * "Pymalloc: N kB M kB", what is resident of CPython's pools, and their size.
 */
struct tm_ledger_sheet {
	uint64_t at_ms;
	uint64_t rss_bytes; /* as the kernel sums it up elsewhere: what is nearer */
	uint32_t text_bytes;
	uint32_t cut; /* 1: there were more mappings than fit */
	char text[];
};

/* A mapped object. A path that is loaded again after it went is a new record. */
struct tm_ledger_module {
	uint64_t base;                   /* address in memory - address in the file; may be 0 */
	uint64_t begin, end;             /* of its mappings; end 0: not written, written last */
	uint64_t loaded_ms, unloaded_ms; /* first seen; unloaded 0: still there */
	uint32_t load_epoch, unload_epoch;
	uint8_t build_id[32];
	uint32_t build_id_bytes;
	uint32_t path_bytes; /* more than fits: its end was cut */
	char path[424];
};
_Static_assert(sizeof(struct tm_ledger_module) == 512, "layout");

enum tm_ledger_unwinder {
	TM_LEDGER_BY_NOTHING, /* the return address alone */
	TM_LEDGER_BY_FRAMES,  /* chain of frame pointers that proved itself */
	TM_LEDGER_BY_CFI,     /* .eh_frame */
	TM_LEDGER_BY_LIBUNWIND,
};

/*
 * The stack of a key (row.site, row.height); height 0: the one first seen. Several of one key: its
 * samples disagreed. Frames are return addresses, innermost first: frame 0 is the site.
 */
struct tm_ledger_stack {
	uint64_t site : 48; /* written last */
	uint64_t height : 16;
	uint32_t frames_at; /* index into the pool of frames */
	uint16_t frames;
	uint8_t unwinder;  /* enum tm_ledger_unwinder */
	uint8_t truncated; /* 1: the walk ended before the stack did */
	uint32_t epoch;    /* of capture: which modules its addresses are in */
	uint32_t samples;  /* [atomic] the key was seen with this stack, first time included */
	uint32_t hash;     /* of the frames */
	uint32_t thread;   /* tid that was captured */
};
_Static_assert(sizeof(struct tm_ledger_stack) == 32, "layout");

/*
 * With TM_LEDGER_HAS_PYTHON a site with bit 47 stands for a C call and a Python line: its real return
 * address is frame 0 of its stack. Behind a stack's return addresses come the Python functions that
 * ran, innermost first, as words: where the function is described, the line, and whether it is the
 * outermost of those that one call of the interpreter's loop ran.
 */
#define TM_LEDGER_PYTHON_SITE (UINT64_C(1) << 47)
#define TM_LEDGER_PYTHON_FRAME (UINT64_C(1) << 63)
#define TM_LEDGER_PYTHON_ENTRY (UINT64_C(1) << 62) /* bits 32 to 61: line; 0 to 31: offset */

/* A function: its file and qualified name follow, UTF-8 without NULs. Multiples of 8 bytes. */
struct tm_ledger_python {
	uint32_t line; /* it begins at */
	uint16_t file_bytes, name_bytes;
};
_Static_assert(sizeof(struct tm_ledger_python) == 8, "layout");

struct tm_ledger_pool {
	uint64_t slot_bytes; /* 0: not written */
	uint32_t tier;
	uint32_t count; /* slots kept, as asked for */
	uint64_t hits, misses, exhausted;
	uint64_t high_water; /* slots in use at once */
	uint64_t in_use;
	uint64_t unused;
};
_Static_assert(sizeof(struct tm_ledger_pool) * TM_LEDGER_POOLS <= 8192, "area");

/* Blocks of one requested size, from 4 KiB on; in no order. */
struct tm_ledger_size {
	uint64_t size;       /* 0: not used */
	uint64_t count;      /* [atomic] ever allocated */
	uint32_t live, peak; /* [atomic] at once */
	uint32_t tier;
	uint32_t flags; /* TM_LEDGER_SIZE_SEEN */
};
_Static_assert(sizeof(struct tm_ledger_size) * TM_LEDGER_SIZES <= (256 << 10), "area");

/* Its flags: of slots without births: live and peak as of the counts of all, count is at least so much. */
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
#define TM_LEDGER_DECIDES_LARGE 1u /* requests of at least 256 KiB; their site has another record */
#define TM_LEDGER_DECIDES_NONE 2u  /* no site: line `rule` of the rules decided nothing so far */

/* Where the requests of a site went, and why. */
struct tm_ledger_decision {
	uint64_t site : 48; /* 0: not written; written last; 1: see TM_LEDGER_DECIDES_NONE */
	uint64_t height : 16;
	uint8_t tier;
	uint8_t authority; /* enum tm_ledger_authority */
	uint8_t size_log2; /* of the requests, 0: all sizes */
	uint8_t phase;     /* 0 unknown, 1 load, 2 serve */
	uint16_t rule;     /* by rule: its line */
	uint16_t flags;
	uint64_t objects, bytes;
	uint32_t short_lived, long_lived; /* what was learned: objects that died early, survived */
	uint64_t unused[3];
};
_Static_assert(sizeof(struct tm_ledger_decision) == 64, "layout");

/* One moment. Rings of 1 s, 1 min, 1 h, one behind the other; n-th sample at n % length. */
struct tm_ledger_sample {
	uint64_t at_ms; /* 0: not written; compare before and after */
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
	TM_LEDGER_LIMIT_NEAR,     /* a: used, b: limit of the control group */
	TM_LEDGER_LEDGER_FULL,    /* a: bytes that went to private memory */
	TM_LEDGER_FORKED,         /* a: child's process id */
	TM_LEDGER_SCANNED,        /* a: unreachable objects, b: bytes */
	TM_LEDGER_PHASE,          /* a: new phase */
	TM_LEDGER_MARK,           /* a, b: from tiermalloc_mark */
};

struct tm_ledger_event {
	uint64_t seq; /* its number + 1, written last; 0 while it is written */
	uint64_t at_ms;
	uint16_t kind; /* enum tm_ledger_event_kind */
	uint16_t tier;
	uint32_t count; /* the same within a second are one */
	uint64_t a, b;
	uint64_t site : 48;
	uint64_t height : 16;
	uint64_t unused[2];
};
_Static_assert(sizeof(struct tm_ledger_event) == 64, "layout");

/* A window of the growth test. */
struct tm_ledger_window {
	uint32_t seq; /* epoch of the window; 0: not written, written last */
	uint32_t sites;
	uint64_t begun_ms, ended_ms;
	uint64_t live_objects, live_bytes;
	uint64_t births; /* objects allocated in it */
	uint64_t rss_bytes;
	uint32_t sessions, tokens; /* counted by the program's marks */
	uint64_t unused[8];
};
_Static_assert(sizeof(struct tm_ledger_window) == 128, "layout");

/*
 * A site in the growth test; sites with the most live growth have a record. Cohort i: objects that
 * live and were born i windows ago, the last one: that many or more. Ring: by epoch % WINDOWS. Site and
 * height of device memory are those of its row.
 */
struct tm_ledger_cohorts {
	uint64_t site : 48; /* 0: not used */
	uint64_t height : 16;
	uint32_t seq;         /* odd while it is written */
	uint32_t first_epoch; /* the ring holds epochs from here on */
	uint32_t last_epoch;  /* to here */
	uint32_t gpu_row;     /* number + 1 of the row whose blocks these are; 0: the host's */
	uint64_t live_objects, live_bytes;
	uint64_t objects; /* ever allocated */
	uint32_t cohort[TM_LEDGER_COHORTS];
	uint32_t died[TM_LEDGER_COHORTS]; /* ever seen to die at this age in windows */
	struct {
		uint32_t births;
		uint32_t old;      /* objects older than header.old_windows */
		uint32_t live_kib; /* all that live */
	} ring[TM_LEDGER_WINDOWS];
};
_Static_assert(sizeof(struct tm_ledger_cohorts) * TM_LEDGER_COHORT_SITES <= (2u << 20), "area");

/*
 * What scans know of a site that had unreachable objects, by a hash of its key, open addressing. Where
 * half of them are freed later, something did know them: pointers that are xored, compressed, or kept
 * where no scan looks. From then on its objects are counted in header.scan_hidden and not called leaks.
 */
struct tm_ledger_suspect {
	uint64_t site : 48; /* 0: not used */
	uint64_t height : 16;
	uint32_t once;   /* unreachable in the last scan */
	uint32_t same;   /* and in the one before */
	uint32_t judged; /* sum of once over all scans but the last */
	uint32_t freed;  /* of these, gone by the next one */
	uint32_t hidden; /* 1: as said above */
	uint32_t unused;
};
_Static_assert(sizeof(struct tm_ledger_suspect) == 32, "layout");

/* How long the objects of one site lived, exactly (TM_LEDGER_HAS_BIRTHS). Each word [atomic]. */
struct tm_ledger_lives {
	uint64_t site : 48; /* 0: not used; written last */
	uint64_t height : 16;
	uint64_t objects; /* that died */
	uint64_t sum_ns, least_ns, most_ns;
	uint32_t by_us[32]; /* by log2 of microseconds + 1 */
	uint32_t by_s[20];  /* by log2 of seconds + 1 */
	uint64_t unused;
};
_Static_assert(sizeof(struct tm_ledger_lives) == 256, "layout");
_Static_assert(TM_LEDGER_LIVES_AT + sizeof(struct tm_ledger_lives) * TM_LEDGER_LIVES <=
		       TM_LEDGER_TABLES_BYTES,
	       "areas do not touch");

/* Device and pinned memory of one site. */
struct tm_ledger_gpu {
	uint64_t site : 48; /* 0: not used; written last */
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
 * What the library's pools took of a context's device and what of it is handed out, as of the last
 * sample. A context that is gone has a record of zeros.
 */
struct tm_ledger_gpu_pool {
	uint64_t context; /* 0: not used; written last */
	uint32_t device;
	uint32_t unused;
	uint64_t cache_idle_bytes; /* whole blocks, kept */
	uint64_t host_idle_bytes;  /* pinned ones */
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
	TM_LEDGER_GPU_IPC, /* opened handles of other processes, imported pool pointers */
};

enum tm_ledger_kind {
	TM_LEDGER_NOTHING,
	TM_LEDGER_SMALL,  /* a span with 3-byte entries */
	TM_LEDGER_MEDIUM, /* a span with 8-byte entries */
	TM_LEDGER_BLOCK,  /* whole pages */
};

/* TM_LEDGER_MEDIUM with slots up to here: an arena, whose objects take several slots in a row. */
#define TM_LEDGER_LINE_MAX 1024u

/* What begins in a granule. */
struct tm_ledger_granule {
	uint8_t kind;  /* enum tm_ledger_kind; written last when it begins, first when it ends */
	uint8_t tier;  /* 0: not told apart */
	uint16_t heap; /* whose rows the ids belong to */
	uint32_t slot_bytes;   /* spans; blocks: pages of 4 KiB */
	uint16_t slots, first; /* spans: ever handed out, from `first` on; blocks: first page */
	uint16_t id;           /* blocks: row * 16 */
	uint16_t epoch8;       /* blocks: of birth */
	uint64_t at;           /* spans: offset in the sides area; blocks: requested bytes */
};
_Static_assert(sizeof(struct tm_ledger_granule) == 24, "layout");

/*
 * A row: what one call site did in one heap. Its stack: tm_ledger_stack of the same site and height.
 * Row 0 of a heap: inherited over a fork, from before the account, or more sites than rows.
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
 * Side entries. Small slots: u16 row << 4 | requested & 15, u8 epoch8. Medium slots: id in bits
 * 0..15, epoch8 16..23, requested bytes 24..63. An id of TM_LEDGER_ID_FREE: the slot is free.
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
