/* SPDX-License-Identifier: MIT */
/* elf_look: see elf_look.h. */
#include "tools/elf_look.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Address of "count" items of "each" bytes at "offset"; NULL if they do not lie within the file. */
static const void *at(const struct tm_elf *elf, uint64_t offset, uint64_t count, size_t each)
{
	if (offset > elf->bytes || offset % 8 != 0 || count > (elf->bytes - offset) / each)
		return NULL;
	return elf->data + offset;
}

static const Elf64_Ehdr *head(const struct tm_elf *elf)
{
	return (const void *)elf->data;
}

static const Elf64_Phdr *segments(const struct tm_elf *elf, size_t *ret_count)
{
	*ret_count = head(elf)->e_phnum;
	if (head(elf)->e_phentsize != sizeof(Elf64_Phdr))
		return NULL;
	return at(elf, head(elf)->e_phoff, *ret_count, sizeof(Elf64_Phdr));
}

static const Elf64_Shdr *sections(const struct tm_elf *elf, size_t *ret_count)
{
	*ret_count = head(elf)->e_shnum;
	if (head(elf)->e_shoff == 0 || head(elf)->e_shentsize != sizeof(Elf64_Shdr))
		return NULL;
	return at(elf, head(elf)->e_shoff, *ret_count, sizeof(Elf64_Shdr));
}

/* A NUL-terminated string within [start, start + bytes), or NULL. */
static const char *string_at(const struct tm_elf *elf, size_t start, size_t bytes, uint64_t offset)
{
	const char *text;

	if (start > elf->bytes || bytes > elf->bytes - start || offset >= bytes)
		return NULL;
	text = (const char *)elf->data + start + offset;
	return memchr(text, '\0', bytes - offset) ? text : NULL;
}

static void read_tables(struct tm_elf *elf)
{
	size_t count;
	const Elf64_Shdr *section = sections(elf, &count);

	for (size_t i = 0; section && i < count; i++) {
		const Elf64_Shdr *s = &section[i];
		struct tm_elf_table *table;

		if ((s->sh_type != SHT_SYMTAB && s->sh_type != SHT_DYNSYM) || s->sh_link >= count ||
		    s->sh_entsize != sizeof(Elf64_Sym) ||
		    at(elf, s->sh_offset, s->sh_size / sizeof(Elf64_Sym), sizeof(Elf64_Sym)) ==
			    NULL)
			continue;
		table = s->sh_type == SHT_DYNSYM ? &elf->dynamic : &elf->full;
		table->symbols = s->sh_offset;
		table->count = s->sh_size / sizeof(Elf64_Sym);
		table->strings = section[s->sh_link].sh_offset;
		table->string_bytes = section[s->sh_link].sh_size;
	}
}

static void read_dynamic(struct tm_elf *elf, const Elf64_Phdr *part)
{
	size_t count = part->p_filesz / sizeof(Elf64_Dyn);
	const Elf64_Dyn *dyn = at(elf, part->p_offset, count, sizeof(Elf64_Dyn));

	elf->is_dynamic = true;
	for (size_t i = 0; dyn && i < count && dyn[i].d_tag != DT_NULL; i++) {
		const char *name;

		if (dyn[i].d_tag != DT_NEEDED || elf->needed_count == TM_ELF_NEEDED_MAX)
			continue;
		name = string_at(elf, elf->dynamic.strings, elf->dynamic.string_bytes,
				 dyn[i].d_un.d_val);
		if (name)
			elf->needed[elf->needed_count++] = name;
	}
}

static void read_elf(struct tm_elf *elf)
{
	size_t count;
	const Elf64_Phdr *part;

	elf->machine = head(elf)->e_machine;
	elf->type = head(elf)->e_type;
	read_tables(elf);
	part = segments(elf, &count);
	for (size_t i = 0; part && i < count; i++) {
		if (part[i].p_type == PT_DYNAMIC)
			read_dynamic(elf, &part[i]);
		if (part[i].p_type == PT_INTERP)
			elf->interpreter = string_at(elf, part[i].p_offset, part[i].p_filesz, 0);
	}
}

int tm_elf_look_open(struct tm_elf *ret_elf, const char *path)
{
	struct stat st;
	void *data;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = 0;

	*ret_elf = (struct tm_elf){.kind = TM_ELF_NONE};
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0)
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EACCES;
	if (err == 0 && st.st_size > 0) {
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data == MAP_FAILED)
			err = -errno;
		else
			*ret_elf = (struct tm_elf){.data = data, .bytes = (size_t)st.st_size};
	}
	close(fd);
	if (err || ret_elf->bytes < sizeof(Elf64_Ehdr) ||
	    memcmp(ret_elf->data, ELFMAG, SELFMAG) != 0)
		return err;
	ret_elf->kind = TM_ELF_OTHER;
	if (ret_elf->data[EI_CLASS] == ELFCLASS64 && ret_elf->data[EI_DATA] == ELFDATA2LSB) {
		ret_elf->kind = TM_ELF_64;
		read_elf(ret_elf);
	}
	return 0;
}

void tm_elf_look_close(struct tm_elf *elf)
{
	/* munmap takes no const pointer */
	void *data = (void *)(uintptr_t)elf->data;

	if (data)
		munmap(data, elf->bytes);
	*elf = (struct tm_elf){.kind = TM_ELF_NONE};
}

static bool find(const struct tm_elf *elf, const struct tm_elf_table *table, const char *name,
		 bool defined)
{
	const Elf64_Sym *symbol = (const void *)(elf->data + table->symbols);

	for (size_t i = 0; i < table->count; i++) {
		const char *text;

		if ((symbol[i].st_shndx != SHN_UNDEF) != defined)
			continue;
		text = string_at(elf, table->strings, table->string_bytes, symbol[i].st_name);
		if (text && strcmp(text, name) == 0)
			return true;
	}
	return false;
}

bool tm_elf_look_defines(const struct tm_elf *elf, const char *name)
{
	return find(elf, &elf->dynamic, name, true);
}

bool tm_elf_look_imports(const struct tm_elf *elf, const char *name)
{
	return find(elf, &elf->dynamic, name, false);
}

bool tm_elf_look_contains(const struct tm_elf *elf, const char *name)
{
	return find(elf, &elf->dynamic, name, true) || find(elf, &elf->full, name, true);
}

const char *tm_elf_look_needs(const struct tm_elf *elf, const char *prefix)
{
	for (size_t i = 0; i < elf->needed_count; i++) {
		if (strncmp(elf->needed[i], prefix, strlen(prefix)) == 0)
			return elf->needed[i];
	}
	return NULL;
}

bool tm_elf_look_section(const struct tm_elf *elf, const char *name)
{
	size_t count;
	const Elf64_Shdr *section = elf->kind == TM_ELF_64 ? sections(elf, &count) : NULL;
	size_t names;

	if (section == NULL || head(elf)->e_shstrndx >= count)
		return false;
	names = head(elf)->e_shstrndx;
	for (size_t i = 0; i < count; i++) {
		const char *text = string_at(elf, section[names].sh_offset, section[names].sh_size,
					     section[i].sh_name);

		if (text && strcmp(text, name) == 0)
			return true;
	}
	return false;
}

/* Finds the build id in a section of notes, whose parts are padded to four bytes. */
static size_t build_id_in(const uint8_t *notes, size_t bytes, uint8_t *id, size_t size)
{
	Elf64_Nhdr n;

	while (bytes >= sizeof(n)) {
		memcpy(&n, notes, sizeof(n));
		uint64_t name = ((uint64_t)n.n_namesz + 3) & ~UINT64_C(3);
		uint64_t value = ((uint64_t)n.n_descsz + 3) & ~UINT64_C(3);

		if (sizeof(n) + name + n.n_descsz > bytes)
			return 0;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 &&
		    memcmp(notes + sizeof(n), "GNU", 4) == 0) {
			size_t len = n.n_descsz < size ? n.n_descsz : size;

			memcpy(id, notes + sizeof(n) + name, len);
			return len;
		}
		if (sizeof(n) + name + value > bytes)
			return 0;
		notes += sizeof(n) + name + value;
		bytes -= sizeof(n) + name + value;
	}
	return 0;
}

size_t tm_elf_look_build_id(const struct tm_elf *elf, uint8_t *id, size_t size)
{
	size_t count = 0, len = 0;
	const Elf64_Phdr *part = elf->kind == TM_ELF_64 ? segments(elf, &count) : NULL;

	for (size_t i = 0; part && i < count && len == 0; i++) {
		if (part[i].p_type == PT_NOTE && part[i].p_offset <= elf->bytes &&
		    part[i].p_filesz <= elf->bytes - part[i].p_offset)
			len = build_id_in(elf->data + part[i].p_offset, part[i].p_filesz, id, size);
	}
	return len;
}
