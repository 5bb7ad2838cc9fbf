/* SPDX-License-Identifier: MIT */
/* cmd_report: what a ledger holds, by call site. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/fmt.h"
#include "tools/cmd.h"
#include <stdio.h>

#include "tools/ledger.h"

#define TOP_DEFAULT 20u

static void print_head(const struct tm_ledger *l)
{
	const struct tm_ledger_site *t = &l->total;
	char live[16], slots[16], ever[16];

	tm_fmt_bytes(live, sizeof(live), t->live_bytes);
	tm_fmt_bytes(slots, sizeof(slots), t->slot_bytes);
	tm_fmt_bytes(ever, sizeof(ever), t->bytes);
	printf("tiermalloc report  %s pid %u  %s\n", l->header.program, l->header.pid,
	       tm_ledger_ended(l));
	printf("live %" PRIu64 " objects, %" PRIu64 " bytes requested (%s, in slots %s), exact\n",
	       t->live_objects, t->live_bytes, live, slots);
	printf("allocated %" PRIu64 " objects, %s, by %zu sites\n", t->objects, ever,
	       l->site_count);
}

static void print_sites(const struct tm_ledger *l, size_t top)
{
	if (top > l->site_count)
		top = l->site_count;
	printf("\n%16s %12s %12s %12s  %s\n", "live bytes", "objects", "allocated", "freed",
	       "called from (stack height)");
	for (size_t i = 0; i < top; i++) {
		const struct tm_ledger_site *s = &l->sites[i];
		char name[128];

		tm_ledger_name(l, s->address, name, sizeof(name));
		printf("%16" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "  %s", s->live_bytes,
		       s->live_objects, s->objects,
		       s->objects > s->live_objects ? s->objects - s->live_objects : 0, name);
		if (s->height != 0)
			printf(" (%u)", s->height * 16 - 16);
		putchar('\n');
	}
	if (top < l->site_count)
		printf("%16s and %zu sites with less, see --top\n", "", l->site_count - top);
}

static void print_blind_spots(const struct tm_ledger *l)
{
	printf("\nblind spots  damaged records: %" PRIu64 "; side memory outside the file: %" PRIu64
	       " bytes; children of fork are not counted\n",
	       l->torn, l->header.private_bytes);
}

int tm_cmd_report(int argc, char **argv)
{
	const char *path = NULL;
	size_t top = TOP_DEFAULT;
	struct tm_ledger ledger;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--top") == 0) {
			char *end;

			if (++i == argc)
				return tm_say_usage("'--top' needs a number");
			errno = 0;
			top = strtoul(argv[i], &end, 10);
			if (*argv[i] < '0' || *argv[i] > '9' || *end != '\0' || errno != 0)
				return tm_say_usage("'--top %s' is no number", argv[i]);
		} else if (argv[i][0] == '-') {
			return tm_say_usage("the option '%s' of report is not in this release",
					    argv[i]);
		} else if (path != NULL) {
			return tm_say_usage("more than one ledger: '%s'", argv[i]);
		} else {
			path = argv[i];
		}
	}
	if (path == NULL)
		return tm_say_usage("report needs a ledger, see tiermalloc(1)");
	if (tm_ledger_open(&ledger, path) != 0)
		return TM_EXIT_USAGE;
	print_head(&ledger);
	print_sites(&ledger, top);
	print_blind_spots(&ledger);
	tm_ledger_close(&ledger);
	return TM_EXIT_CLEAN;
}
