/* SPDX-License-Identifier: MIT */
/* A library with initial-exec thread-local memory, which the loader must find in its reserve. */
static __thread char here[TLS_BYTES] __attribute__((tls_model("initial-exec")));

char *tls_here(void);

char *tls_here(void)
{
	here[sizeof(here) - 1] = 1;
	return here;
}
