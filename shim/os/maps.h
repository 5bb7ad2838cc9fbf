/* SPDX-License-Identifier: MIT */
/*
 * maps: what the kernel says about addresses of this process, from /proc/self/maps and smaps. No
 * allocation, no errno, 5 KiB of stack, no descriptor is kept; off signal handlers' small stacks.
 * Without the files (chroot, filter) every function fails with -errno and touches no result.
 */
#ifndef TM_OS_MAPS_H
#define TM_OS_MAPS_H

#include "shim/base/attrs.h"
#include "shim/base/fmt.h"
#include "shim/base/parse.h"

struct tm_maps_range {
	uintptr_t start;
	uintptr_t end; /* first address behind it */
	bool readable;
};

/* The mapping that holds an address; -ENOENT: none does. Costs about 1 us per 10 mappings below it. */
int tm_maps_find(uintptr_t address, struct tm_maps_range *ret_range);

/*
 * The mappings of the file that is mapped at an address: from the one of its beginning to its last,
 * where they follow each other, and its path, cut. -ENOENT: no file is mapped there, or not its
 * beginning.
 */
int tm_maps_object(uintptr_t address, struct tm_maps_range *ret_range, char *path, size_t size);

/* Each mapping with code of a file whose name, without its folder, begins so. 0 or -errno. */
int tm_maps_code(const char *name, void (*see)(uintptr_t start, void *arg), void *arg);

struct tm_maps_line {
	uintptr_t start, end;
	bool readable, writable, shared;
	bool special; /* of a device, or the kernel's */
};

/* Each mapping of the process. 0 or -errno. */
int tm_maps_each(void (*see)(const struct tm_maps_line *line, void *arg), void *arg);
/* Of another one, or without a mapping being made. */
#define TM_MAPS_ROOM_BYTES ((size_t)8 << 10)
struct tm_maps_source {
	const char *path; /* of the text */
	char *room;       /* TM_MAPS_ROOM_BYTES, or NULL: they are mapped */
};
int tm_maps_each_of(const struct tm_maps_source *source,
		    void (*see)(const struct tm_maps_line *line, void *arg), void *arg);

/* A mapping of a file that is only read: not written, not run, no library, not locked, no device. */
struct tm_maps_file {
	uintptr_t start, end;
	uint64_t resident_bytes;
	struct tm_str path; /* valid during the call, its end where it is long */
};

/* Each of them of at least so many bytes. Costs the kernel a walk over all pages. 0 or -errno. */
int tm_maps_files(uint64_t least_bytes, void (*see)(const struct tm_maps_file *file, void *arg),
		  void *arg);

struct tm_maps_resident {
	uint64_t resident_bytes;
	uint64_t huge_bytes; /* of these, in huge pages */
};

/* What a text of mappings is about. */
struct tm_maps_sheet {
	size_t bytes;            /* of the text */
	bool cut;                /* it had no room for all */
	uint64_t resident_bytes; /* of all, in the text or not */
	struct tm_maps_resident within;
	/* Set by the caller, or NULL: may add lines about a private, nameless one outside [start, end). */
	void (*tell)(struct tm_fmt_out *out, const struct tm_maps_range *range);
};

/*
 * Mappings with something resident, and guards of stacks, as struct tm_ledger_sheet has them. `within`
 * sums up those of [start, end), whether they fit or not. Costs the kernel a walk over all pages.
 */
int tm_maps_write_sheet(char *text, size_t room, uintptr_t start, uintptr_t end,
			struct tm_maps_sheet *ret);

/* Of all mappings that lie within [start, end). Costs the kernel a walk over all pages. */
int tm_maps_resident(uintptr_t start, uintptr_t end, struct tm_maps_resident *ret);

#endif
