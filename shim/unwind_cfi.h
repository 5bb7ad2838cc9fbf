/* SPDX-License-Identifier: MIT */
/*
 * unwind_cfi: what an object's call frame information says of a program counter (DWARF 5, 6.4; LSB
 * core, 10.6), and its expressions. Reads mapped memory; keeps nothing.
 */
#ifndef TM_UNWIND_CFI_H
#define TM_UNWIND_CFI_H

#include "shim/unwind.h"
#include "shim/unwind_pages.h"

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
	int64_t value; /* offset, register, or address of an expression's length */
};

struct tm_unwind_row {
	int64_t cfa; /* offset, or address of an expression's length */
	uint8_t cfa_register;
	bool cfa_expression;
	bool signal;
	uint8_t ra;
	struct tm_unwind_rule rule[TM_UNWIND_REGS];
};

#define TM_UNWIND_REMEMBERED 4u

struct tm_unwind_room {
	struct tm_unwind_row row;     /* of the program counter */
	struct tm_unwind_row initial; /* what its function begins with */
	struct tm_unwind_row saved[TM_UNWIND_REMEMBERED];
	uint64_t pages[TM_UNWIND_PAGES_ROOM];
};

/* What a walk may read. */
struct tm_unwind_memory {
	uintptr_t low, high; /* the thread's own stack, from where the walk began */
	uintptr_t page[4];   /* that were found readable */
};

bool tm_unwind_read(struct tm_unwind_memory *in, uintptr_t address, uint64_t *ret);

/*
 * room->row of a program counter by its object's index (PT_GNU_EH_FRAME). False: there is none that is
 * known. Nothing in the tables is trusted: what is read lies in the segment that has the index.
 */
bool tm_unwind_cfi_row(uintptr_t pc, const struct tm_unwind_object *object,
		       struct tm_unwind_room *room);

/* An expression's value; block: address of its length; first: what lies on its stack, or NULL. */
bool tm_unwind_cfi_evaluate(int64_t block, const struct tm_unwind_regs *regs,
			    struct tm_unwind_memory *in, const uint64_t *first, uint64_t *ret);

#endif
