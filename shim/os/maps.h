/* SPDX-License-Identifier: MIT */
/*
 * maps: reads the process's mappings from /proc/self/maps and smaps. No allocation, no errno, keeps
 * no descriptor open. Needs 5 KiB of stack: not for the small stacks of signal handlers. If the
 * files are not available (chroot, seccomp filter) every function fails with -errno and leaves
 * results untouched.
 */
#ifndef TM_OS_MAPS_H
#define TM_OS_MAPS_H

#include "shim/base/attrs.h"
#include "shim/base/fmt.h"
#include "shim/base/parse.h"

struct tm_maps_range {
	uintptr_t start;
	uintptr_t end; /* exclusive */
	bool readable;
};

/*
 * The mapping that contains an address; -ENOENT: none. Costs about 1 us per 10 mappings below it.
 */
int tm_maps_find(uintptr_t address, struct tm_maps_range *ret_range);

/*
 * For the file mapped at an address: the range of its consecutive mappings, from that of file
 * offset 0 to the last, and its path, truncated to size. -ENOENT: no file is mapped there, or its
 * offset 0 is not mapped.
 */
int tm_maps_object(uintptr_t address, struct tm_maps_range *ret_range, char *path, size_t size);

/*
 * Calls `see` for each executable mapping of a file whose base name starts with `name`. 0 or
 * -errno.
 */
int tm_maps_code(const char *name, void (*see)(uintptr_t start, void *arg), void *arg);

struct tm_maps_line {
	uintptr_t start, end;
	bool readable, writable, shared;
	bool special; /* a device, or a mapping of the kernel's such as [vdso] */
};

/* Calls `see` for each mapping of the process. 0 or -errno. */
int tm_maps_each(void (*see)(const struct tm_maps_line *line, void *arg), void *arg);
/* The same for another process's maps file, or with a work buffer of the caller's. */
#define TM_MAPS_ROOM_BYTES ((size_t)8 << 10)
struct tm_maps_source {
	const char *path; /* of the maps file */
	char *room;       /* TM_MAPS_ROOM_BYTES of work space; NULL: pages are mapped for it */
};
int tm_maps_each_of(const struct tm_maps_source *source,
		    void (*see)(const struct tm_maps_line *line, void *arg), void *arg);

/*
 * A read-only data file mapping: not writable, not executable, no library, not locked, no device.
 */
struct tm_maps_file {
	uintptr_t start, end;
	uint64_t resident_bytes;
	struct tm_str path; /* valid during the call; of a long path only the end */
};

/*
 * Calls `see` for each such mapping of at least least_bytes. The kernel walks all pages for it. 0
 * or -errno.
 */
int tm_maps_files(uint64_t least_bytes, void (*see)(const struct tm_maps_file *file, void *arg),
		  void *arg);

struct tm_maps_resident {
	uint64_t resident_bytes;
	uint64_t huge_bytes; /* of resident_bytes: in huge pages */
};

/* Result of tm_maps_write_sheet. */
struct tm_maps_sheet {
	size_t bytes;            /* length of the text */
	bool cut;                /* some mappings did not fit */
	uint64_t resident_bytes; /* of all mappings, whether in the text or not */
	struct tm_maps_resident within;
	/* In: may add lines about a private anonymous mapping outside [start, end); NULL: none. */
	void (*tell)(struct tm_fmt_out *out, const struct tm_maps_range *range);
};

/*
 * Writes the mappings with resident pages, and stack guards, as text for struct tm_ledger_sheet.
 * ret->within: the sums for the mappings in [start, end), whether they fit or not. The kernel walks
 * all pages for it.
 */
int tm_maps_write_sheet(char *text, size_t room, uintptr_t start, uintptr_t end,
			struct tm_maps_sheet *ret);

/* Sums over all mappings within [start, end). The kernel walks all pages for it. */
int tm_maps_resident(uintptr_t start, uintptr_t end, struct tm_maps_resident *ret);

#endif
