/* SPDX-License-Identifier: MIT */
/* Random changes of a byte string, and the loop around what is tried on them. */
#ifndef TESTS_FUZZ_RUNNER_MUTATE_H
#define TESTS_FUZZ_RUNNER_MUTATE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t mutate_state = 1;

static uint32_t mutate_draw(uint32_t below)
{
	mutate_state = mutate_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(mutate_state >> 33) % below;
}

/* Changes `bytes` in place (there is room for `room`); returns the new length. */
static size_t mutate(uint8_t *bytes, size_t len, size_t room)
{
	static const uint64_t odd[] = {0,
				       1,
				       0x7f,
				       0xff,
				       0x7fffffff,
				       0x80000000u,
				       0xffffffffu,
				       0x4000000000000001u,
				       0x7fffffffffffffffu,
				       UINT64_MAX};

	for (uint32_t changes = 1 + mutate_draw(4); changes && len; changes--) {
		size_t at = mutate_draw((uint32_t)len), count = 1 + mutate_draw(16);
		uint64_t value = odd[mutate_draw(10)];

		count = count > len - at ? len - at : count;
		switch (mutate_draw(7)) {
		case 0: bytes[at] ^= (uint8_t)(1u << mutate_draw(8)); break;
		case 1: bytes[at] = (uint8_t)mutate_draw(256); break;
		case 2: /* an odd number of 1, 4 or 8 bytes */
			count = mutate_draw(3);
			count = count == 0 ? 1 : count == 1 ? 4 : 8;
			if (count <= len - at)
				memcpy(bytes + at, &value, count);
			break;
		case 3: /* leave some out */
			memmove(bytes + at, bytes + at + count, len - at - count);
			len -= count;
			break;
		case 4: /* repeat some */
			if (len + count <= room) {
				memmove(bytes + at + count, bytes + at, len - at);
				len += count;
			}
			break;
		case 5: /* copy some elsewhere */
			memmove(bytes + mutate_draw((uint32_t)(len - count + 1)), bytes + at,
				count);
			break;
		default: /* end early, rarely */
			if (mutate_draw(8) == 0)
				len = at;
		}
	}
	return len;
}

static size_t mutate_read(const char *path, uint8_t *bytes, size_t room)
{
	FILE *file = fopen(path, "rb");
	size_t len;

	if (!file)
		exit(2);
	len = fread(bytes, 1, room, file);
	fclose(file);
	return len;
}

static void mutate_write(const char *path, const uint8_t *bytes, size_t len)
{
	FILE *file = fopen(path, "wb");

	if (!file || fwrite(bytes, 1, len, file) != len || fclose(file))
		exit(2);
}

/* fuzz SECONDS SEED-FILE...: tries changed seeds until the time is over. */
static int mutate_main(int argc, char **argv, void (*try)(const uint8_t *bytes, size_t len))
{
	enum { ROOM = 1 << 18 };
	static uint8_t bytes[ROOM];
	time_t end = time(NULL) + atoi(argv[1]);
	unsigned long count = 0;

	for (int i = 2; i < argc; i++)
		try(bytes, mutate_read(argv[i], bytes, ROOM / 2));
	while (time(NULL) < end) {
		size_t len =
			mutate_read(argv[2 + mutate_draw((uint32_t)argc - 2)], bytes, ROOM / 2);

		mutate_state += count++;
		try(bytes, mutate(bytes, len, ROOM));
	}
	printf("%lu tries\n", count);
	return 0;
}

#endif
