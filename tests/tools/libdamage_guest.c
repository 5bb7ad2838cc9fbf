/* SPDX-License-Identifier: MIT */
/* What damaged_tables_are_survived.py damages: functions that allocate at many depths. */
/* build: -O2 -fomit-frame-pointer */
#include <stdlib.h>
#include <string.h>

void *entry(int depth);

static __attribute__((noinline)) void *leaf(int n)
{
	char text[64];

	memset(text, n, sizeof(text));
	return malloc((size_t)n + (size_t)text[3] % 7 + 1);
}

static __attribute__((noinline)) void *middle(int n)
{
	volatile char text[300];

	text[n % 300] = 1;
	void *p = n <= 0 ? leaf(n & 15) : middle(n - 1);
	text[1] = text[0];
	return p;
}

void *entry(int depth)
{
	void *volatile p = middle(depth);

	return p;
}
