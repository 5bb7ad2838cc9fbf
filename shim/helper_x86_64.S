/* SPDX-License-Identifier: MIT */
/*
 * long tm_helper_clone(unsigned long flags, void *stack_top, int *parent_tid, int *child_tid,
 *                      void *tls, void (*run)(void))
 * In the parent the result of clone(2). The child calls run on its stack and ends.
 */
	.text
	.globl	tm_helper_clone
	.hidden	tm_helper_clone
	.type	tm_helper_clone, @function
	.p2align 4
tm_helper_clone:
	.cfi_startproc
	endbr64
	movq	%rcx, %r10
	movl	$56, %eax
	syscall
	testq	%rax, %rax
	jz	1f
	ret
1:
	.cfi_undefined %rip
	xorl	%ebp, %ebp
	call	*%r9
	xorl	%edi, %edi
	movl	$60, %eax
	syscall
	hlt
	.cfi_endproc
	.size	tm_helper_clone, .-tm_helper_clone
	.section .note.GNU-stack, "", @progbits
