/* SPDX-License-Identifier: MIT */
/* syscall: guardcalls.c looks at it, then the next definition gets it with every argument in its place. */
	.text
	.globl	syscall
	.type	syscall, %function
	.p2align 4
syscall:
	.cfi_startproc
	hint	34
	stp	x29, x30, [sp, -80]!
	.cfi_adjust_cfa_offset 80
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	stp	x0, x1, [sp, 16]
	stp	x2, x3, [sp, 32]
	stp	x4, x5, [sp, 48]
	str	x6, [sp, 64]
	bl	tm_guardcalls_syscall
	mov	x16, x0
	ldp	x0, x1, [sp, 16]
	ldp	x2, x3, [sp, 32]
	ldp	x4, x5, [sp, 48]
	ldr	x6, [sp, 64]
	ldp	x29, x30, [sp], 80
	.cfi_adjust_cfa_offset -80
	.cfi_restore x29
	.cfi_restore x30
	br	x16
	.cfi_endproc
	.size	syscall, . - syscall

	.section .note.GNU-stack, "", %progbits
