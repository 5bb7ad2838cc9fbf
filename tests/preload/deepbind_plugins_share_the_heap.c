/* SPDX-License-Identifier: MIT */
/*
 * H21, log 26 28: a plug-in opened with RTLD_DEEPBIND binds malloc and free to libc, while
 * libc's strdup, asprintf and getline use the preloaded malloc; its free then aborts in libc
 * (jemalloc, tcmalloc, mimalloc: "invalid pointer"). Right: everything it gets can be freed, in
 * the plug-in and in the host, 20 plug-ins at once as php-fpm has them.
 */
#include "claim.h"

#include <malloc.h>

struct plugin {
	char *(*malloc)(size_t);
	char *(*strdup)(const char *);
	char *(*asprintf)(int);
	char *(*getline)(void);
	void (*free)(void *);
	void *(*realloc)(void *, size_t);
};

static void *symbol(void *handle, const char *name)
{
	void *found = dlsym(handle, name);

	claim(found, "%s", name);
	return found;
}

static void copy_plugin(const char *to)
{
	char command[2 * PATH_MAX + 16];

	snprintf(command, sizeof(command), "cp %s %s", claim_beside("libdeep_plugin.so"), to);
	claim(system(command) == 0, "%s", command);
}

static void cross(const struct plugin *p)
{
	char *made[] = {p->strdup("by libc"), p->asprintf(5), p->getline(), p->malloc(3000),
			strdup("by host"),    malloc(77),     malloc(70000)};

	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		claim(made[i], "block %zu is NULL", i);
		char *grown = i % 2 ? p->realloc(made[i], 9000) : realloc(made[i], 9000);
		claim(grown, "realloc of block %zu", i);
		claim(malloc_usable_size(grown) >= 9000, "block %zu", i);
		p->free(grown);
	}
	p->free(p->strdup("a"));
	p->free(p->asprintf(1));
	p->free(p->getline());
	p->free(malloc(50));
	p->free(calloc(1, 200000));
	free(p->strdup("a"));
	free(p->getline());
	free(p->malloc(40));
}

int main(void)
{
	for (int i = 0; i < 20; i++) {
		char path[64];
		snprintf(path, sizeof(path), "./plugin%d.so", i);
		copy_plugin(path);
		void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL | (i % 4 == 3 ? 0 : RTLD_DEEPBIND));
		claim(h, "dlopen: %s", dlerror());
		unlink(path);
		if (!h)
			break;
		void *found[6] = {symbol(h, "plugin_malloc"),   symbol(h, "plugin_strdup"),
				  symbol(h, "plugin_asprintf"), symbol(h, "plugin_getline"),
				  symbol(h, "plugin_free"),     symbol(h, "plugin_realloc")};
		struct plugin p;
		memcpy(&p, found, sizeof(p));
		cross(&p);
	}
	return claim_end();
}
