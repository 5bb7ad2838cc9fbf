/* SPDX-License-Identifier: MIT */
#include "tools/document_load.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"
#include "tools/ledger.h"

/* A report begins with a brace; a ledger cannot, its first word is a magic number. */
static bool is_json(const char *path)
{
	FILE *file;
	int c;

	if (strcmp(path, "-") == 0)
		return true;
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	do
		c = getc(file);
	while (c == ' ' || c == '\n' || c == '\t' || c == '\r');
	fclose(file);
	return c == '{';
}

/* "start-end perms offset dev inode path" for each mapping of a file. */
static void add_modules(struct tm_document *doc, const struct tm_ledger *l)
{
	const char *text = (const char *)l->map + TM_LEDGER_MODULES_AT;
	const char *end = text + l->header.module_bytes;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		char line[512];
		unsigned long long from, to, offset;
		int path_at = 0;

		if (stop == NULL)
			stop = end;
		snprintf(line, sizeof(line), "%.*s", (int)(stop - text), text);
		if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %n", &from, &to, &offset, &path_at) >=
			    3 &&
		    path_at > 0 && line[path_at] == '/') {
			struct tm_doc_module *m = tm_document_add(doc, TM_DOC_MODULES);

			m->path = tm_document_text(doc, line + path_at);
			m->base = from;
			m->end = to;
			m->offset = offset;
		}
		text = stop + 1;
	}
}

static uint32_t module_of(const struct tm_document *doc, uint64_t address)
{
	for (size_t i = 0; i < doc->modules.count; i++) {
		if (address >= doc->modules.at[i].base && address < doc->modules.at[i].end)
			return (uint32_t)i;
	}
	return TM_DOC_NOWHERE;
}

static void add_site(struct tm_document *doc, const struct tm_ledger_site *from)
{
	struct tm_doc_site *site = tm_document_add(doc, TM_DOC_SITES);

	site->id = tm_document_format(doc, "s:%" PRIx64 ".%" PRIx32, from->address, from->height);
	site->height = from->height * UINT64_C(16);
	site->alloc_objs = from->objects;
	site->alloc_bytes = from->bytes;
	site->live_objs = from->live_objects;
	site->live_bytes = from->live_bytes;
	site->slot_bytes = from->slot_bytes;
	site->free_objs =
		from->objects > from->live_objects ? from->objects - from->live_objects : 0;
	site->free_bytes = from->bytes > from->live_bytes ? from->bytes - from->live_bytes : 0;
	site->est_rel_err = 0;
	if (from->address == 0)
		return;
	struct tm_doc_frame *frame = tm_document_add(doc, TM_DOC_FRAMES);
	frame->addr = from->address;
	frame->module = module_of(doc, from->address);
	frame->sym = TM_DOC_SYM_NONE;
	struct tm_doc_stack *stack = tm_document_add(doc, TM_DOC_STACKS);
	tm_document_push_number(doc, &stack->frames, frame->id);
	stack->truncated = true;
	site->stack = (uint32_t)stack->id;
}

static int load_ledger(struct tm_document *doc, const char *path)
{
	struct tm_ledger ledger;

	if (tm_ledger_open(&ledger, path) != 0)
		return -1;
	doc->kind = TM_DOC_FULL;
	doc->process.pid = ledger.header.pid;
	doc->process.program = tm_document_text(doc, ledger.header.program);
	doc->process.ledger = tm_document_text(doc, path);
	doc->process.start_unix_ns = ledger.header.begun_unix_s * UINT64_C(1000000000);
	doc->capture.t0_unix_ns = doc->process.start_unix_ns;
	doc->capture.counts = TM_DOC_EXACT;
	doc->capture.seqlock_torn = ledger.torn;
	const char *ended = tm_ledger_ended(&ledger);
	doc->process.ended = *ended == 'r'   ? TM_DOC_RUNNING
			     : *ended == 'c' ? TM_DOC_CLEAN
					     : TM_DOC_KILLED;
	add_modules(doc, &ledger);
	for (size_t i = 0; i < ledger.site_count; i++)
		add_site(doc, &ledger.sites[i]);
	tm_ledger_close(&ledger);
	return 0;
}

int tm_document_load(struct tm_document *doc, const char *what)
{
	return is_json(what) ? tm_document_read_json(doc, what) : load_ledger(doc, what);
}
