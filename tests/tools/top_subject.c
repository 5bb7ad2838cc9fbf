/* SPDX-License-Identifier: MIT */
/* The program of top_fits_its_terminal.py: many call sites whose names are long and differ at their ends. */
/* run: none */
/* build: -O1 -g */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SITE(n)                                                                                    \
	__attribute__((noinline)) static void                                                      \
		*a_function_whose_name_is_rather_long_and_begins_as_others_##n(size_t size)        \
	{                                                                                          \
		void *p = malloc(size);                                                            \
                                                                                                   \
		if (p)                                                                             \
			memset(p, 1, size);                                                        \
		return p;                                                                          \
	}
#define SITES(X)                                                                                   \
	X(alpha)                                                                                   \
	X(beta)                                                                                    \
	X(gamma)                                                                                   \
	X(delta)                                                                                   \
	X(epsilon)                                                                                 \
	X(zeta)                                                                                    \
	X(eta)                                                                                     \
	X(theta)                                                                                   \
	X(iota)                                                                                    \
	X(kappa)                                                                                   \
	X(lambda)                                                                                  \
	X(mu)                                                                                      \
	X(nu) X(xi) X(omicron) X(pi) X(rho) X(sigma) X(tau) X(upsilon) X(phi) X(chi) X(psi) X(omega)
SITES(SITE)

#define CALL(n) a_function_whose_name_is_rather_long_and_begins_as_others_##n,
static void *(*const sites[])(size_t) = {SITES(CALL)};

static void *volatile kept[sizeof(sites) / sizeof(sites[0])][4];

int main(void)
{
	size_t count = sizeof(sites) / sizeof(sites[0]);

	/* Those that are looked for hold most. */
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < 4; k++)
			kept[i][k] = sites[i]((i == 0 || i + 1 == count ? 1u << 20 : 300000u) + i);
	}
	if (write(1, "ready\n", 6) != 6)
		return 1;
	for (;;) {
		void *volatile p = malloc(1u << 20);

		free(p);
		usleep(20000);
	}
}
