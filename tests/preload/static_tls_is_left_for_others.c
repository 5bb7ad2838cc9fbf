/* SPDX-License-Identifier: MIT */
/*
 * H11, log 50: a process can load about 1.7 KB of initial-exec thread-local memory late; what a
 * preload takes of it is missing for others ("cannot allocate memory in static TLS block").
 * Right: what loads without us loads with us, from a second thread too. Failure: dlopen refuses.
 */
#include "claim.h"

#include <pthread.h>

static void *load(void *data)
{
	const char *const *name = data;
	void *h = dlopen(*name, RTLD_NOW);
	char *(*here)(void);

	if (!h)
		return (void *)-1;
	void *found = dlsym(h, "tls_here");
	memcpy(&here, &found, sizeof(found));
	for (int i = 0; i < 1000; i++)
		free(malloc((size_t)i * 7));
	return here()[0] ? (void *)-1 : NULL;
}

int main(int argc, char **argv)
{
	static const char *sets[][3] = {{"libtls_1664.so"}, {"libtls_1024.so", "libtls_512.so"}};
	static struct claim_output out;

	for (int set = 0; set < 2; set++)
		for (int threaded = 0; threaded < 2; threaded++) {
			char part[8];
			snprintf(part, sizeof(part), "%d%d", set, threaded);
			if (argc == 1) {
				int plain = claim_again("", part, &out);
				int status = claim_again(claim_preload(), part, &out);
				claim(plain == 0, "%s does not load in a plain process",
				      sets[set][0]);
				claim(status == plain, "%s: %d without us, %d with us: %.200s",
				      sets[set][0], plain, status, out.text);
				continue;
			}
			if (strcmp(argv[1], part) != 0)
				continue;
			for (int i = 0; sets[set][i]; i++) {
				void *result;
				pthread_t thread;
				if (threaded) {
					pthread_create(&thread, NULL, load, &sets[set][i]);
					pthread_join(thread, &result);
				} else {
					result = load(&sets[set][i]);
				}
				claim(!result, "%s", dlerror());
			}
		}
	return claim_end();
}
