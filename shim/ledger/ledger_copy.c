/* SPDX-License-Identifier: MIT */
#include "shim/ledger/ledger_copy.h"

#include <errno.h>

#include "shim/base/bits.h"
#include "shim/ledger/ledger_areas.h"
#include "shim/os/mem.h"

struct piece {
	char *at;
	size_t offset; /* of its copy */
	size_t bytes;
};

/* [fork lock] The list of pieces, and what they hold. */
static struct {
	struct piece *piece;
	char *content;
	size_t room, pieces, list_bytes;
	size_t bytes, used;
} copy;

static void measure(void *at, size_t bytes, void *arg)
{
	(void)at;
	(void)arg;
	copy.room++;
	copy.bytes += bytes;
}

/* A page of the file that is not there, and cannot be had, would end the process if it was read. */
static bool is_readable(void *at, size_t bytes)
{
	int rc = tm_mem_populate_read(at, bytes);

	return rc == 0 || rc == -EINVAL; /* before Linux 5.14 */
}

/* There may be more by now than was measured: that is left out. */
static void collect(void *at, size_t bytes, void *arg)
{
	(void)arg;
	if (copy.pieces == copy.room || bytes > copy.bytes - copy.used || !is_readable(at, bytes))
		return;
	copy.piece[copy.pieces++] = (struct piece){at, copy.used, bytes};
	__builtin_memcpy(copy.content + copy.used, at, bytes);
	copy.used += bytes;
}

bool tm_ledger_copy_take(void)
{
	copy.room = copy.pieces = copy.bytes = copy.used = 0;
	tm_ledger_each_piece(measure, NULL);
	copy.list_bytes = tm_bits_align_up(copy.room * sizeof(struct piece), TM_PAGE_BYTES);
	copy.piece = tm_mem_map(copy.list_bytes + copy.bytes);
	if (copy.piece == NULL)
		return false;
	copy.content = (char *)copy.piece + copy.list_bytes;
	tm_ledger_each_piece(collect, NULL);
	return true;
}

void tm_ledger_copy_drop(void)
{
	if (copy.piece == NULL)
		return;
	tm_mem_unmap_raw(copy.piece, copy.list_bytes + copy.bytes);
	copy.piece = NULL;
}

void tm_ledger_copy_enter(void)
{
	for (size_t i = 0; i < copy.pieces; i++)
		__builtin_memcpy(copy.piece[i].at, copy.content + copy.piece[i].offset,
				 copy.piece[i].bytes);
	tm_ledger_copy_drop();
}
