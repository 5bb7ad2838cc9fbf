/* SPDX-License-Identifier: MIT */
/* cross: yes */
/*
 * H44, log 43 44: mallinfo2 shows 1 GiB when it is allocated and loses it when it is freed, small
 * blocks count too, the int fields of mallinfo saturate instead of wrapping to negative values,
 * malloc_info writes glibc's XML, malloc_stats writes to stderr; and libc's own heap stays asleep.
 * Failure: zeros (vespa, manticore), or a [heap] mapping that only libc's mallinfo made.
 */
#include "claim.h"

#include <malloc.h>

/* mallinfo() is deprecated for the very reason that is tested here. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static bool has_heap_mapping(void)
{
	static char maps[1 << 20];
	size_t length = 0;
	ssize_t got;
	int fd = open("/proc/self/maps", O_RDONLY);

	while ((got = read(fd, maps + length, sizeof(maps) - 1 - length)) > 0)
		length += (size_t)got;
	close(fd);
	maps[length] = '\0';
	return strstr(maps, "[heap]");
}

static size_t in_use(struct mallinfo2 m)
{
	return m.uordblks + m.hblkhd;
}

int main(void)
{
	enum { SMALL = 100000 };
	static void *small[SMALL];
	const size_t big_bytes = (size_t)1 << 30;
	struct mallinfo2 at_start = mallinfo2();

	void *big = malloc(big_bytes);
	struct mallinfo2 with_big = mallinfo2();
	claim(in_use(with_big) - in_use(at_start) >= big_bytes &&
		      in_use(with_big) - in_use(at_start) < big_bytes + (8 << 20),
	      "1 GiB changed mallinfo2 by %zu", in_use(with_big) - in_use(at_start));
	void *more[3] = {malloc(big_bytes), malloc(big_bytes), malloc(big_bytes)};
	struct mallinfo old = mallinfo();
	claim(old.arena >= 0 && old.uordblks >= 0 && old.fordblks >= 0 && old.hblkhd >= 0,
	      "negative with 4 GiB: arena %d, uordblks %d, hblkhd %d", old.arena, old.uordblks,
	      old.hblkhd);
	for (int i = 0; i < 3; i++)
		free(more[i]);
	free(big);
	struct mallinfo2 without = mallinfo2();
	claim(in_use(without) < in_use(at_start) + (8 << 20), "%zu at first, %zu after the free",
	      in_use(at_start), in_use(without));
	for (int i = 0; i < SMALL; i++)
		small[i] = malloc(100);
	struct mallinfo2 with_small = mallinfo2();
	claim(with_small.uordblks - without.uordblks >= SMALL * 100,
	      "10 MB of small blocks show as %zu", with_small.uordblks - without.uordblks);
	claim(with_small.arena + with_small.hblkhd >= with_small.uordblks,
	      "arena %zu below uordblks %zu", with_small.arena, with_small.uordblks);

	char *xml = NULL;
	size_t bytes;
	FILE *f = open_memstream(&xml, &bytes);
	claim(malloc_info(0, f) == 0, "malloc_info");
	errno = 0;
	claim(malloc_info(1, f) == EINVAL || errno == EINVAL, "malloc_info with options");
	fclose(f);
	claim(strncmp(xml, "<malloc version=\"1\">", 20) == 0 && strstr(xml, "</malloc>"),
	      "XML: %.200s", xml);
	claim(strstr(xml, "<heap nr=\"0\">") && strstr(xml, "</heap>"), "no heap: %.200s", xml);
	claim(strstr(xml, "<total type=\"") && strstr(xml, "<system type=\"current\" size=\""),
	      "no totals: %.300s", xml);
	free(xml);
	int null = open("/dev/null", O_WRONLY), err = dup(2);
	dup2(null, 2);
	malloc_stats();
	dup2(err, 2);
	for (int i = 0; i < SMALL; i++)
		free(small[i]);
	claim(!claim_ours() || !has_heap_mapping(), "libc's own heap was awakened");
	return claim_end();
}
