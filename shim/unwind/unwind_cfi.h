/* SPDX-License-Identifier: MIT */
/*
 * unwind_cfi: decodes an object's call frame information for a program counter (DWARF 5, 6.4; LSB
 * core, 10.6) and evaluates its expressions. Reads mapped memory; has no state.
 */
#ifndef TM_UNWIND_CFI_H
#define TM_UNWIND_CFI_H

#include "shim/unwind/unwind.h"
#include "shim/unwind/unwind_pages.h"

#if defined(__x86_64__)
#define TM_UNWIND_FP 6
#define TM_UNWIND_SP 7
#define TM_UNWIND_RA 16
#elif defined(__aarch64__)
#define TM_UNWIND_FP 29
#define TM_UNWIND_SP 31
#define TM_UNWIND_RA 30
#endif

enum tm_unwind_rule_kind {
	TM_RULE_SAME,
	TM_RULE_UNDEFINED,
	TM_RULE_AT,
	TM_RULE_VALUE,
	TM_RULE_REGISTER,
	TM_RULE_EXPR,
	TM_RULE_VALUE_EXPR
};

struct tm_unwind_rule {
	uint8_t kind;  /* enum tm_unwind_rule_kind */
	int64_t value; /* offset, register number, or address of an expression block */
};

struct tm_unwind_row {
	int64_t cfa; /* offset, or address of an expression block (its length comes first) */
	uint8_t cfa_register;
	bool cfa_expression;
	bool signal;
	uint8_t ra;
	struct tm_unwind_rule rule[TM_UNWIND_REGS];
};

#define TM_UNWIND_REMEMBERED 4u

struct tm_unwind_room {
	struct tm_unwind_row row;     /* result: of the program counter */
	struct tm_unwind_row initial; /* at the function's entry (from the CIE) */
	struct tm_unwind_row saved[TM_UNWIND_REMEMBERED];
	uint64_t pages[TM_UNWIND_PAGES_ROOM];
};

/* Memory that a walk may read without asking the kernel. */
struct tm_unwind_memory {
	uintptr_t low, high; /* the thread's own stack, from the start of the walk */
	uintptr_t page[4];   /* pages found to be readable */
};

bool tm_unwind_read(struct tm_unwind_memory *in, uintptr_t address, uint64_t *ret);

/*
 * Fills room->row for a program counter by its object's index (PT_GNU_EH_FRAME). False: none, or
 * one that can't be decoded. The tables are not trusted: all reads stay in the segment of the
 * index.
 */
bool tm_unwind_cfi_row(uintptr_t pc, const struct tm_unwind_object *object,
		       struct tm_unwind_room *room);

/*
 * Evaluates a DWARF expression. block: address of its length; first: initial value on its stack, or
 * NULL.
 */
bool tm_unwind_cfi_evaluate(int64_t block, const struct tm_unwind_regs *regs,
			    struct tm_unwind_memory *in, const uint64_t *first, uint64_t *ret);

#endif
