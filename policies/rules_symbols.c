/* SPDX-License-Identifier: MIT */
/* rules_symbols: see rules_symbols.h. */
#include "policies/rules_symbols.h"

#include <elf.h>

#define NESTED_MAX 512u

struct view {
	const unsigned char *at;
	size_t bytes;
};

/*
 * Address of `count` items of `size` bytes at a file offset; NULL if they do not lie within the
 * file.
 */
static const void *part(struct view file, uint64_t offset, uint64_t count, size_t size)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(count, (uint64_t)size, &bytes) || offset > file.bytes ||
	    bytes > file.bytes - offset)
		return NULL;
	return file.at + offset;
}

/* Offsets in a file may be unaligned: copy, never cast. */
static void copy(void *to, const void *from, size_t bytes)
{
	__builtin_memcpy(to, from, bytes);
}

static bool read_section(struct view file, const Elf64_Ehdr *head, uint32_t index, Elf64_Shdr *ret)
{
	const unsigned char *table = part(file, head->e_shoff, head->e_shnum, sizeof(Elf64_Shdr));

	if (table == NULL || index >= head->e_shnum || head->e_shentsize != sizeof(Elf64_Shdr))
		return false;
	copy(ret, table + index * sizeof(Elf64_Shdr), sizeof(*ret));
	return true;
}

/* Finds the symbol table's section: .symtab, else .dynsym. */
static bool find_symbols(struct view file, const Elf64_Ehdr *head, Elf64_Shdr *ret)
{
	bool found = false;
	Elf64_Shdr s;

	for (uint32_t i = 0; i < head->e_shnum; i++) {
		if (!read_section(file, head, i, &s))
			return false;
		if (s.sh_type == SHT_SYMTAB || (s.sh_type == SHT_DYNSYM && !found)) {
			*ret = s;
			found = true;
		}
		if (s.sh_type == SHT_SYMTAB)
			break;
	}
	return found;
}

static struct tm_str text_at(struct view strings, uint64_t offset)
{
	struct tm_str s = {NULL, 0};

	if (offset >= strings.bytes)
		return s;
	s.at = (const char *)strings.at + offset;
	while (offset + s.len < strings.bytes && s.at[s.len] != '\0')
		s.len++;
	return s;
}

/* --- names ------------------------------------------------------------------------------------ */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

size_t tm_rules_symbols_nested(struct tm_str name, char *buf, size_t size)
{
	size_t at = 3, len = 0;

	if (!tm_str_starts(name, "_ZN"))
		return 0;
	/* Qualifiers of `this`: const, volatile, restrict, & and &&. */
	while (at < name.len && (name.at[at] == 'K' || name.at[at] == 'V' || name.at[at] == 'r' ||
				 name.at[at] == 'R' || name.at[at] == 'O'))
		at++;
	while (at < name.len && is_digit(name.at[at])) {
		size_t part_len = 0;

		while (at < name.len && is_digit(name.at[at]) && part_len < NESTED_MAX)
			part_len = part_len * 10 + (size_t)(name.at[at++] - '0');
		if (part_len == 0 || part_len > name.len - at || len + part_len + 3 > size)
			return 0;
		if (len) {
			buf[len++] = ':';
			buf[len++] = ':';
		}
		copy(buf + len, name.at + at, part_len);
		len += part_len;
		at += part_len;
	}
	/* Not a plain nested name: a template, an operator or a constructor. */
	if (at >= name.len || name.at[at] != 'E' || len == 0)
		return 0;
	buf[len] = '\0';
	return len;
}

static bool name_matches(struct tm_str glob, struct tm_str linkage, struct tm_str nested)
{
	if (tm_parse_glob(glob, linkage))
		return true;
	while (nested.len != 0) {
		if (tm_parse_glob(glob, nested))
			return true;
		while (nested.len != 0 && nested.at[0] != ':') {
			nested.at++;
			nested.len--;
		}
		if (nested.len < 2)
			return false;
		nested.at += 2;
		nested.len -= 2;
	}
	return false;
}

/* --- ranges ----------------------------------------------------------------------------------- */

struct job {
	const struct tm_rules *rules;
	struct tm_rules_ranges *ranges;
	const struct tm_rules_module *module;
	uint32_t rule_count;
	uint32_t added, lost;
};

static void add_range(struct job *job, const Elf64_Sym *symbol, uint32_t rule)
{
	struct tm_rules_ranges *ranges = job->ranges;
	uint32_t count = atomic_load_explicit(&ranges->count, memory_order_relaxed);
	uintptr_t begin = job->module->load_bias + symbol->st_value;

	if (count >= ranges->capacity) {
		job->lost++;
		return;
	}
	ranges->range[count] = (struct tm_rules_range){
		begin, begin + (symbol->st_size ? symbol->st_size : 1), (uint16_t)rule};
	atomic_store_explicit(&ranges->count, count + 1, memory_order_release);
	job->added++;
}

static void look_at_symbol(struct job *job, const Elf64_Sym *symbol, struct tm_str name)
{
	char buf[NESTED_MAX];
	struct tm_str nested = {buf, tm_rules_symbols_nested(name, buf, sizeof(buf))};

	for (uint32_t i = job->module->first_rule; i < job->rule_count; i++) {
		const struct tm_rule *rule = &job->rules->rule[i];

		if (rule->symbol.len == 0 ||
		    (rule->module.len != 0 && !tm_parse_glob(rule->module, job->module->name)))
			continue;
		if (name_matches(rule->symbol, name, nested))
			add_range(job, symbol, i);
	}
}

static bool is_function(const Elf64_Sym *symbol)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF;
}

uint32_t tm_rules_symbols_add(const struct tm_rules *rules, struct tm_rules_ranges *ranges,
			      const struct tm_rules_module *module, uint32_t *ret_lost)
{
	struct view file = {module->file, module->file_bytes};
	struct job job = {rules, ranges, module, atomic_load(&rules->count), 0, 0};
	Elf64_Shdr symbols = {0}, texts;
	const unsigned char *table;
	struct view strings;
	Elf64_Ehdr head;
	uint64_t count;

	if (!rules->by_symbol || file.bytes < sizeof(head))
		return 0;
	copy(&head, file.at, sizeof(head));
	if (__builtin_memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || !find_symbols(file, &head, &symbols) ||
	    symbols.sh_entsize != sizeof(Elf64_Sym) ||
	    !read_section(file, &head, symbols.sh_link, &texts))
		return 0;
	count = symbols.sh_size / sizeof(Elf64_Sym);
	table = part(file, symbols.sh_offset, count, sizeof(Elf64_Sym));
	strings = (struct view){part(file, texts.sh_offset, texts.sh_size, 1), texts.sh_size};
	if (table == NULL || strings.at == NULL)
		return 0;
	for (uint64_t i = 0; i < count; i++) {
		Elf64_Sym symbol;

		copy(&symbol, table + i * sizeof(symbol), sizeof(symbol));
		if (is_function(&symbol))
			look_at_symbol(&job, &symbol, text_at(strings, symbol.st_name));
	}
	if (ret_lost)
		*ret_lost = job.lost;
	return job.added;
}
