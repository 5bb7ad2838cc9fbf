/* SPDX-License-Identifier: MIT */
/* json_none: stands in for json_in where the command is built without a reader of JSON. */
#include "tools/cmd.h"
#include "tools/document.h"

int tm_document_read_json(struct tm_document *doc, const char *path)
{
	(void)doc;
	tm_say("'%s' cannot be read: built without jansson, see ./configure --with-jansson", path);
	return -1;
}
