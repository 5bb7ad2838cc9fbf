/* SPDX-License-Identifier: MIT */
/*
 * long tm_helper_clone(unsigned long flags, void *stack_top, int *parent_tid, int *child_tid,
 *                      void *tls, void (*run)(void))
 * In the parent the result of clone(2). The child calls run on its stack and ends.
 */
	.text
	.globl	tm_helper_clone
	.hidden	tm_helper_clone
	.type	tm_helper_clone, %function
	.p2align 4
tm_helper_clone:
	.cfi_startproc
	hint	#34
	mov	x9, x3
	mov	x3, x4
	mov	x4, x9
	mov	x8, #220
	svc	#0
	cbz	x0, 1f
	ret
1:
	.cfi_undefined x30
	mov	x29, #0
	mov	x30, #0
	blr	x5
	mov	x0, #0
	mov	x8, #93
	svc	#0
	brk	#1
	.cfi_endproc
	.size	tm_helper_clone, .-tm_helper_clone
	.section .note.GNU-stack, "", @progbits
