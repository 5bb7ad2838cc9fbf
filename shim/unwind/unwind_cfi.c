/* SPDX-License-Identifier: MIT */
#include "shim/unwind/unwind_cfi.h"

#include <elf.h>

#define EXPRESSION_DEPTH 8u

/* --- call frame information ------------------------------------------------------------------- */

struct cursor {
	const uint8_t *at, *end;
	bool bad; /* it ran over its end, or has what is not known here */
};

static uint64_t take(struct cursor *c, size_t bytes)
{
	uint64_t value = 0;

	if ((size_t)(c->end - c->at) < bytes) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	__builtin_memcpy(&value, c->at, bytes);
	c->at += bytes;
	return value;
}

static uint64_t take_uleb(struct cursor *c)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint64_t byte = take(c, 1);

		value |= (byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
			return value;
	}
	c->bad = true;
	return 0;
}

static int64_t take_sleb(struct cursor *c)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64;) {
		uint64_t byte = take(c, 1);

		value |= (byte & 0x7f) << shift;
		shift += 7;
		if ((byte & 0x80) != 0)
			continue;
		if (shift < 64 && (byte & 0x40) != 0)
			value |= ~UINT64_C(0) << shift;
		return (int64_t)value;
	}
	c->bad = true;
	return 0;
}

/* A pointer in one of the encodings of the LSB core specification; the ones that linkers write. */
static uint64_t take_encoded(struct cursor *c, unsigned encoding)
{
	uint64_t base = (encoding & 0x70) == 0x10 ? (uintptr_t)c->at : 0;

	switch (encoding & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c: return base + take(c, 8);
	case 0x01: return base + take_uleb(c);
	case 0x02: return base + take(c, 2);
	case 0x03: return base + take(c, 4);
	case 0x09: return base + (uint64_t)take_sleb(c);
	case 0x0a: return base + (uint64_t)(int64_t)(int16_t)take(c, 2);
	case 0x0b: return base + (uint64_t)(int64_t)(int32_t)take(c, 4);
	default: c->bad = true; return 0;
	}
}

/* One that we do not have is none, not another. */
static uint8_t take_register(struct cursor *c)
{
	uint64_t reg = take_uleb(c);

	return reg < TM_UNWIND_REGS ? (uint8_t)reg : UINT8_MAX;
}

struct cie {
	struct cursor instructions;
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t ra, pointer_encoding;
	bool signal, augmented;
};

/* Of the segment that holds an object's tables. */
struct bounds {
	const uint8_t *low, *high;
};

static bool entry(const struct bounds *in, const uint8_t *at, struct cursor *ret,
		  const uint8_t **ret_id)
{
	struct cursor c = {at, in->high, false};

	if (at < in->low || at >= in->high)
		return false;
	uint64_t length = take(&c, 4);
	if (c.bad || length == 0 || length > (size_t)(in->high - c.at))
		return false;
	*ret = (struct cursor){at + 4, at + 4 + length, false};
	*ret_id = at + 4;
	return true;
}

static bool read_cie(const struct bounds *in, const uint8_t *at, struct cie *ret)
{
	struct cursor c;
	const uint8_t *id;

	*ret = (struct cie){.ra = TM_UNWIND_RA};
	if (!entry(in, at, &c, &id) || take(&c, 4) != 0)
		return false;
	uint64_t version = take(&c, 1);
	const char *augmentation = (const char *)c.at;
	while (take(&c, 1) != 0)
		;
	if (c.bad)
		return false;
	if (version == 4)
		take(&c, 2); /* address and segment sizes */
	ret->code_factor = take_uleb(&c);
	ret->data_factor = take_sleb(&c);
	ret->ra = version == 1 ? (uint8_t)take(&c, 1) : take_register(&c);
	if (*augmentation == 'z') {
		uint64_t bytes = take_uleb(&c);

		if (bytes > (size_t)(c.end - c.at))
			return false;
		struct cursor data = {c.at, c.at + bytes, c.bad};
		c.at += bytes;
		ret->augmented = true;
		while (*++augmentation != '\0') {
			switch (*augmentation) {
			case 'R': ret->pointer_encoding = (uint8_t)take(&data, 1); break;
			case 'L': take(&data, 1); break;
			case 'P': take_encoded(&data, (unsigned)take(&data, 1)); break;
			case 'S': ret->signal = true; break;
			case 'B': break;
			default: return false;
			}
		}
		c.bad |= data.bad;
	} else if (*augmentation != '\0') {
		return false;
	}
	ret->instructions = c;
	return !c.bad && ret->ra < TM_UNWIND_REGS;
}

static void set_rule(struct tm_unwind_row *row, uint64_t reg, enum tm_unwind_rule_kind kind,
		     int64_t value)
{
	if (reg < TM_UNWIND_REGS)
		row->rule[reg] = (struct tm_unwind_rule){(uint8_t)kind, value};
}

static int64_t take_block(struct cursor *c)
{
	int64_t at = (int64_t)(uintptr_t)c->at;
	uint64_t bytes = take_uleb(c);

	if (bytes > (size_t)(c->end - c->at))
		c->bad = true;
	else
		c->at += bytes;
	return at;
}

struct machine {
	const struct cie *cie;
	struct tm_unwind_room *room;
	unsigned saved_count;
	uint64_t pc, target;
};

/* The instructions without a value in their first byte's low bits. False: not known. */
static bool run_extended(struct machine *m, unsigned op, struct cursor *c)
{
	struct tm_unwind_row *row = &m->room->row;
	int64_t factor = m->cie->data_factor;
	uint64_t reg;

	switch (op) {
	case 0x00: return true; /* nop */
	case 0x01: m->pc = take_encoded(c, m->cie->pointer_encoding); return true;
	case 0x02: m->pc += take(c, 1) * m->cie->code_factor; return true;
	case 0x03: m->pc += take(c, 2) * m->cie->code_factor; return true;
	case 0x04: m->pc += take(c, 4) * m->cie->code_factor; return true;
	case 0x05: /* offset_extended */
		reg = take_uleb(c);
		set_rule(row, reg, TM_RULE_AT, (int64_t)take_uleb(c) * factor);
		return true;
	case 0x06: /* restore_extended */
		reg = take_uleb(c);
		if (reg < TM_UNWIND_REGS)
			row->rule[reg] = m->room->initial.rule[reg];
		return true;
	case 0x07: set_rule(row, take_uleb(c), TM_RULE_UNDEFINED, 0); return true;
	case 0x08: set_rule(row, take_uleb(c), TM_RULE_SAME, 0); return true;
	case 0x09: /* register */
		reg = take_uleb(c);
		set_rule(row, reg, TM_RULE_REGISTER, (int64_t)take_uleb(c));
		return true;
	case 0x0a: /* remember_state */
		if (m->saved_count == TM_UNWIND_REMEMBERED)
			return false;
		m->room->saved[m->saved_count++] = *row;
		return true;
	case 0x0b: /* restore_state */
		if (m->saved_count == 0)
			return false;
		*row = m->room->saved[--m->saved_count];
		return true;
	case 0x0c: /* def_cfa */
		row->cfa_register = take_register(c);
		row->cfa = (int64_t)take_uleb(c);
		row->cfa_expression = false;
		return true;
	case 0x0d: row->cfa_register = take_register(c); return true;
	case 0x0e: row->cfa = (int64_t)take_uleb(c); return true;
	case 0x0f:
		row->cfa = take_block(c);
		row->cfa_expression = true;
		return true;
	case 0x10: /* expression */
		reg = take_uleb(c);
		set_rule(row, reg, TM_RULE_EXPR, take_block(c));
		return true;
	case 0x11: /* offset_extended_sf */
		reg = take_uleb(c);
		set_rule(row, reg, TM_RULE_AT, take_sleb(c) * factor);
		return true;
	case 0x12: /* def_cfa_sf */
		row->cfa_register = take_register(c);
		row->cfa = take_sleb(c) * factor;
		row->cfa_expression = false;
		return true;
	case 0x13: row->cfa = take_sleb(c) * factor; return true;
	case 0x14: /* val_offset */
		reg = take_uleb(c);
		set_rule(row, reg, TM_RULE_VALUE, (int64_t)take_uleb(c) * factor);
		return true;
	case 0x15: /* val_offset_sf */
		reg = take_uleb(c);
		set_rule(row, reg, TM_RULE_VALUE, take_sleb(c) * factor);
		return true;
	case 0x16: /* val_expression */
		reg = take_uleb(c);
		set_rule(row, reg, TM_RULE_VALUE_EXPR, take_block(c));
		return true;
	case 0x2d: return true;               /* the return address is signed or not */
	case 0x2e: take_uleb(c); return true; /* args_size */
	default: return false;
	}
}

static bool run(struct machine *m, struct cursor c)
{
	while (c.at < c.end && !c.bad && m->pc <= m->target) {
		unsigned op = (unsigned)take(&c, 1), low = op & 0x3f;

		switch (op >> 6) {
		case 0:
			if (!run_extended(m, op, &c))
				return false;
			break;
		case 1: m->pc += low * m->cie->code_factor; break;
		case 2:
			set_rule(&m->room->row, low, TM_RULE_AT,
				 (int64_t)take_uleb(&c) * m->cie->data_factor);
			break;
		default:
			if (low < TM_UNWIND_REGS)
				m->room->row.rule[low] = m->room->initial.rule[low];
		}
	}
	return !c.bad;
}

/* The entry of the sorted index that may hold pc, NULL: none. */
static const uint8_t *find_entry(uintptr_t pc, const uint8_t *index, const struct bounds *in)
{
	if ((size_t)(in->high - index) < 12)
		return NULL;
	struct cursor c = {index + 4, index + 12, false};

	if (index[0] != 1 || index[2] != 0x03 || index[3] != 0x3b)
		return NULL;
	if ((index[1] & 0x0f) != 0x0b && (index[1] & 0x0f) != 0x03)
		return NULL;
	take(&c, 4);
	uint64_t low = 0, high = take(&c, 4);
	const uint8_t *table = index + 12;
	if (high == 0 || high > (size_t)(in->high - table) / 8)
		return NULL;
	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;
		int32_t at;

		__builtin_memcpy(&at, table + middle * 8, 4);
		if ((uintptr_t)index + (uintptr_t)(intptr_t)at <= pc)
			low = middle;
		else
			high = middle;
	}
	int32_t word[2];
	__builtin_memcpy(word, table + low * 8, 8);
	return (uintptr_t)index + (uintptr_t)(intptr_t)word[0] > pc ? NULL : index + word[1];
}

/* What of the file is mapped around the index. False: its headers do not say. */
static bool segment_of(const struct tm_unwind_object *object, struct bounds *ret)
{
	const uintptr_t at = (uintptr_t)object->eh_frame;
	unsigned n = 0;
	const Elf64_Phdr *p = tm_unwind_headers(object->begin, &n);
	uintptr_t bias = 0;
	bool known = false;

	for (unsigned i = 0; i < n; i++) {
		if (p[i].p_type != PT_LOAD || p[i].p_offset != 0)
			continue;
		bias = object->begin - (p[i].p_vaddr & ~(TM_PAGE_BYTES - 1));
		known = true;
		break;
	}
	for (unsigned i = 0; known && i < n; i++) {
		uintptr_t start = bias + p[i].p_vaddr, end = start + p[i].p_filesz;

		if (p[i].p_type != PT_LOAD || (p[i].p_flags & PF_R) == 0 || at < start ||
		    at >= end || start < object->begin || end > object->end)
			continue;
		*ret = (struct bounds){(const uint8_t *)start, (const uint8_t *)end};
		return true;
	}
	return false;
}

bool tm_unwind_cfi_row(uintptr_t pc, const struct tm_unwind_object *object,
		       struct tm_unwind_room *room)
{
	struct tm_unwind_row *row = &room->row;
	const uint8_t *fde, *id;
	struct bounds in;
	struct cursor c;
	struct cie cie;

	if (!segment_of(object, &in))
		return false;
	fde = find_entry(pc, object->eh_frame, &in);
	if (fde == NULL || !entry(&in, fde, &c, &id))
		return false;
	uint64_t back = take(&c, 4);
	if (back == 0 || back > (size_t)(id - in.low) || !read_cie(&in, id - back, &cie))
		return false;
	uint64_t begin = take_encoded(&c, cie.pointer_encoding);
	uint64_t range = take_encoded(&c, cie.pointer_encoding & 0x0f);
	if (c.bad || pc < begin || pc >= begin + range)
		return false;
	if (cie.augmented)
		take_block(&c);
	__builtin_memset(row, 0, sizeof(*row));
	__builtin_memset(&room->initial, 0, sizeof(room->initial));
	row->ra = cie.ra;
	row->signal = cie.signal;
	struct machine m = {.cie = &cie, .room = room, .target = UINT64_MAX};
	if (!run(&m, cie.instructions))
		return false;
	room->initial = *row;
	m.pc = begin;
	m.target = pc;
	bool known = run(&m, c);
	tm_unwind_pages_read((uintptr_t)object->eh_frame, (uintptr_t)fde, room->pages);
	return known;
}

/* --- expressions ------------------------------------------------------------------------------ */

struct stack {
	uint64_t word[EXPRESSION_DEPTH];
	unsigned depth;
	bool bad;
};

static void push(struct stack *s, uint64_t value)
{
	if (s->depth == EXPRESSION_DEPTH)
		s->bad = true;
	else
		s->word[s->depth++] = value;
}

static uint64_t pop(struct stack *s)
{
	if (s->depth == 0) {
		s->bad = true;
		return 0;
	}
	return s->word[--s->depth];
}

static void operate(struct stack *s, unsigned op)
{
	uint64_t b = pop(s), a = pop(s);

	switch (op) {
	case 0x1a: push(s, a & b); break;
	case 0x1c: push(s, a - b); break;
	case 0x21: push(s, a | b); break;
	case 0x22: push(s, a + b); break;
	case 0x24: push(s, b < 64 ? a << b : 0); break;
	case 0x25: push(s, b < 64 ? a >> b : 0); break;
	case 0x29: push(s, a == b); break;
	case 0x2a: push(s, (int64_t)a >= (int64_t)b); break;
	case 0x2b: push(s, (int64_t)a > (int64_t)b); break;
	case 0x2c: push(s, (int64_t)a <= (int64_t)b); break;
	case 0x2d: push(s, (int64_t)a < (int64_t)b); break;
	case 0x2e: push(s, a != b); break;
	default: s->bad = true;
	}
}

static bool is_constant(unsigned op, struct cursor *c, struct stack *s)
{
	switch (op) {
	case 0x08: push(s, take(c, 1)); return true;
	case 0x09: push(s, (uint64_t)(int64_t)(int8_t)take(c, 1)); return true;
	case 0x0a: push(s, take(c, 2)); return true;
	case 0x0b: push(s, (uint64_t)(int64_t)(int16_t)take(c, 2)); return true;
	case 0x0c: push(s, take(c, 4)); return true;
	case 0x0d: push(s, (uint64_t)(int64_t)(int32_t)take(c, 4)); return true;
	case 0x0e:
	case 0x0f: push(s, take(c, 8)); return true;
	case 0x10: push(s, take_uleb(c)); return true;
	case 0x11: push(s, (uint64_t)take_sleb(c)); return true;
	default: return false;
	}
}

bool tm_unwind_cfi_evaluate(int64_t block, const struct tm_unwind_regs *regs,
			    struct tm_unwind_memory *in, const uint64_t *first, uint64_t *ret)
{
	struct cursor c = {(const uint8_t *)(uintptr_t)block,
			   (const uint8_t *)(uintptr_t)block + 16, false};
	uint64_t bytes = take_uleb(&c);
	struct stack stack = {.depth = 0}, *s = &stack;

	if (first != NULL)
		push(s, *first);

	c.end = c.at + bytes;
	while (c.at < c.end && !c.bad && !s->bad) {
		unsigned op = (unsigned)take(&c, 1);
		uint64_t word;

		if (op >= 0x30 && op <= 0x4f) {
			push(s, op - 0x30);
		} else if (op >= 0x70 && op <= 0x8f) {
			int64_t offset = take_sleb(&c);

			if (op - 0x70 >= TM_UNWIND_REGS)
				return false;
			word = op - 0x70 == TM_UNWIND_RA && TM_UNWIND_RA == 16 ? regs->pc
									       : regs->r[op - 0x70];
			push(s, word + (uint64_t)offset);
		} else if (op == 0x06) {
			if (!tm_unwind_read(in, pop(s), &word))
				return false;
			push(s, word);
		} else if (op == 0x12) {
			word = pop(s);
			push(s, word);
			push(s, word);
		} else if (op == 0x23) {
			push(s, pop(s) + take_uleb(&c));
		} else if (!is_constant(op, &c, s)) {
			operate(s, op);
		}
	}
	*ret = pop(s);
	return !c.bad && !s->bad;
}
