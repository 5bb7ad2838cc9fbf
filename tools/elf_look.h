/* SPDX-License-Identifier: MIT */
/*
 * elf_look: reads properties of a program or library file. Understands 64-bit little-endian ELF;
 * for other files it only reports their kind. Every offset is checked, since files may be broken or
 * hostile.
 */
#ifndef TM_TOOLS_ELF_LOOK_H
#define TM_TOOLS_ELF_LOOK_H

#include "shim/base/attrs.h"

enum tm_elf_kind {
	TM_ELF_NONE,  /* not ELF: text, script, data */
	TM_ELF_OTHER, /* ELF of another class or byte order */
	TM_ELF_64,
};

#define TM_ELF_NEEDED_MAX 64

struct tm_elf {
	const unsigned char *data; /* the file, mapped */
	size_t bytes;
	enum tm_elf_kind kind;
	unsigned int machine;    /* EM_* */
	unsigned int type;       /* ET_* */
	bool is_dynamic;         /* has a dynamic section */
	const char *interpreter; /* PT_INTERP, or NULL */
	const char *needed[TM_ELF_NEEDED_MAX];
	size_t needed_count;
	/* [private] symbol tables, as offsets that were checked */
	struct tm_elf_table {
		size_t symbols;
		size_t count;
		size_t strings;
		size_t string_bytes;
	} dynamic, full;
};

/* Returns 0 or -errno. Release with tm_elf_look_close, also after TM_ELF_NONE. */
int tm_elf_look_open(struct tm_elf *ret_elf, const char *path);
void tm_elf_look_close(struct tm_elf *elf);

/* Whether the dynamic symbol table defines, or imports, a name. */
bool tm_elf_look_defines(const struct tm_elf *elf, const char *name);
bool tm_elf_look_imports(const struct tm_elf *elf, const char *name);

/* Whether any symbol table defines a name, in static programs as well. */
bool tm_elf_look_contains(const struct tm_elf *elf, const char *name);

/* The needed library whose file name begins with "prefix", or NULL. */
const char *tm_elf_look_needs(const struct tm_elf *elf, const char *prefix);

/* Copies at most `size` bytes of the build id and returns its length; 0: there is none. */
size_t tm_elf_look_build_id(const struct tm_elf *elf, uint8_t *id, size_t size);

/* Whether a section of that name exists, e.g. ".note.go.buildid". */
bool tm_elf_look_section(const struct tm_elf *elf, const char *name);

#endif
