/* SPDX-License-Identifier: MIT */
/* cross: yes */
/*
 * H30, log 34: what libc's own functions allocate for the caller is freed, grown and measured by
 * the caller's free, realloc and malloc_usable_size. Failure: abort in free because the block
 * came from another allocator than free believes.
 */
#include "claim.h"

#include <dirent.h>
#include <glob.h>
#include <malloc.h>
#include <netdb.h>
#include <regex.h>
#include <sys/socket.h>
#include <wchar.h>

static void take_back(const char *name, void *p)
{
	claim(p, "%s gave NULL", name);
	if (!p)
		return;
	size_t usable = malloc_usable_size(p);
	claim(usable > 0, "%s: usable size 0", name);
	char first = *(char *)p;
	char *grown = realloc(p, usable + 4000);
	claim(grown && *grown == first, "%s: realloc lost the content", name);
	free(grown);
}

static void streams(void)
{
	char *text = NULL, *line = NULL;
	wchar_t *wide = NULL;
	size_t bytes = 0, room = 0;

	FILE *f = open_memstream(&text, &bytes);
	for (int i = 0; i < 2000; i++)
		fprintf(f, "line %d\n", i);
	fclose(f);
	claim(bytes > 10000, "open_memstream wrote %zu bytes", bytes);
	f = fmemopen(text, bytes, "r");
	claim(getline(&line, &room, f) == 7, "getline");
	take_back("getline", line);
	line = malloc(1);
	room = 1;
	claim(getdelim(&line, &room, '9', f) > 1, "getdelim grows our block");
	take_back("getdelim", line);
	fclose(f);
	take_back("open_memstream", text);
	f = open_wmemstream(&wide, &bytes);
	fputws(L"wide", f);
	fclose(f);
	take_back("open_wmemstream", wide);
	f = fopen("/proc/self/stat", "r");
	claim(fscanf(f, "%*d %ms", &text) == 1, "scanf %%ms");
	fclose(f);
	take_back("scanf", text);
}

static void files(void)
{
	struct dirent **names;
	int n = scandir("/proc/self", &names, NULL, alphasort);

	claim(n > 10, "scandir found %d", n);
	for (int i = 0; i < n; i++)
		free(names[i]);
	take_back("scandir", names);
	take_back("realpath", realpath("/proc/self/exe", NULL));
	take_back("canonicalize_file_name", canonicalize_file_name("/usr/lib/.."));
	take_back("getcwd", getcwd(NULL, 0));
	take_back("get_current_dir_name", get_current_dir_name());
	glob_t found;
	claim(glob("/etc/*", 0, NULL, &found) == 0, "glob");
	globfree(&found);
}

static void names(void)
{
	struct addrinfo *info = NULL,
			hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};

	claim(getaddrinfo("127.0.0.1", "80", &hints, &info) == 0, "getaddrinfo");
	freeaddrinfo(info);
	regex_t regex;
	regmatch_t match[2];
	claim(regcomp(&regex, "^([a-z]+)[0-9]{2,5}$", REG_EXTENDED) == 0, "regcomp");
	claim(regexec(&regex, "abc123", 2, match, 0) == 0, "regexec");
	regfree(&regex);
}

int main(void)
{
	char *text = NULL;

	take_back("strdup", strdup("a string"));
	take_back("strndup", strndup("a string", 3));
	take_back("wcsdup", wcsdup(L"wide"));
	claim(asprintf(&text, "%0*d", 5000, 7) == 5000, "asprintf");
	take_back("asprintf", text);
	streams();
	files();
	names();
	setenv("TM_TEST", "1", 1);
	unsetenv("TM_TEST");
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	puts("done");
	return claim_end();
}
