/* SPDX-License-Identifier: MIT */
/* long tm_syscall6(long number, long a, long b, long c, long d, long e, long f): result or -errno. */
	.section .text.startup, "ax", %progbits /* TM_AT_START_CODE */
	.globl	tm_syscall6
	.hidden	tm_syscall6
	.type	tm_syscall6, %function
	.p2align 4
tm_syscall6:
	.cfi_startproc
	hint	#34			/* bti c: no operation where unknown */
	mov	x8, x0
	mov	x0, x1
	mov	x1, x2
	mov	x2, x3
	mov	x3, x4
	mov	x4, x5
	mov	x5, x6
	svc	#0
	ret
	.cfi_endproc
	.size	tm_syscall6, .-tm_syscall6
	.section .note.GNU-stack, "", %progbits
