/* SPDX-License-Identifier: MIT */
/* A plug-in that allocates by its own calls and by libc's, and frees what it is given. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *plugin_malloc(size_t size);
char *plugin_strdup(const char *text);
char *plugin_asprintf(int number);
char *plugin_getline(void);
void plugin_free(void *p);
void *plugin_realloc(void *p, size_t size);

char *plugin_malloc(size_t size)
{
	return malloc(size);
}

char *plugin_strdup(const char *text)
{
	return strdup(text);
}

char *plugin_asprintf(int number)
{
	char *text = NULL;

	return asprintf(&text, "number %0300d", number) < 0 ? NULL : text;
}

char *plugin_getline(void)
{
	char *line = NULL;
	size_t room = 0;
	FILE *f = fopen("/proc/self/status", "r");

	if (!f)
		return NULL;
	if (getline(&line, &room, f) < 0)
		line = NULL;
	fclose(f);
	return line;
}

void plugin_free(void *p)
{
	free(p);
}

void *plugin_realloc(void *p, size_t size)
{
	return realloc(p, size);
}
