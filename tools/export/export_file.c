/* SPDX-License-Identifier: MIT */
#include "tools/export/export_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/ledger_format.h"
#include "tools/cmd.h"

static int cannot_write(const char *path)
{
	tm_say("cannot write '%s': %s", path, errno ? strerror(errno) : "out of memory");
	return TM_EXIT_TROUBLE;
}

/* Creates a temporary file beside the destination, so that both are on one file system. */
static FILE *open_beside(const char *path, char **ret_temporary)
{
	char *name;
	int fd;

	if (asprintf(&name, "%s.XXXXXX", path) < 0)
		return NULL;
	fd = mkostemp(name, O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (file == NULL) {
		int error = errno;

		if (fd >= 0) {
			close(fd);
			unlink(name);
		}
		free(name);
		errno = error;
		return NULL;
	}
	/* mkostemp creates with mode 0600: apply the user's umask, as for any other file */
	mode_t mask = umask(0);
	umask(mask);
	(void)fchmod(fd, 0666 & ~mask);
	*ret_temporary = name;
	return file;
}

/* A device or a pipe is written to, not replaced. */
static bool is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static int write_in_place(const struct tm_document *doc, const struct tm_exporter *exporter,
			  const struct tm_export_options *options, const char *path)
{
	FILE *file = fopen(path, "we");
	bool written = file && exporter->write(doc, options, file);

	if (file && (fclose(file) != 0 || !written))
		written = false;
	return written ? TM_EXIT_CLEAN : cannot_write(path);
}

static bool is_ledger(const char *path)
{
	uint64_t magic = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is = fd >= 0 && read(fd, &magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
		  magic == TM_LEDGER_MAGIC;

	if (fd >= 0)
		close(fd);
	return is;
}

/* Whether the folder of a file to be created exists. */
static bool has_folder(const char *path)
{
	const char *end = strrchr(path, '/');
	char *folder = end == path ? strdup("/")
		       : end       ? strndup(path, (size_t)(end - path))
				   : strdup(".");
	bool has = folder && access(folder, W_OK | X_OK) == 0;
	int error = errno;

	free(folder);
	errno = error;
	return has;
}

int tm_export_check(const char *verb, const char *path, const char *input)
{
	struct stat st, in;

	if (strcmp(path, "-") == 0)
		return TM_EXIT_CLEAN;
	if (path[0] == '-')
		return tm_say_usage("%s: '%s' is taken for a file to write, if it is one: './%s'",
				    verb, path, path);
	errno = 0;
	if (stat(path, &st) != 0)
		return errno == ENOENT && has_folder(path) ? TM_EXIT_CLEAN : cannot_write(path);
	if (S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return cannot_write(path);
	}
	if (S_ISREG(st.st_mode) && is_ledger(path))
		return tm_say_usage(
			"%s: '%s' is a ledger, it would be overwritten: choose another file", verb,
			path);
	if (S_ISREG(st.st_mode) && input && stat(input, &in) == 0 && in.st_dev == st.st_dev &&
	    in.st_ino == st.st_ino)
		return tm_say_usage(
			"%s: '%s' is what is read, it would be overwritten: choose another file",
			verb, path);
	return access(path, W_OK) == 0 ? TM_EXIT_CLEAN : cannot_write(path);
}

int tm_export_to(const struct tm_document *doc, const char *format,
		 const struct tm_export_options *options, const char *path)
{
	const struct tm_exporter *exporter = tm_export_find(format);
	char *temporary = NULL;
	bool written;

	errno = 0;
	if (exporter == NULL)
		return tm_say_usage("unknown format '%s', choose from %s", format,
				    tm_export_names());
	if (strcmp(path, "-") == 0)
		return exporter->write(doc, options, stdout) ? TM_EXIT_CLEAN
							     : cannot_write("standard output");
	if (is_special(path))
		return write_in_place(doc, exporter, options, path);
	FILE *file = open_beside(path, &temporary);
	if (file == NULL)
		return cannot_write(path);
	written = exporter->write(doc, options, file);
	if (fclose(file) != 0)
		written = false;
	if (written && rename(temporary, path) != 0)
		written = false;
	if (!written) {
		int error = errno;

		unlink(temporary);
		errno = error;
	}
	free(temporary);
	return written ? TM_EXIT_CLEAN : cannot_write(path);
}
