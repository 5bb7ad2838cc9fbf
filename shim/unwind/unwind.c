/* SPDX-License-Identifier: MIT */
#include "shim/unwind/unwind.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

#include "shim/base/hash.h"
#include "shim/elf.h"
#include "shim/os/maps.h"
#include "shim/os/mem.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/unwind/unwind_cfi.h"

#if defined(__x86_64__)
static const uint8_t kept[] = {3, 6, 12, 13, 14, 15, 16};
#define KEPT_MASK                                                                                  \
	(1u << 3 | 1u << 6 | 1u << 7 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15 | 1u << 16)
#define CODE_ADDRESS(pc) (pc)
#elif defined(__aarch64__)
static const uint8_t kept[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};
#define KEPT_MASK 0xfff80000u
/* Signed return addresses (PAC) have their signature above the 48 address bits. */
#define CODE_ADDRESS(pc) ((pc) & ((UINT64_C(1) << 48) - 1))
#endif

#define HEADERS_MAX 128u
#define STEPS_LIMIT 96u /* frames walked, including the allocator's own */

/* --- what may be read ------------------------------------------------------------------------- */

/* rt_sigprocmask reads the set before it rejects an invalid "how": EFAULT if it's not readable. */
bool tm_unwind_readable(uintptr_t address, size_t bytes)
{
	uintptr_t first = address & ~(uintptr_t)7, last = (address + bytes - 1) & ~(uintptr_t)7;

	/* not under a seccomp filter of the program, which may not allow the call (H68) */
	if (address + bytes < address || !tm_proc_may_open())
		return false;
	for (uintptr_t at = first;; at = (at | (TM_PAGE_BYTES - 1)) + 1) {
		if (tm_sys_sigprocmask(-1, (const uint64_t *)at, NULL) != -EINVAL)
			return false;
		if ((at | (TM_PAGE_BYTES - 1)) >= last)
			return true;
	}
}

const Elf64_Phdr *tm_unwind_headers(uintptr_t begin, unsigned *ret_count)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)begin;

	if (!tm_unwind_readable(begin, sizeof(*e)) ||
	    __builtin_memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_phnum > HEADERS_MAX ||
	    e->e_phentsize != sizeof(Elf64_Phdr) || e->e_phoff > TM_PAGE_BYTES * 4)
		return NULL;
	size_t end = e->e_phoff + e->e_phnum * sizeof(Elf64_Phdr);
	/* most reads hit the page found last */
	if (end > TM_PAGE_BYTES - begin % TM_PAGE_BYTES &&
	    !tm_unwind_readable(begin + e->e_phoff, end - e->e_phoff))
		return NULL;
	*ret_count = e->e_phnum;
	return (const Elf64_Phdr *)(begin + e->e_phoff);
}

bool tm_unwind_read(struct tm_unwind_memory *in, uintptr_t address, uint64_t *ret)
{
	uintptr_t page = address & ~(TM_PAGE_BYTES - 1);

	if (address % 8 != 0)
		return false;
	for (unsigned i = 0; i < TM_ARRAY_LEN(in->page); i++) {
		if (in->page[i] != page)
			continue;
		*ret = *(const uint64_t *)address;
		return true;
	}
	/*
	 * If the stack pointer is on another stack (a coroutine's), the range up to the thread's
	 * own stack may hold anything. Without the kernel's confirmation, only the own stack is
	 * trusted.
	 */
	if (!tm_unwind_readable(address, 8) &&
	    (tm_proc_may_open() || address < in->low || address >= in->high))
		return false;
	for (unsigned i = TM_ARRAY_LEN(in->page) - 1; i > 0; i--)
		in->page[i] = in->page[i - 1];
	in->page[0] = page;
	*ret = *(const uint64_t *)address;
	return true;
}

/* --- objects ---------------------------------------------------------------------------------- */

/* struct dl_find_object of <dlfcn.h> since glibc 2.35, for both architectures. */
struct found_object {
	uint64_t flags;
	void *map_start, *map_end;
	const void *link_map;
	const void *eh_frame;
	uint64_t reserved[11];
};

static uintptr_t find_object; /* [atomic] _dl_find_object; 0: not looked up yet, 1: none */

bool tm_unwind_object(uintptr_t pc, struct tm_unwind_object *ret)
{
	int (*find)(void *pc, struct found_object *ret_found);
	uintptr_t at = __atomic_load_n(&find_object, __ATOMIC_RELAXED);
	struct found_object found = {0};

	if (at == 0) {
		at = tm_elf_next("_dl_find_object");
		if (at == 0)
			at = 1;
		__atomic_store_n(&find_object, at, __ATOMIC_RELAXED);
	}
	if (at == 1)
		return tm_unwind_object_by_maps(pc, ret);
	TM_ELF_FUNCTION(at, &find);
	if (find((void *)pc, &found) != 0)
		return false;
	*ret = (struct tm_unwind_object){(uintptr_t)found.map_start, (uintptr_t)found.map_end,
					 found.link_map, found.eh_frame};
	return true;
}

bool tm_unwind_object_by_maps(uintptr_t pc, struct tm_unwind_object *ret)
{
	struct tm_maps_range range;

	if (tm_maps_object(pc, &range, NULL, 0) != 0)
		return false;
	*ret = (struct tm_unwind_object){range.start, range.end, NULL, NULL};
	unsigned n = 0;
	const Elf64_Phdr *p = tm_unwind_headers(range.start, &n);
	uintptr_t bias = range.start;
	if (p == NULL)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_offset == 0)
			bias = range.start - p[i].p_vaddr;
	for (unsigned i = 0; i < n; i++)
		if (p[i].p_type == PT_GNU_EH_FRAME)
			ret->eh_frame = (const void *)(bias + p[i].p_vaddr);
	return true;
}

/* --- rows that were seen ---------------------------------------------------------------------- */

#define TABLE_BITS 11
#define WRITING (UINT64_C(1) << 63)

/* The common form of a row: CFA = register + offset, saved registers close to the CFA. */
struct known {
	uint64_t pc; /* [atomic] has WRITING set during a write */
	int32_t cfa;
	uint8_t cfa_register;
	bool last : 1;      /* the outermost frame */
	bool by_frames : 1; /* no row for this pc: use frame pointers */
	uint16_t generation;
	int8_t at[16]; /* of kept[]: offset from the CFA in words; 0: unchanged */
};
_Static_assert(sizeof(struct known) == 32, "two to a cache line");
_Static_assert(sizeof(kept) <= 16, "they fit");

#define TABLE_BYTES (sizeof(struct known) << TABLE_BITS)
static void *_Atomic table_at; /* mapped for the first row, so at a cache line's start */
static uint16_t generation;    /* [atomic] */

void tm_unwind_forget(void)
{
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
}

static uint16_t generation_now(void)
{
	return __atomic_load_n(&generation, __ATOMIC_RELAXED);
}

/* 2-way set, one cache line: frames of one stack should not evict each other. */
static struct known *place_of(struct known *table, uintptr_t pc, size_t way)
{
	return &table[tm_hash_slot(pc, TABLE_BITS) ^ way];
}

static bool read_row(const struct known *k, uintptr_t pc, struct known *ret)
{
	if (__atomic_load_n(&k->pc, __ATOMIC_ACQUIRE) != pc)
		return false;
	*ret = *k;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&k->pc, __ATOMIC_RELAXED) == pc && ret->pc == pc &&
	       ret->generation == generation_now();
}

static bool known_row(uintptr_t pc, struct known *ret)
{
	struct known *table = atomic_load_explicit(&table_at, memory_order_acquire);

	return table != NULL && (read_row(place_of(table, pc, 0), pc, ret) ||
				 read_row(place_of(table, pc, 1), pc, ret));
}

static bool condense(const struct tm_unwind_row *row, uintptr_t pc, struct known *ret)
{
	*ret = (struct known){.pc = pc,
			      .cfa = (int32_t)row->cfa,
			      .cfa_register = row->cfa_register,
			      .last = row->rule[row->ra].kind == TM_RULE_UNDEFINED,
			      .generation = generation_now()};
	if (row->cfa_expression || row->signal || row->ra != TM_UNWIND_RA || row->cfa != ret->cfa)
		return false;
	for (size_t i = 0; i < sizeof(kept); i++) {
		const struct tm_unwind_rule *rule = &row->rule[kept[i]];

		if (rule->kind == TM_RULE_SAME || (ret->last && kept[i] == TM_UNWIND_RA))
			continue;
		if (rule->kind != TM_RULE_AT || rule->value % 8 != 0 || rule->value / 8 < -128 ||
		    rule->value / 8 > 127 || rule->value == 0)
			return false;
		ret->at[i] = (int8_t)(rule->value / 8);
	}
	return true;
}

static void keep_row(const struct known *new)
{
	struct known *table = tm_mem_once(&table_at, TABLE_BYTES);
	struct known *k, other;
	uint64_t old;

	if (table == NULL)
		return;
	k = place_of(table, new->pc, 0);
	old = __atomic_load_n(&k->pc, __ATOMIC_RELAXED);
	if (old != 0 && old != new->pc && read_row(k, old, &other)) {
		k = place_of(table, new->pc, 1);
		old = __atomic_load_n(&k->pc, __ATOMIC_RELAXED);
	}
	if ((old & WRITING) != 0 ||
	    !__atomic_compare_exchange_n(&k->pc, &old, new->pc | WRITING, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__builtin_memcpy((char *)k + 8, (const char *)new + 8, sizeof(*k) - 8);
	__atomic_store_n(&k->pc, new->pc, __ATOMIC_RELEASE);
}

/* --- the walk --------------------------------------------------------------------------------- */

struct state {
	struct tm_unwind_regs *regs;
	struct tm_unwind_memory in;
	uint32_t valid;    /* registers whose values are known */
	bool after_signal; /* pc is the interrupted instruction, not a return address */
	unsigned signals;
};

enum step { STEP_ON, STEP_END, STEP_LOST };

static enum step step_known(struct state *s, const struct known *k)
{
	uint64_t old_sp = s->regs->r[TM_UNWIND_SP];

	if (k->last)
		return STEP_END;
	if ((s->valid >> k->cfa_register & 1) == 0)
		return STEP_LOST;
	uint64_t cfa = s->regs->r[k->cfa_register] + (uint64_t)(int64_t)k->cfa;
	for (size_t i = 0; i < sizeof(kept); i++) {
		if (k->at[i] == 0)
			continue;
		if (!tm_unwind_read(&s->in, cfa + (uint64_t)(int64_t)k->at[i] * 8,
				    &s->regs->r[kept[i]]))
			return STEP_LOST;
		s->valid |= 1u << kept[i];
	}
	uint64_t pc = CODE_ADDRESS(s->regs->r[TM_UNWIND_RA]);
	if (cfa < old_sp || (cfa == old_sp && pc == s->regs->pc))
		return STEP_LOST;
	s->regs->r[TM_UNWIND_SP] = cfa;
	s->regs->pc = pc;
	s->after_signal = false;
	return STEP_ON;
}

static bool value_of(struct state *s, const struct tm_unwind_regs *old,
		     const struct tm_unwind_rule *rule, uint64_t cfa, uint64_t *ret)
{
	uint64_t at;

	switch (rule->kind) {
	case TM_RULE_AT: return tm_unwind_read(&s->in, cfa + (uint64_t)rule->value, ret);
	case TM_RULE_VALUE: *ret = cfa + (uint64_t)rule->value; return true;
	case TM_RULE_REGISTER:
		if (rule->value < 0 || rule->value >= TM_UNWIND_REGS)
			return false;
		*ret = old->r[rule->value];
		return true;
	case TM_RULE_EXPR:
	case TM_RULE_VALUE_EXPR:
		if (!tm_unwind_cfi_evaluate(rule->value, old, &s->in, &cfa, &at))
			return false;
		if (rule->kind == TM_RULE_EXPR)
			return tm_unwind_read(&s->in, at, ret);
		*ret = at;
		return true;
	default: return false;
	}
}

static enum step step_row(struct state *s, const struct tm_unwind_row *row)
{
	struct tm_unwind_regs old = *s->regs;
	uint64_t cfa;

	if (row->rule[row->ra].kind == TM_RULE_UNDEFINED)
		return STEP_END;
	if (row->cfa_expression) {
		if (!tm_unwind_cfi_evaluate(row->cfa, &old, &s->in, NULL, &cfa))
			return STEP_LOST;
	} else {
		if (row->cfa_register >= TM_UNWIND_REGS || (s->valid >> row->cfa_register & 1) == 0)
			return STEP_LOST;
		cfa = old.r[row->cfa_register] + (uint64_t)row->cfa;
	}
	s->regs->r[TM_UNWIND_SP] = cfa;
	for (unsigned reg = 0; reg < TM_UNWIND_REGS; reg++) {
		const struct tm_unwind_rule *rule = &row->rule[reg];

		if (rule->kind == TM_RULE_SAME)
			continue;
		if (value_of(s, &old, rule, cfa, &s->regs->r[reg]))
			s->valid |= 1u << reg;
		else if (reg == row->ra)
			return STEP_LOST;
		else
			s->valid &= ~(1u << reg);
	}
	s->regs->pc = CODE_ADDRESS(s->regs->r[row->ra]);
	s->after_signal = row->signal;
	if (row->signal)
		return ++s->signals > 4 ? STEP_LOST : STEP_ON;
	if (s->regs->r[TM_UNWIND_SP] < old.r[TM_UNWIND_SP] ||
	    (s->regs->r[TM_UNWIND_SP] == old.r[TM_UNWIND_SP] && s->regs->pc == old.pc))
		return STEP_LOST;
	return STEP_ON;
}

/* For JIT code and stripped objects: follows the frame pointer, which must point up the stack. */
static enum step step_frame(struct state *s)
{
	uint64_t fp = s->regs->r[TM_UNWIND_FP], next, pc;

	if ((s->valid >> TM_UNWIND_FP & 1) == 0 || fp < s->regs->r[TM_UNWIND_SP] || fp % 8 != 0 ||
	    fp - s->regs->r[TM_UNWIND_SP] > (1u << 20))
		return STEP_LOST;
	if (!tm_unwind_read(&s->in, fp, &next) || !tm_unwind_read(&s->in, fp + 8, &pc))
		return STEP_LOST;
	pc = CODE_ADDRESS(pc);
	if (pc == 0)
		return STEP_END;
	if (pc < 4096 || (next != 0 && next <= fp))
		return STEP_LOST;
	s->regs->r[TM_UNWIND_SP] = fp + 16;
	s->regs->r[TM_UNWIND_FP] = next;
	s->regs->pc = pc;
	s->valid = 1u << TM_UNWIND_SP | 1u << TM_UNWIND_FP;
	s->after_signal = false;
	return STEP_ON;
}

static enum step step(struct state *s, struct tm_unwind_walk *walk)
{
	uintptr_t pc = s->regs->pc - (s->after_signal ? 0 : 1);
	struct tm_unwind_object object;
	struct known known;

	if (known_row(pc, &known)) {
		if (!known.by_frames)
			return step_known(s, &known);
		walk->by_frames = true;
		return step_frame(s);
	}
	if (!tm_unwind_object(pc, &object)) {
		walk->by_frames = true;
		return step_frame(s);
	}
	if (walk->seen != NULL)
		walk->seen(s->regs->pc, &object);
	if (object.eh_frame == NULL || !tm_unwind_cfi_row(pc, &object, walk->room)) {
		keep_row(&(struct known){
			.pc = pc, .by_frames = true, .generation = generation_now()});
		walk->by_frames = true;
		return step_frame(s);
	}
	if (condense(&walk->room->row, pc, &known))
		keep_row(&known);
	return step_row(s, &walk->room->row);
}

void tm_unwind_walk(struct tm_unwind_walk *walk, struct tm_unwind_regs *regs, uint64_t *frames,
		    unsigned limit)
{
	struct state s = {.regs = regs, .valid = KEPT_MASK};
	enum step result = STEP_ON;
	bool ours = true;

	s.in.low = regs->r[TM_UNWIND_SP];
	s.in.high = walk->stack_top > s.in.low && walk->stack_top - s.in.low < ((uintptr_t)64 << 20)
			    ? walk->stack_top
			    : 0;
	walk->count = 1;
	walk->truncated = true;
	walk->by_frames = false;
	frames[0] = walk->return_address;
	for (unsigned n = 0; n < STEPS_LIMIT && result == STEP_ON; n++) {
		if (ours && regs->pc == walk->return_address &&
		    regs->r[TM_UNWIND_SP] >= walk->frame)
			ours = false;
		else if (ours && regs->r[TM_UNWIND_SP] > walk->frame)
			return; /* it missed the call's frame: don't trust the result */
		else if (!ours && walk->count < limit)
			frames[walk->count++] = regs->pc;
		else if (!ours)
			return;
		result = step(&s, walk);
		if (result == STEP_ON && regs->pc == 0)
			result = STEP_END;
	}
	walk->truncated = ours || result != STEP_END;
}
