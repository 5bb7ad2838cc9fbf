/* SPDX-License-Identifier: MIT */
/*
 * symbols: implementation with elfutils: one Dwfl per module, addresses as in the file. See
 * symbols.h.
 *
 * libdw's own look-ups walk a whole unit's tree, and a whole symbol table, for each address. Both
 * are walked once here, into tables that are searched: of a unit at its first address, of a symbol
 * table at the module's first.
 */
#include "tools/analysis/symbols.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/analysis/ranges.h"

/* Blocks and inlined functions within each other: compilers nest a few dozen. */
#define SCOPES_MAX 256

struct text {
	struct text *next;
	char at[];
};

struct unit {
	struct unit *next;
	Dwarf_Off offset;
	struct tm_ranges children; /* their addresses, by the offsets of their DIEs */
};

struct module {
	struct module *next;
	char *path;
	uint8_t build_id[64];
	size_t build_id_bytes;
	Dwfl *dwfl;
	Dwfl_Module *mod; /* NULL: no file found */
	bool has_dwarf, has_symtab;
	const char *trouble; /* reason why there is none */
	struct unit *units;
	struct tm_ranges symbols; /* by number in the symbol table; empty until the first look-up */
	bool has_symbols;
};

struct tm_symbols {
	char *debug_path;
	Dwfl_Callbacks callbacks;
	struct module *modules;
	struct text *texts;
	char *(*demangle)(const char *, char *, size_t *, int *);
	void *libstdcxx;
};

bool tm_symbols_are_built(void)
{
	return true;
}

static const char *keep(struct tm_symbols *s, const char *text, size_t len)
{
	struct text *t = malloc(sizeof(*t) + len + 1);

	if (t == NULL)
		return NULL;
	memcpy(t->at, text, len);
	t->at[len] = '\0';
	t->next = s->texts;
	s->texts = t;
	return t->at;
}

/* Loads libstdc++'s demangler if it exists; names of C programs need none. */
static void load_demangler(struct tm_symbols *s)
{
	void *p;

	s->libstdcxx = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	p = s->libstdcxx ? dlsym(s->libstdcxx, "__cxa_demangle") : NULL;
	memcpy(&s->demangle, &p, sizeof(p));
}

struct tm_symbols *tm_symbols_new(const char *debug_dir)
{
	struct tm_symbols *s = calloc(1, sizeof(*s));
	size_t len = debug_dir ? strlen(debug_dir) : 0;

	if (s == NULL)
		return NULL;
	s->debug_path = malloc(len + 64);
	if (s->debug_path == NULL) {
		free(s);
		return NULL;
	}
	snprintf(s->debug_path, len + 64, "%s%s:.debug:/usr/lib/debug", debug_dir ? debug_dir : "",
		 debug_dir ? ":" : "");
	s->callbacks.find_elf = dwfl_build_id_find_elf;
	s->callbacks.find_debuginfo = dwfl_standard_find_debuginfo;
	s->callbacks.section_address = dwfl_offline_section_address;
	s->callbacks.debuginfo_path = &s->debug_path;
	load_demangler(s);
	return s;
}

void tm_symbols_free(struct tm_symbols *s)
{
	if (s == NULL)
		return;
	while (s->modules) {
		struct module *m = s->modules;

		s->modules = m->next;
		while (m->units) {
			struct unit *unit = m->units;

			m->units = unit->next;
			tm_ranges_clear(&unit->children);
			free(unit);
		}
		tm_ranges_clear(&m->symbols);
		if (m->dwfl)
			dwfl_end(m->dwfl);
		free(m->path);
		free(m);
	}
	while (s->texts) {
		struct text *t = s->texts;

		s->texts = t->next;
		free(t);
	}
	if (s->libstdcxx)
		dlclose(s->libstdcxx);
	free(s->debug_path);
	free(s);
}

static bool has_section(Elf *elf, GElf_Word type)
{
	Elf_Scn *section = NULL;

	while (elf && (section = elf_nextscn(elf, section)) != NULL) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) && header.sh_type == type &&
		    header.sh_size > header.sh_entsize)
			return true;
	}
	return false;
}

/* Uses the file for the module if its build id matches. */
static bool try_file(struct module *m, const char *path)
{
	const unsigned char *id = NULL;
	GElf_Addr id_at;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	dwfl_report_begin(m->dwfl);
	/* dwfl owns the descriptor from here on. */
	m->mod = dwfl_report_elf(m->dwfl, "module", path, fd, 0, true);
	if (m->mod == NULL) {
		close(fd);
		m->trouble = "no ELF file";
		return false;
	}
	dwfl_report_end(m->dwfl, NULL, NULL);
	int bytes = dwfl_module_build_id(m->mod, &id, &id_at);
	if (m->build_id_bytes == 0 || (bytes > 0 && (size_t)bytes == m->build_id_bytes &&
				       memcmp(id, m->build_id, m->build_id_bytes) == 0))
		return true;
	m->mod = NULL;
	m->trouble = "another build-id";
	return false;
}

/* Tries DIR/.build-id/ab/cdef….debug, and the same without ".debug". */
static bool try_build_id(struct module *m, const char *dir, size_t dir_len)
{
	char path[PATH_MAX], hex[2 * sizeof(m->build_id) + 1];

	for (size_t i = 0; i < m->build_id_bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", m->build_id[i]);
	for (int plain = 0; plain < 2; plain++) {
		snprintf(path, sizeof(path), "%.*s/.build-id/%.2s/%s%s", (int)dir_len, dir, hex,
			 hex + 2, plain ? "" : ".debug");
		if (try_file(m, path))
			return true;
	}
	return false;
}

static void find_file(struct tm_symbols *s, struct module *m)
{
	m->trouble = "not found";
	if (m->path[0] == '/' && try_file(m, m->path))
		return;
	for (const char *dir = s->debug_path; m->build_id_bytes > 1 && dir;) {
		size_t len = strcspn(dir, ":");

		if (dir[0] == '/' && try_build_id(m, dir, len))
			return;
		dir = dir[len] ? dir + len + 1 : NULL;
	}
}

static void look_inside(struct module *m)
{
	GElf_Addr bias;
	Dwarf_Addr dwarf_bias;
	Elf *main_elf = dwfl_module_getelf(m->mod, &bias);

	m->has_dwarf = dwfl_module_getdwarf(m->mod, &dwarf_bias) != NULL;
	m->has_symtab = has_section(main_elf, SHT_SYMTAB);
	if (!m->has_symtab && m->has_dwarf)
		m->has_symtab = has_section(dwarf_getelf(dwfl_module_getdwarf(m->mod, &dwarf_bias)),
					    SHT_SYMTAB);
	m->trouble = m->has_dwarf ? "debug" : m->has_symtab ? "symtab" : "dynsym only";
}

static struct module *module_of(struct tm_symbols *s, const struct tm_symbols_module *want)
{
	struct module *m;
	size_t id_bytes = want->build_id_bytes;

	if (id_bytes > sizeof(m->build_id))
		id_bytes = 0;
	for (m = s->modules; m; m = m->next) {
		if (strcmp(m->path, want->path) == 0 && m->build_id_bytes == id_bytes &&
		    memcmp(m->build_id, want->build_id, id_bytes) == 0)
			return m;
	}
	m = calloc(1, sizeof(*m));
	if (m == NULL || (m->path = strdup(want->path)) == NULL) {
		free(m);
		return NULL;
	}
	if (id_bytes)
		memcpy(m->build_id, want->build_id, id_bytes);
	m->build_id_bytes = id_bytes;
	m->next = s->modules;
	s->modules = m;
	m->dwfl = dwfl_begin(&s->callbacks);
	if (m->dwfl)
		find_file(s, m);
	if (m->mod)
		look_inside(m);
	return m;
}

const char *tm_symbols_state(struct tm_symbols *s, const struct tm_symbols_module *want)
{
	const struct module *m = module_of(s, want);

	return m && m->trouble ? m->trouble : "not found";
}

static void set_name(struct tm_symbols *s, struct tm_symbol *symbol, const char *raw)
{
	int status = -1;
	char *text = NULL;

	if (raw == NULL)
		return;
	symbol->raw = raw;
	symbol->function = raw;
	if (strncmp(raw, "_Z", 2) != 0)
		return;
	symbol->is_cpp = true;
	if (s->demangle)
		text = s->demangle(raw, NULL, NULL, &status);
	if (text && status == 0) {
		const char *kept = keep(s, text, strlen(text));
		symbol->function = kept ? kept : raw;
	}
	free(text);
}

/* The linkage name, or the plain name in C and where there is none. */
static const char *die_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	return name ? name : dwarf_diename(die);
}

static const char *call_site(Dwarf_Die *die, Dwarf_Die *unit, unsigned *ret_line)
{
	Dwarf_Attribute attr;
	Dwarf_Word word;
	Dwarf_Files *files;
	size_t count;

	*ret_line = 0;
	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attr), &word) == 0)
		*ret_line = (unsigned)word;
	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attr), &word) != 0 ||
	    dwarf_getsrcfiles(unit, &files, &count) != 0 || word >= count)
		return NULL;
	return dwarf_filesrc(files, word, NULL, NULL);
}

/* --- tables of addresses ---------------------------------------------------------------------- */

static void add_children(struct unit *unit, Dwarf_Die *die)
{
	Dwarf_Die child;

	if (dwarf_child(die, &child) != 0)
		return;
	do {
		Dwarf_Addr base, low, high;
		ptrdiff_t at = 0;

		while ((at = dwarf_ranges(&child, at, &base, &low, &high)) > 0)
			tm_ranges_add(&unit->children, low, high, dwarf_dieoffset(&child));
	} while (dwarf_siblingof(&child, &child) == 0);
	tm_ranges_sort(&unit->children);
}

/* The table of a unit, made at its first use. Without memory it is short or NULL. */
static struct unit *unit_of(struct module *m, Dwarf_Die *die)
{
	Dwarf_Off offset = dwarf_dieoffset(die);
	struct unit *unit;

	for (unit = m->units; unit; unit = unit->next) {
		if (unit->offset == offset)
			return unit;
	}
	unit = calloc(1, sizeof(*unit));
	if (unit == NULL)
		return NULL;
	unit->offset = offset;
	unit->next = m->units;
	m->units = unit;
	add_children(unit, die);
	return unit;
}

/* Replaces a DIE by its first child that contains the address; false: there is none. */
static bool step_in(Dwarf_Die *die, uint64_t address)
{
	Dwarf_Die child;

	if (dwarf_child(die, &child) != 0)
		return false;
	do {
		if (dwarf_haspc(&child, address) > 0) {
			*die = child;
			return true;
		}
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/*
 * Finds the scopes around an address as nested in the code, the outermost first: the unit's child
 * and what lies in it. Returns how many; those beyond the room are left out.
 */
static size_t find_nested(struct module *m, Dwarf_Die *die, uint64_t address, Dwarf_Die *ret_scopes,
			  size_t room)
{
	struct unit *unit = unit_of(m, die);
	const struct tm_range *r = unit ? tm_ranges_find(&unit->children, address) : NULL;
	Dwarf_Off first = r ? r->number : 0;
	Dwarf_Die scope;
	size_t n = 0;

	/* If functions overlap, the first one of the file counts. */
	while (r && (r = tm_ranges_next(&unit->children, r, address)) != NULL) {
		if (r->number < first)
			first = r->number;
	}
	if (first == 0 || dwarf_offdie(dwarf_cu_getdwarf(die->cu), first, &scope) == NULL)
		return 0;
	do {
		ret_scopes[n++] = scope;
	} while (n < room && step_in(&scope, address));
	return n;
}

/* --- look-ups --------------------------------------------------------------------------------- */

/*
 * Finds the inlined functions at the address and the function that contains them, with the lines of
 * the calls.
 */
static size_t find_scopes(struct tm_symbols *s, struct module *m, uint64_t address,
			  struct tm_symbol *ret, size_t room)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = dwfl_module_addrdie(m->mod, address, &bias), scopes[SCOPES_MAX];
	Dwfl_Line *line = dwfl_module_getsrc(m->mod, address);
	const char *file = NULL;
	int number = 0;
	size_t n = 0;

	if (unit == NULL)
		return 0;
	if (line)
		file = dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);
	unsigned at = number > 0 ? (unsigned)number : 0;
	size_t count = find_nested(m, unit, address - bias, scopes, SCOPES_MAX);
	for (size_t i = count; i-- > 0 && n < room;) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		struct tm_symbol *symbol = &ret[n++];
		*symbol = (struct tm_symbol){.file = file, .line = at, .from = TM_SYMBOLS_DEBUG};
		set_name(s, symbol, die_name(&scopes[i]));
		int language = dwarf_srclang(unit);
		symbol->is_cpp |= language == DW_LANG_C_plus_plus ||
				  language == DW_LANG_C_plus_plus_11 ||
				  language == DW_LANG_C_plus_plus_14;
		if (tag == DW_TAG_subprogram)
			break;
		symbol->is_inlined = true;
		file = call_site(&scopes[i], unit, &at);
	}
	if (n > 0)
		ret[n - 1].is_inlined = false;
	return n;
}

/* Makes the table of a module's symbols that have a name, an address and a size. */
static void add_symbols(struct module *m)
{
	int count = dwfl_module_getsymtab(m->mod);

	m->has_symbols = true;
	for (int i = 1; i < count; i++) {
		GElf_Sym sym;
		GElf_Addr at;
		GElf_Word section;
		const char *name =
			dwfl_module_getsym_info(m->mod, i, &sym, &at, &section, NULL, NULL);
		int type = GELF_ST_TYPE(sym.st_info);

		if (name && name[0] && section != SHN_UNDEF && sym.st_size > 0 &&
		    type != STT_SECTION && type != STT_FILE && type != STT_TLS)
			tm_ranges_add(&m->symbols, at, at + sym.st_size, (uint64_t)i);
	}
	tm_ranges_sort(&m->symbols);
}

/*
 * The name of the symbol whose size covers an address. Where several do, libdw chooses: it prefers
 * global ones, but reads the whole table for it.
 */
static const char *symbol_at(struct module *m, uint64_t address, uint64_t *ret_offset)
{
	GElf_Off offset = 0;
	GElf_Sym sym;
	const char *name;

	if (!m->has_symbols)
		add_symbols(m);
	const struct tm_range *only = tm_ranges_find(&m->symbols, address);
	if (only == NULL && !m->symbols.failed)
		return NULL;
	if (only && !m->symbols.failed && tm_ranges_next(&m->symbols, only, address) == NULL) {
		GElf_Addr at;

		*ret_offset = address - only->low;
		return dwfl_module_getsym_info(m->mod, (int)only->number, &sym, &at, NULL, NULL,
					       NULL);
	}
	name = dwfl_module_addrinfo(m->mod, address, &offset, &sym, NULL, NULL, NULL);
	/* Only if the symbol's size covers the address. */
	if (name == NULL || offset >= sym.st_size)
		return NULL;
	*ret_offset = offset;
	return name;
}

size_t tm_symbols_find(struct tm_symbols *s, const struct tm_symbols_module *want, uint64_t address,
		       struct tm_symbol *ret, size_t room)
{
	struct module *m = module_of(s, want);
	uint64_t offset;
	size_t n = 0;

	if (m == NULL || m->mod == NULL || room == 0)
		return 0;
	if (m->has_dwarf)
		n = find_scopes(s, m, address, ret, room);
	if (n > 0 && ret[n - 1].function)
		return n;
	if (!m->has_symtab)
		return n;
	const char *name = symbol_at(m, address, &offset);
	if (name == NULL)
		return n;
	if (n == 0)
		ret[n++] = (struct tm_symbol){.from = TM_SYMBOLS_SYMTAB};
	set_name(s, &ret[n - 1], name);
	return n;
}

const char *tm_symbols_variable(struct tm_symbols *s, const struct tm_symbols_module *want,
				uint64_t address, uint64_t *ret_offset)
{
	struct module *m = module_of(s, want);
	struct tm_symbol symbol = {0};

	if (m == NULL || m->mod == NULL || !m->has_symtab)
		return NULL;
	const char *name = symbol_at(m, address, ret_offset);
	if (name == NULL)
		return NULL;
	set_name(s, &symbol, name);
	return symbol.function;
}
