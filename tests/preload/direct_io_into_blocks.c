/* SPDX-License-Identifier: MIT */
/*
 * H63: O_DIRECT reads into posix_memalign(4096), into posix_memalign(512) and, as a courtesy to
 * programs that never asked, into malloc of 128 KiB and more.
 * Failure: EINVAL for a misaligned buffer, or content that is not the file's.
 */
#include "probe.h"

int main(void)
{
	char path[] = "direct-XXXXXX";
	static unsigned char page[65536];
	int fd = mkstemp(path);
	void *buffer[4];

	probe_limit();
	probe_fill(page, sizeof(page), 63);
	probe_require(fd >= 0, "no file");
	for (int i = 0; i < 32; i++)
		probe_require(write(fd, page, sizeof(page)) == sizeof(page), "write");
	fsync(fd);
	close(fd);
	fd = open(path, O_RDONLY | O_DIRECT);
	unlink(path);
	if (fd < 0)
		probe_skip("this file system has no O_DIRECT");
	probe_require(posix_memalign(&buffer[0], 4096, MIB) == 0, "posix_memalign(4096)");
	probe_require(posix_memalign(&buffer[1], 512, MIB) == 0, "posix_memalign(512)");
	buffer[2] = malloc(MIB);
	buffer[3] = malloc(128 * KIB);
	for (int i = 0; i < 4; i++) {
		size_t bytes = i < 3 ? MIB : 128 * KIB;
		ssize_t n = pread(fd, buffer[i], bytes, 0);
		probe_require(n == (ssize_t)bytes, "buffer %d at %p: %s", i, buffer[i],
			      n < 0 ? strerror(errno) : "short");
		for (size_t at = 0; at < bytes; at += sizeof(page))
			probe_require(memcmp((char *)buffer[i] + at, page, sizeof(page)) == 0,
				      "buffer %d: not the file's content", i);
		free(buffer[i]);
	}
	return 0;
}
