/* SPDX-License-Identifier: MIT */
#include "tools/export_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cmd.h"

static int cannot_write(const char *path)
{
	tm_say("cannot write '%s': %s", path, errno ? strerror(errno) : "out of memory");
	return TM_EXIT_TROUBLE;
}

/* A new file beside the one wanted, so that both lie on one file system. */
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
	/* mkostemp gives 0600; the user's mask decides, as for any other file */
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
