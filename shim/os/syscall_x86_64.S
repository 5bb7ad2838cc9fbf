/* SPDX-License-Identifier: MIT */
/* long tm_syscall6(long number, long a, long b, long c, long d, long e, long f): result or -errno. */
	.section .text.startup, "ax", @progbits /* TM_AT_START_CODE */
	.globl	tm_syscall6
	.hidden	tm_syscall6
	.type	tm_syscall6, @function
	.p2align 4
tm_syscall6:
	.cfi_startproc
	endbr64
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %r10
	movq	%r9, %r8
	movq	8(%rsp), %r9
	syscall
	ret
	.cfi_endproc
	.size	tm_syscall6, .-tm_syscall6
	.section .note.GNU-stack, "", @progbits
