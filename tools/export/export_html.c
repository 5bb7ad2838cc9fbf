/* SPDX-License-Identifier: MIT */
/*
 * export_html: writes one page with the report, its style and its script, which loads nothing from
 * the network. The policy in its head permits only what it names by hash, so that a name in the
 * report that looks like markup stays text.
 *
 * Pages are often passed on: the command line and the folders of sources and modules are left out
 * unless requested.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/buffer.h"
#include "tools/export/export.h"
#include "tools/export/sha256.h"
#include "tools/text/text_fit.h"

extern const char tm_page_style[], tm_page_style_end[], tm_page_script[], tm_page_script_end[];

static void put_base64(FILE *out, const unsigned char *bytes, size_t len)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < len; i += 3) {
		unsigned long group = (unsigned long)bytes[i] << 16;

		if (i + 1 < len)
			group |= (unsigned long)bytes[i + 1] << 8;
		if (i + 2 < len)
			group |= bytes[i + 2];
		putc(alphabet[group >> 18], out);
		putc(alphabet[group >> 12 & 63], out);
		putc(i + 1 < len ? alphabet[group >> 6 & 63] : '=', out);
		putc(i + 2 < len ? alphabet[group & 63] : '=', out);
	}
}

static void put_hash(FILE *out, const char *begin, const char *end)
{
	unsigned char hash[32];

	tm_sha256(begin, (size_t)(end - begin), hash);
	fputs("'sha256-", out);
	put_base64(out, hash, sizeof(hash));
	putc('\'', out);
}

static void put_escaped(FILE *out, const char *text)
{
	char *shown = tm_text_fit_copy(text, strlen(text));

	for (const char *c = shown ? shown : "?"; *c; c++) {
		if (*c == '<')
			fputs("&lt;", out);
		else if (*c == '&')
			fputs("&amp;", out);
		else
			putc(*c, out);
	}
	free(shown);
}

static const char *without_folder(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/*
 * Makes a copy that shares everything with `doc` except what must not be passed on, which is its
 * own.
 */
static void redact(const struct tm_document *doc, struct tm_document *ret_copy)
{
	struct tm_document *c = ret_copy;

	*c = *doc;
	c->chunks = NULL;
	memset(&c->process.cmdline, 0, sizeof(c->process.cmdline));
	c->process.ledger = without_folder(doc->process.ledger);
	c->diff.a = without_folder(doc->diff.a);
	c->diff.b = without_folder(doc->diff.b);
	c->frames.at = tm_document_alloc(c, doc->frames.count * sizeof(*c->frames.at));
	for (size_t i = 0; i < doc->frames.count; i++) {
		c->frames.at[i] = doc->frames.at[i];
		c->frames.at[i].file = without_folder(doc->frames.at[i].file);
	}
	c->modules.at = tm_document_alloc(c, doc->modules.count * sizeof(*c->modules.at));
	for (size_t i = 0; i < doc->modules.count; i++) {
		c->modules.at[i] = doc->modules.at[i];
		c->modules.at[i].path = without_folder(doc->modules.at[i].path);
	}
	c->mappings.at = tm_document_alloc(c, doc->mappings.count * sizeof(*c->mappings.at));
	for (size_t i = 0; i < doc->mappings.count; i++) {
		c->mappings.at[i] = doc->mappings.at[i];
		c->mappings.at[i].name = without_folder(doc->mappings.at[i].name);
	}
}

/* Within a script element only "<" can end it or start a comment: escape it. */
static void put_plain(FILE *out, const char *json, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (json[i] == '<')
			fputs("\\u003c", out);
		else
			putc(json[i], out);
	}
}

static bool put_report(const struct tm_document *doc, const struct tm_export_options *o, FILE *out)
{
	struct tm_buffer packed = {0};
	struct tm_document copy;
	char *json = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&json, &len);
	bool written = memory != NULL;

	if (!o->include_source)
		redact(doc, &copy);
	if (memory) {
		written = tm_document_write_json(o->include_source ? doc : &copy, memory);
		written = fclose(memory) == 0 && written;
	}
	if (!o->include_source)
		tm_document_clear(&copy);
	if (written && o->uncompressed) {
		fputs("<script type=\"application/json\" id=\"report\">\n", out);
		put_plain(out, json, len);
	} else if (written) {
		tm_buffer_add_gzip(&packed, json, len);
		written = !packed.failed;
		fputs("<script type=\"application/json\" id=\"report\" "
		      "data-encoding=\"gzip+base64\">\n",
		      out);
		put_base64(out, packed.at, packed.len);
	}
	fputs("\n</script>\n", out);
	tm_buffer_clear(&packed);
	free(json);
	return written;
}

bool tm_export_html(const struct tm_document *doc, const struct tm_export_options *o, FILE *out)
{
	const char *program = doc->process.program ? doc->process.program : "report";
	bool written;

	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src ",
	      out);
	put_hash(out, tm_page_script, tm_page_script_end);
	fputs("; style-src ", out);
	put_hash(out, tm_page_style, tm_page_style_end);
	fputs("; base-uri 'none'; form-action 'none'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n"
	      "<meta name=\"referrer\" content=\"no-referrer\">\n<title>",
	      out);
	put_escaped(out, program);
	fputs(" · tiermalloc</title>\n<style>", out);
	fwrite(tm_page_style, 1, (size_t)(tm_page_style_end - tm_page_style), out);
	fputs("</style>\n</head>\n<body>\n<noscript>This page draws its charts with a script that it "
	      "carries; please allow it. The same report in text: tiermalloc report.</noscript>\n",
	      out);
	written = put_report(doc, o, out);
	fputs("<script>", out);
	fwrite(tm_page_script, 1, (size_t)(tm_page_script_end - tm_page_script), out);
	fputs("</script>\n</body>\n</html>\n", out);
	return written && !ferror(out);
}
