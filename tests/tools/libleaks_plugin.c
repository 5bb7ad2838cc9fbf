/* SPDX-License-Identifier: MIT */
/* A library that is loaded, leaks and is unloaded, again and again (leaks_subject dlclosed). */
#include <stdlib.h>
#include <string.h>

void plugin_request(void);

void *volatile plugin_sink;

void plugin_request(void)
{
	plugin_sink = malloc(220); /* leaks: dlclosed */
	memset(plugin_sink, 1, 220);
	plugin_sink = NULL;
}
