/* SPDX-License-Identifier: MIT */
#include "tools/ledger/mappings.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim/base/pymalloc.h"

#define PAGE ((uint64_t)4096)

/* --- text ------------------------------------------------------------------------------------- */

static bool starts_mapping(const char *line, struct tm_mapping *ret)
{
	struct tm_mapping v = {0};
	int path_at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &v.begin, &v.end,
		   v.perms, &v.offset, &path_at) < 4 ||
	    path_at == 0)
		return false;
	snprintf(v.path, sizeof(v.path), "%s", line + path_at);
	v.path[strcspn(v.path, "\n")] = '\0';
	*ret = v;
	return true;
}

static void add_field(struct tm_mapping *v, const char *line)
{
	struct tm_mapping_own own;
	uint64_t kib, other;

	if (sscanf(line, "Rss: %" SCNu64, &kib) == 1)
		v->rss = kib << 10;
	else if (sscanf(line, "AnonHugePages: %" SCNu64, &kib) == 1)
		v->huge = kib << 10;
	else if (sscanf(line, "Swap: %" SCNu64, &kib) == 1)
		v->swap = kib << 10;
	else if (sscanf(line, "Pymalloc: %" SCNu64 " kB %" SCNu64, &kib, &other) == 2) {
		v->pools_rss = kib << 10;
		v->pools = other << 10;
	} else if (sscanf(line, "Own: %" SCNx64 "-%" SCNx64 " %" SCNu64, &own.begin, &own.end,
			  &kib) == 3) {
		own.rss = kib << 10;
		if (v->owns < TM_MAPPING_OWNS && own.begin < own.end)
			v->own[v->owns++] = own;
	} else if (strncmp(line, "VmFlags:", 8) == 0) {
		v->no_reserve = strstr(line, " nr") != NULL;
		v->io = strstr(line, " io") != NULL || strstr(line, " pf") != NULL;
	}
}

bool tm_mappings_read(FILE *f, void (*see)(struct tm_mapping *m, void *arg), void *arg)
{
	char line[1024];
	struct tm_mapping m, next;
	bool some = false;

	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (starts_mapping(line, &next)) {
			if (some)
				see(&m, arg);
			m = next;
			some = true;
		} else if (some) {
			add_field(&m, line);
		}
	}
	if (some)
		see(&m, arg);
	fclose(f);
	return some;
}

/* --- a process -------------------------------------------------------------------------------- */

uint64_t tm_mappings_resident(int pagemap, uint64_t begin, uint64_t end)
{
	uint64_t entry[512], page = begin / PAGE, sum = 0;

	while (page < end / PAGE) {
		size_t want = end / PAGE - page < 512 ? (size_t)(end / PAGE - page) : 512;
		ssize_t got = pread(pagemap, entry, want * 8, (off_t)(page * 8));

		if (got < 8)
			break;
		for (size_t i = 0; i < (size_t)got / 8; i++)
			sum += (entry[i] >> 63) * PAGE;
		page += (uint64_t)got / 8;
	}
	return sum;
}

struct process {
	pid_t pid;
	int pagemap;
	bool closed; /* the memory may not be read */
};

static bool look(uint64_t at, size_t pages, uint8_t *ret_resident, void *arg)
{
	struct process *p = arg;
	uint64_t entry[TM_PYMALLOC_PAGES];
	ssize_t got = pread(p->pagemap, entry, pages * 8, (off_t)(at / PAGE * 8));

	if (got != (ssize_t)(pages * 8))
		return false;
	for (size_t i = 0; i < pages; i++)
		ret_resident[i] = (uint8_t)(entry[i] >> 63);
	return true;
}

static void read_headers(const uint64_t *at, size_t count, struct tm_pymalloc_header *ret,
			 void *arg)
{
	struct process *p = arg;

	for (size_t i = 0, n; i < count; i += n) {
		struct iovec there[64], here;

		n = count - i < 64 ? count - i : 64;
		for (size_t k = 0; k < n; k++)
			there[k] = (struct iovec){(void *)(uintptr_t)at[i + k], sizeof(*ret)};
		here = (struct iovec){ret + i, n * sizeof(*ret)};
		ssize_t got = process_vm_readv(p->pid, &here, 1, there, n, 0);
		size_t whole = got <= 0 ? 0 : (size_t)got / sizeof(*ret);

		p->closed |= got < 0 && (errno == EPERM || errno == ENOSYS);
		if (whole < n) {
			memset(ret + i + whole, 0, sizeof(*ret));
			n = whole + 1;
		}
	}
}

bool tm_mappings_look_for_pools(struct tm_mapping *m, pid_t pid, int pagemap)
{
	static struct tm_pymalloc_room room;
	struct process p = {pid, pagemap, false};
	struct tm_pymalloc_source source = {look, read_headers, &p, &room};
	struct tm_pymalloc_sum sum = {0, 0};

	tm_pymalloc_look(&source, m->begin, m->end, &sum);
	m->pools_rss = sum.resident_bytes;
	m->pools = sum.pools_bytes;
	return !p.closed;
}
