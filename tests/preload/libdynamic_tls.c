/* SPDX-License-Identifier: MIT */
/* Thread-local memory of the general model: the first touch in each thread allocates. */
static __thread char here[3000] = {1};

char *tls_touch(void);

char *tls_touch(void)
{
	here[2999]++;
	return here;
}
