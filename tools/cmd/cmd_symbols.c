/* SPDX-License-Identifier: MIT */
/*
 * cmd_symbols: tells for each file that a ledger names whether its functions can be resolved, and
 * why not.
 */
#include <string.h>

#include "tools/cmd.h"
#include "tools/cmd/select.h"

static void print_module(struct tm_text *t, struct tm_symbols *symbols,
			 const struct tm_ledger_module *m, uint64_t *missing)
{
	char path[sizeof(m->path) + 1], id[2 * sizeof(m->build_id) + 1] = "no build-id";
	size_t bytes = m->build_id_bytes <= sizeof(m->build_id) ? m->build_id_bytes : 0;
	const struct tm_symbols_module want = {path, m->build_id, bytes};

	snprintf(path, sizeof(path), "%.*s", (int)strnlen(m->path, sizeof(m->path)), m->path);
	for (size_t i = 0; i < bytes; i++)
		snprintf(id + 2 * i, 3, "%02x", m->build_id[i]);
	const char *state = tm_symbols_state(symbols, &want);
	bool good = strcmp(state, "debug") == 0 || strcmp(state, "symtab") == 0;
	*missing += !good;
	tm_text_line(t, good ? TM_TEXT_PLAIN : TM_TEXT_UNSURE, "%-18s %-40s %s%s", state, id, path,
		     m->unloaded_ms ? "  (unloaded)" : "");
}

int tm_cmd_symbols(int argc, char **argv)
{
	struct tm_select s;
	struct tm_ledger ledger;
	struct tm_text t;
	char path[PATH_MAX];
	uint64_t missing = 0;
	int status;

	tm_select_init(&s, TM_DOC_FULL);
	status = tm_select_parse(&s, argc, argv);
	if (status == 0)
		status = tm_select_ledger(s.target, path, sizeof(path));
	if (status)
		return status;
	if (tm_ledger_open(&ledger, path) != 0)
		return TM_EXIT_USAGE;
	struct tm_symbols *symbols = tm_symbols_new(s.analysis.debug_dir);
	const struct tm_ledger_module *m = tm_ledger_at(&ledger, TM_LEDGER_MODULES_AT);
	tm_text_init(&t, stdout);
	for (uint32_t i = 0; symbols && i < ledger.header.modules; i++) {
		if (m[i].end > m[i].begin && m[i].path[0])
			print_module(&t, symbols, &m[i], &missing);
	}
	if (missing)
		tm_text_line(
			&t, TM_TEXT_DIM,
			"%llu files have no names of functions: install their debug files, or name their folder with --debug-dir",
			(unsigned long long)missing);
	tm_symbols_free(symbols);
	tm_ledger_close(&ledger);
	return TM_EXIT_CLEAN;
}
