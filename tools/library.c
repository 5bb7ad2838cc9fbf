/* SPDX-License-Identifier: MIT */
/* library: see library.h. */
#include "tools/library.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/elf_look.h"

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#define MULTIARCH "aarch64-linux-gnu"
#else
#error "library: unknown architecture"
#endif

static int own_folder(char *buf, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", buf, size - 1);
	char *slash;

	if (len < 0)
		return -errno;
	buf[len] = '\0';
	slash = strrchr(buf, '/');
	if (slash == NULL)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

int tm_library_find(char *buf, size_t size)
{
	/* installed; Debian's multiarch; the build tree */
	static const char *const places[] = {
		"/../lib/" TM_LIBRARY_NAME,
		"/../lib64/" TM_LIBRARY_NAME,
		"/../lib/" MULTIARCH "/" TM_LIBRARY_NAME,
		"/" TM_LIBRARY_NAME,
	};
	char folder[PATH_MAX], path[PATH_MAX + 64], real[PATH_MAX];
	int err = own_folder(folder, sizeof(folder));

	if (err)
		return err;
	for (size_t i = 0; i < TM_ARRAY_LEN(places); i++) {
		snprintf(path, sizeof(path), "%s%s", folder, places[i]);
		if (access(path, R_OK) != 0 || realpath(path, real) == NULL)
			continue;
		if (strlen(real) >= size)
			return -ENAMETOOLONG;
		strcpy(buf, real);
		return 0;
	}
	return -ENOENT;
}

const char *tm_library_obstacle(const char *path)
{
	struct tm_elf elf;
	const char *why = NULL;

	if (strpbrk(path, " :\t\n"))
		return "LD_PRELOAD cannot hold a path with blanks or colons, install it elsewhere";
	if (strchr(path, '$'))
		return "the loader takes '$' in its path for a variable, install it elsewhere";
	if (tm_elf_look_open(&elf, path) != 0)
		return "it cannot be read";
	if (elf.kind == TM_ELF_NONE)
		why = "it is no library";
	else if (elf.kind != TM_ELF_64 || elf.machine != OUR_MACHINE)
		why = "it is for another machine";
	else if (elf.type != ET_DYN || !elf.is_dynamic)
		why = "it is no shared library";
	else if (!tm_elf_look_defines(&elf, "malloc"))
		why = "it defines no malloc";
	tm_elf_look_close(&elf);
	return why;
}

static bool is_ours(const char *entry, size_t len)
{
	const size_t name = sizeof(TM_LIBRARY_NAME) - 1;

	return len >= name && memcmp(entry + len - name, TM_LIBRARY_NAME, name) == 0 &&
	       (len == name || entry[len - name - 1] == '/');
}

char *tm_library_preload(const char *path, const char *old)
{
	size_t room = strlen(path) + (old ? strlen(old) : 0) + 2;
	char *all = malloc(room);
	size_t len;

	if (all == NULL)
		return NULL;
	strcpy(all, path);
	len = strlen(all);
	while (old && *old) {
		/* The loader accepts blanks as separators as well as colons. */
		size_t entry = strcspn(old, " :");

		if (entry && !is_ours(old, entry)) {
			all[len++] = ':';
			memcpy(all + len, old, entry);
			len += entry;
		}
		old += entry;
		old += *old != '\0';
	}
	all[len] = '\0';
	return all;
}

const char *tm_library_rival(const char *path)
{
	static const char *const names[] = {
		"libjemalloc",  "libtcmalloc",  "libmimalloc",
		"libtbbmalloc", "libsnmalloc",  "librpmalloc",
		"libhoard",     "libscudo",     "libhardened_malloc",
		"libmesh",      "libDieHarder", "libasan",
		"libtsan",      "libmsan",      "liblsan",
	};
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	for (size_t i = 0; i < TM_ARRAY_LEN(names); i++) {
		if (strncmp(base, names[i], strlen(names[i])) == 0)
			return names[i];
	}
	return NULL;
}
