/* SPDX-License-Identifier: MIT */
/* cmd_ack: acknowledges a site: it is not reported until it holds more than a cap. */
#include <stdio.h>
#include <string.h>

#include "shim/base/parse.h"
#include "tools/analysis/acknowledged.h"
#include "tools/cmd.h"

static bool is_site(const char *id)
{
	size_t len = strlen(id);

	return strncmp(id, "s:", 2) == 0 && len > 2 && len < 36 &&
	       strspn(id + 2, "0123456789abcdef.") == len - 2;
}

static int list_all(void)
{
	struct tm_acknowledged a;

	tm_acknowledged_read(&a);
	for (size_t i = 0; i < a.count; i++)
		printf("%s --cap %llu\n", a.site[i].id, (unsigned long long)a.site[i].cap_bytes);
	tm_acknowledged_free(&a);
	return TM_EXIT_CLEAN;
}

int tm_cmd_ack(int argc, char **argv)
{
	const char *site = NULL, *cap = NULL;
	uint64_t bytes;

	if (argc == 1)
		return list_all();
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--cap") == 0 && i + 1 < argc)
			cap = argv[++i];
		else if (strncmp(argv[i], "--cap=", 6) == 0)
			cap = argv[i] + 6;
		else if (argv[i][0] == '-' || site)
			return strcmp(argv[i], "--cap") == 0 ? tm_say_no_value("ack", argv[i])
							     : tm_say_unknown("ack", argv[i]);
		else
			site = argv[i];
	}
	if (site == NULL || !is_site(site))
		return tm_say_usage("ack: '%s' is no site, they look like s:7f3a",
				    site ? site : "");
	if (cap == NULL || tm_parse_size(tm_str_of(cap), &bytes) != 0)
		return tm_say_usage("ack: bad size '%s' of --cap, use a size such as 64M",
				    cap ? cap : "");
	return tm_acknowledged_set(site, bytes) == 0 ? TM_EXIT_CLEAN : TM_EXIT_TROUBLE;
}
