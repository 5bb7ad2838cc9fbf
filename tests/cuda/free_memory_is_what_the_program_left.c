/* SPDX-License-Identifier: MIT */
/*
 * cuMemGetInfo moves with the program's own calls, whatever a pool keeps: an allocation takes its
 * size, a free gives it back (vllm#56830 asserts on that). Sizes are whole pages of the device.
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_CAPACITY=1G */
#include "tests/cuda/modes.h"

static size_t available(void)
{
	size_t bytes = 0, total = 0;
	ok(cuMemGetInfo_v2(&bytes, &total));
	claim(total == 1024 * MIB, "%zu MiB in total", total / MIB);
	return bytes;
}

static void body(const char *mode)
{
	static const size_t sizes[] = {2, 20, 4, 64, 2, 20, 100};
	CUdeviceptr p[7];
	size_t i, round, start, before;
	claim_context();
	start = available();
	claim(start == 1024 * MIB);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 7; i++) {
			before = available();
			ok(cuMemAlloc_v2(&p[i], sizes[i] * MIB));
			claim(before - available() == sizes[i] * MIB, "%s: %zu MiB took %zd KiB",
			      mode, sizes[i], (ssize_t)(before - available()) / 1024);
		}
		for (i = 0; i < 7; i++) {
			before = available();
			ok(cuMemFree_v2(p[(i * 3) % 7]));
			claim(available() - before == sizes[(i * 3) % 7] * MIB,
			      "%s: %zu MiB gave %zd KiB", mode, sizes[(i * 3) % 7],
			      (ssize_t)(available() - before) / 1024);
		}
		claim(available() == start, "%s: round %zu: %zu MiB", mode, round,
		      available() / MIB);
	}
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
