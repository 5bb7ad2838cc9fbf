/* SPDX-License-Identifier: MIT */
/* json_none: replaces json_in in builds without a JSON reader. */
#include "tools/cmd.h"
#include "tools/document/document.h"

int tm_document_read_json(struct tm_document *doc, const char *path)
{
	(void)doc;
	tm_say("'%s' cannot be read: built without jansson, see ./configure --with-jansson", path);
	return -1;
}
