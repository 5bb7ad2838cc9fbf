/* SPDX-License-Identifier: MIT */
/*
 * dlopen, dlsym and dlvsym. Each ends in a jump, so that the real function sees the program's return
 * address. Offsets in tm_root are asserted in dl.c. "hint 34" is a landing pad (bti c).
 */
#define NEXT_DLSYM 104
#define NEXT_DLOPEN 112

	.hidden tm_root_pages

/* Save the two arguments and the return address, call a C function into x16, restore them. */
	.macro call_keeping_args function
	stp	x0, x1, [sp, -32]!
	.cfi_adjust_cfa_offset 32
	str	x30, [sp, 16]
	.cfi_rel_offset x30, 16
	bl	\function
	mov	x16, x0
	ldr	x30, [sp, 16]
	.cfi_restore x30
	ldp	x0, x1, [sp], 32
	.cfi_adjust_cfa_offset -32
	.endm

	/* Jump to the function whose address lies there; find it first where it is not known. */
	.macro jump_to offset, find
	adrp	x16, tm_root_pages
	add	x16, x16, :lo12:tm_root_pages
	ldr	x16, [x16, \offset]
	cbz	x16, 8f
	br	x16
8:	call_keeping_args \find
	cbz	x16, 9f
	br	x16
9:	mov	x0, xzr
	ret
	.endm

	.macro begin name
	.p2align 4
	.type	\name, %function
\name:
	.cfi_startproc
	hint	34
	.endm

	.macro end name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text

	/* void *dlopen(const char *file, int flags) */
	.globl	dlopen
	begin	dlopen
	tbz	w1, 3, 1f
	call_keeping_args tm_dl_open_flags
	mov	w1, w16
1:	jump_to	NEXT_DLOPEN, tm_dl_find_dlopen
	end	dlopen

	/* void *dlsym(void *handle, const char *name) */
	.globl	dlsym
	begin	dlsym
	mov	x2, x30
	call_keeping_args tm_dl_answer
	cmn	x16, 1
	b.eq	1f
	mov	x0, x16
	ret
1:	jump_to	NEXT_DLSYM, tm_dl_find_dlsym
	end	dlsym

	/* void *dlvsym(void *handle, const char *name, const char *version) */
	.globl	dlvsym
	begin	dlvsym
	str	x2, [sp, -16]!
	.cfi_adjust_cfa_offset 16
	call_keeping_args tm_dl_answer_version
	ldr	x2, [sp], 16
	.cfi_adjust_cfa_offset -16
	cmn	x16, 1
	b.eq	1f
	mov	x0, x16
	ret
1:	str	x2, [sp, -16]!
	.cfi_adjust_cfa_offset 16
	call_keeping_args tm_dl_find_dlvsym
	ldr	x2, [sp], 16
	.cfi_adjust_cfa_offset -16
	cbz	x16, 2f
	br	x16
2:	mov	x0, xzr
	ret
	end	dlvsym

	.section .note.GNU-stack, "", %progbits
