/* SPDX-License-Identifier: MIT */
/* syscall: guardcalls.c looks at it, then the next definition gets it with every argument in its place. */
#if defined(__CET__)
#define LAND endbr64
#else
#define LAND
#endif

	.macro save register
	pushq	\register
	.cfi_adjust_cfa_offset 8
	.endm

	.macro restore register
	popq	\register
	.cfi_adjust_cfa_offset -8
	.endm

	.text
	.globl	syscall
	.type	syscall, @function
	.p2align 4
syscall:
	.cfi_startproc
	LAND
	save	%rdi
	save	%rsi
	save	%rdx
	save	%rcx
	save	%r8
	save	%r9
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	tm_guardcalls_syscall
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	restore	%r9
	restore	%r8
	restore	%rcx
	restore	%rdx
	restore	%rsi
	restore	%rdi
	movq	%rax, %r11
	xorl	%eax, %eax
	jmp	*%r11
	.cfi_endproc
	.size	syscall, . - syscall

	.section .note.GNU-stack, "", @progbits
#if defined(__CET__)
	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3
	.long	0
#endif
