/* memory of threads that hold one block each: RSS and VmSize. usage: threads N SIZE */
#include "mb.h"
#include <pthread.h>
static pthread_barrier_t all, end;
static size_t size;
static void *hold(void *a)
{
	char *p = malloc(size);
	memset(p, 1, size);
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&end);
	free(p);
	return a;
}
int main(int c, char **v)
{
	int n = atoi(v[1]);
	char line[256];
	pthread_t t;
	pthread_attr_t small;
	size = c > 2 ? atol(v[2]) : 100;
	pthread_barrier_init(&all, 0, n + 1);
	pthread_barrier_init(&end, 0, n + 1);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int i = 0; i < n; i++)
		if (pthread_create(&t, &small, hold, 0))
			return 1;
	pthread_barrier_wait(&all);
	FILE *f = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "VmSize:", 7) || !strncmp(line, "VmRSS:", 6))
			printf("%s=%ld ", line[2] == 'S' ? "size_kib" : "rss_kib", atol(strchr(line, ':') + 1));
	puts("");
	fflush(stdout);
	_exit(0);
}
