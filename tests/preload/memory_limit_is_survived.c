/* SPDX-License-Identifier: MIT */
/*
 * H36, log 13 14 15: under RLIMIT_AS blocks are taken until there are none, for many sizes, four
 * threads at once: NULL with ENOMEM, no abort, all content intact, and after a free there is
 * memory again, to the last byte as before. Failure: a crash on the rarely run path, a block that
 * overlaps, or memory that never comes back.
 */
#include "claim.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

static size_t fill_up(size_t size, unsigned char ***ret_list)
{
	/* the list is made of the blocks themselves */
	unsigned char **last = NULL;
	size_t count = 0;

	for (;; count++) {
		errno = 0;
		unsigned char **p = malloc(size);
		if (!p)
			break;
		memset(p, (int)(count % 251), size < 4096 ? size : 4096);
		((unsigned char *)p)[size - 1] = (unsigned char)(count % 251);
		*p = (unsigned char *)last;
		last = p;
	}
	claim(errno == ENOMEM, "errno %d", errno);
	*ret_list = last;
	return count;
}

static void give_back(unsigned char **last, size_t size, size_t count)
{
	while (last) {
		unsigned char **before = (unsigned char **)(void *)*last;
		count--;
		claim(((unsigned char *)last)[size - 1] == count % 251, "a block of %zu changed",
		      size);
		free(last);
		last = before;
	}
	claim(count == 0, "%zu blocks lost", count);
}

static void ramp(void)
{
	static const size_t sizes[] = {4 << 20, 100,      65536,   3000, 300000,
				       24,      40 << 20, 1 << 20, 9000};
	size_t first[9] = {0};

	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < 9; i++) {
			unsigned char **list;
			size_t count = fill_up(sizes[i], &list);
			give_back(list, sizes[i], count);
			if (round == 0)
				first[i] = count;
			claim(count * sizes[i] > (size_t)40 << 20, "only %zu of %zu", count,
			      sizes[i]);
			claim(round == 0 || count >= first[i] - first[i] / 3,
			      "size %zu: %zu blocks at first, %zu later", sizes[i], first[i],
			      count);
			/* and the same while large and aligned requests fail beside it */
			errno = 0;
			claim(!memalign(4096, (size_t)1 << 30) && errno == ENOMEM,
			      "1 GiB, errno %d", errno);
		}
}

static void *grab(void *salt)
{
	static __thread unsigned char *block[20000];
	unsigned seed = (unsigned)(uintptr_t)salt;
	size_t failed = 0;

	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 20000; i++) {
			size_t size = (i * seed * 2654435761u >> 12) % 9000 + 16;
			block[i] = i % 4 ? malloc(size) : calloc(1, size);
			if (block[i])
				block[i][0] = block[i][size - 1] = (unsigned char)(i * seed);
			else
				failed++;
		}
		for (unsigned i = 0; i < 20000; i++) {
			if (block[i])
				claim(block[i][0] == (unsigned char)(i * seed), "block changed");
			free(block[i]);
		}
	}
	return (void *)failed;
}

static void threads(void)
{
	pthread_t thread[4];
	int started = 0;
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536 + 200000);
	for (uintptr_t i = 0; i < 4; i++)
		started += pthread_create(&thread[started], &attr, grab, (void *)(i * 2 + 3)) == 0;
	claim(started > 0, "no thread could be started");
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
}

/* log 15: the limit hardly above what is there, one size in and out */
static void tight(void)
{
	struct rlimit limit = {(rlim_t)(claim_status_kib("VmSize:") + (16 << 10)) << 10,
			       RLIM_INFINITY};

	setrlimit(RLIMIT_AS, &limit);
	for (int i = 0; i < 10000; i++) {
		char *p = malloc(4 << 20);
		claim(p, "round %d", i);
		if (p)
			p[0] = p[(4 << 20) - 1] = 1;
		free(p);
	}
}

int main(int argc, char **argv)
{
	static struct claim_output out;
	static const struct {
		const char *part;
		long mib;
		void (*run)(void);
	} parts[] = {{"ramp", 200, ramp}, {"threads", 160, threads}, {"tight", 0, tight}};

	for (int i = 0; i < 3; i++) {
		if (argc == 1) {
			int status = claim_again(claim_preload(), parts[i].part, &out);
			claim(status == 0, "%s: %d, %.600s", parts[i].part, status, out.text);
		} else if (strcmp(argv[1], parts[i].part) == 0) {
			rlim_t bytes = (rlim_t)(claim_status_kib("VmSize:") + (parts[i].mib << 10))
				       << 10;
			if (parts[i].mib)
				setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
			parts[i].run();
		}
	}
	return claim_end();
}
