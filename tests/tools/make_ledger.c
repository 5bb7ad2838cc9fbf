/* SPDX-License-Identifier: MIT */
/*
 * Writes a ledger as a process with many call sites would leave it: make_ledger FILE SITES. For what
 * reads ledgers: reports of many sites, fuzzing. Growth of the first site is planted.
 */
/* run: none */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/ledger_format.h"

enum { ROWS_PER_HEAP = 4000, OBJECTS_PER_SITE = 8, SLOT = 64, SLOTS = 1024, WINDOWS = 100 };

static unsigned char *file;

static void write_module(void)
{
	struct tm_ledger_module *m = (void *)(file + TM_LEDGER_MODULES_AT);

	m->base = 0x555500000000;
	m->begin = m->base;
	m->end = m->base + (64 << 20);
	m->loaded_ms = 1000;
	m->load_epoch = 1;
	m->build_id_bytes = 20;
	memset(m->build_id, 0xab, 20);
	m->path_bytes = (uint32_t)snprintf(m->path, sizeof(m->path), "/nowhere/many-sites");
}

static uint64_t address_of(unsigned site)
{
	return 0x555500001000 + site * UINT64_C(48);
}

static void write_site(struct tm_ledger_header *h, unsigned site)
{
	struct tm_ledger_row *row =
		(void *)(file + TM_LEDGER_ROWS_AT + site / ROWS_PER_HEAP * TM_LEDGER_ROWS_STRIDE);
	struct tm_ledger_stack *stack = (void *)(file + TM_LEDGER_STACKS_AT);
	uint64_t *frames = (void *)(file + TM_LEDGER_FRAMES_AT);

	row += site % ROWS_PER_HEAP + 1;
	row->site = address_of(site);
	row->height = site % 100 + 1;
	row->key = site + 1;
	row->objects = OBJECTS_PER_SITE * 3;
	row->bytes = OBJECTS_PER_SITE * 3 * 50;
	if (h->stacks == TM_LEDGER_STACKS || h->frames + 8 > TM_LEDGER_FRAMES)
		return;
	stack += h->stacks++;
	stack->frames_at = h->frames;
	stack->frames = 8;
	stack->height = row->height & 0xffff;
	stack->epoch = 1;
	stack->samples = 1;
	frames[h->frames++] = address_of(site);
	for (unsigned i = 1; i < 8; i++)
		frames[h->frames++] = address_of(site / (1u << i)) + (16 << 20);
	stack->site = address_of(site);
}

static void write_objects(struct tm_ledger_header *h, unsigned sites)
{
	struct tm_ledger_granule *g = (void *)(file + TM_LEDGER_GRANULES_AT);
	unsigned char *side = file + TM_LEDGER_SIDES_AT;
	unsigned per_span = SLOTS / OBJECTS_PER_SITE;

	for (unsigned first = 0; first < sites; first += per_span, g++, h->granules++) {
		unsigned heap = first / ROWS_PER_HEAP;

		g->tier = (uint8_t)(first / per_span % 4);
		g->heap = (uint16_t)heap;
		g->slot_bytes = SLOT;
		g->slots = SLOTS;
		g->at = (uint64_t)(side - (file + TM_LEDGER_SIDES_AT));
		g->kind = TM_LEDGER_SMALL;
		memset(side, 0xff, SLOTS * 3);
		for (unsigned n = 0; n < SLOTS / 2; n++) {
			unsigned site = first + n / OBJECTS_PER_SITE * 2;

			if (site >= sites || site / ROWS_PER_HEAP != heap)
				continue;
			unsigned id = (site % ROWS_PER_HEAP + 1) << 4 | 50 % 16;
			side[n * 3] = (unsigned char)id;
			side[n * 3 + 1] = (unsigned char)(id >> 8);
			side[n * 3 + 2] = (unsigned char)(n % 90 + 1);
		}
		side += SLOTS * 3;
	}
}

static void write_growth(struct tm_ledger_header *h, unsigned sites)
{
	struct tm_ledger_cohorts *c = (void *)(file + TM_LEDGER_COHORTS_AT);
	struct tm_ledger_window *w = (void *)(file + TM_LEDGER_WINDOWS_AT);
	unsigned many = sites < TM_LEDGER_COHORT_SITES ? sites : TM_LEDGER_COHORT_SITES;

	for (unsigned e = 1; e <= WINDOWS; e++) {
		w[(e - 1) % TM_LEDGER_WINDOWS].begun_ms = 1000 + e * 60000;
		w[(e - 1) % TM_LEDGER_WINDOWS].seq = e;
	}
	for (unsigned n = 0; n < many; n++, c++) {
		c->site = address_of(n);
		c->height = n % 100 + 1;
		c->first_epoch = 1;
		c->last_epoch = WINDOWS;
		c->live_objects = 1000;
		c->live_bytes = 500000;
		c->objects = 0;
		for (unsigned age = 0; age < TM_LEDGER_COHORTS; age++)
			c->cohort[age] = n == 0 ? 10 : age < 3;
		if (n == 0)
			c->cohort[TM_LEDGER_COHORTS - 1] = 10 * (WINDOWS - TM_LEDGER_COHORTS + 1);
		for (unsigned e = 1; e <= WINDOWS; e++) {
			c->ring[e].births = 100 + e * 7919u % 13;
			c->objects += c->ring[e].births;
			c->ring[e].old = n == 0 && e > 8 ? e * 10 : e * 31u % 5;
		}
		h->cohort_sites++;
	}
}

int main(int argc, char **argv)
{
	unsigned sites = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	int fd = argc > 2 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;

	if (fd < 0 || sites == 0 || ftruncate(fd, (off_t)TM_LEDGER_BYTES) != 0)
		return 2;
	file = mmap(NULL, TM_LEDGER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		    0);
	if (file == MAP_FAILED)
		return 77;
	struct tm_ledger_header *h = (void *)file;
	h->version = TM_LEDGER_VERSION;
	h->pid = 4194303;
	h->zone_base = 0x7f0000000000;
	h->begun_unix_s = 1700000000;
	h->begun_unix_ns = h->begun_unix_s * 1000000000;
	h->begun_ms = 1000;
	h->heartbeat_ms = 1000 + WINDOWS * 60000;
	h->heaps = (sites + ROWS_PER_HEAP - 1) / ROWS_PER_HEAP;
	h->features = TM_LEDGER_HAS_STACKS | TM_LEDGER_HAS_EPOCHS | TM_LEDGER_HAS_TIERS;
	h->epoch = WINDOWS + 1;
	h->windows = WINDOWS;
	h->window_ms = 60000;
	h->old_windows = 8;
	h->page_bytes = 4096;
	snprintf(h->program, sizeof(h->program), "many-sites");
	h->modules = 1;
	write_module();
	for (unsigned site = 0; site < sites; site++)
		write_site(h, site);
	write_objects(h, sites);
	write_growth(h, sites);
	h->magic = TM_LEDGER_MAGIC;
	return 0;
}
