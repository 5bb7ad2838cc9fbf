/* SPDX-License-Identifier: MIT */
#include "shim/os/buddy.h"

#include "shim/base/attrs.h"
#include "shim/os/proc.h"

/* One line per zone: "Node 0, zone   Normal", then free blocks of order 0, 1, 2... */
static const char *skip_words(const char *p, int words)
{
	while (words-- > 0) {
		while (*p == ' ')
			p++;
		while (*p != ' ' && *p != '\n' && *p != '\0')
			p++;
	}
	return p;
}

uint64_t tm_buddy_parse(const char *text)
{
	const unsigned huge_order = TM_UNIT_SHIFT - TM_PAGE_SHIFT;
	uint64_t bytes = 0;

	for (const char *p = text; *p != '\0'; p++) {
		unsigned order = 0;

		for (p = skip_words(p, 4); *p != '\n' && *p != '\0'; order++) {
			uint64_t n = 0;

			while (*p == ' ')
				p++;
			if (*p < '0' || *p > '9')
				break;
			for (; *p >= '0' && *p <= '9'; p++)
				n = n * 10 + (uint64_t)(*p - '0');
			if (order >= huge_order && order < 32)
				bytes += n << (order + TM_PAGE_SHIFT);
		}
		while (*p != '\n' && *p != '\0')
			p++;
		if (*p == '\0')
			break;
	}
	return bytes;
}

uint64_t tm_buddy_huge_bytes(void)
{
	char *text;
	long n = tm_proc_text("/proc/buddyinfo", &text);
	uint64_t bytes;

	if (n < 0)
		return UINT64_MAX;
	bytes = n > 0 ? tm_buddy_parse(text) : UINT64_MAX;
	tm_proc_text_free(text);
	return bytes;
}
