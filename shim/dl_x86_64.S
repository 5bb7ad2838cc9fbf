/* SPDX-License-Identifier: MIT */
/*
 * dlopen, dlsym and dlvsym. Each ends in a jump, so that the real function sees the program's return
 * address. Offsets in tm_root are asserted in dl.c.
 */
#if defined(__CET__)
#define LAND endbr64
#else
#define LAND
#endif
#define NEXT_DLSYM tm_root_pages+104
#define NEXT_DLOPEN tm_root_pages+112

	.hidden tm_root_pages

/* Save the two arguments, call a C function, restore them. rax and flags are the call's. */
	.macro call_keeping_args function
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	\function
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	.endm

	.macro begin name
	.p2align 4
	.type	\name, @function
\name:
	.cfi_startproc
	LAND
	.endm

	.macro end name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	/* Jump to the function whose address lies there; find it first where it is not known. */
	.macro jump_to slot, find
	movq	\slot(%rip), %rax
	testq	%rax, %rax
	jz	8f
	jmp	*%rax
8:	call_keeping_args \find
	testq	%rax, %rax
	jz	9f
	jmp	*%rax
9:	ret
	.endm

	.text

	/* void *dlopen(const char *file, int flags) */
	.globl	dlopen
	begin	dlopen
	testl	$8, %esi
	jz	1f
	call_keeping_args tm_dl_open_flags
	movl	%eax, %esi
1:	jump_to	NEXT_DLOPEN, tm_dl_find_dlopen
	end	dlopen

	/* void *dlsym(void *handle, const char *name) */
	.globl	dlsym
	begin	dlsym
	movq	(%rsp), %rdx
	call_keeping_args tm_dl_answer
	cmpq	$-1, %rax
	je	1f
	ret
1:	jump_to	NEXT_DLSYM, tm_dl_find_dlsym
	end	dlsym

	/* void *dlvsym(void *handle, const char *name, const char *version) */
	.globl	dlvsym
	begin	dlvsym
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	call_keeping_args tm_dl_answer_version
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	cmpq	$-1, %rax
	je	1f
	ret
1:	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	call_keeping_args tm_dl_find_dlvsym
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	testq	%rax, %rax
	jz	2f
	jmp	*%rax
2:	ret
	end	dlvsym

	.section .note.GNU-stack, "", @progbits
#if defined(__CET__)
	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3
	.long	0
#endif
