/* SPDX-License-Identifier: MIT */
/* tm_unwind_here: registers by DWARF number, as they are in the caller behind the call. */
	.text
	.globl	tm_unwind_here
	.hidden	tm_unwind_here
	.type	tm_unwind_here, @function
	.p2align 4
tm_unwind_here:
	.cfi_startproc
#if defined(__CET__)
	endbr64
#endif
	movq	%rbx, 3*8(%rdi)
	movq	%rbp, 6*8(%rdi)
	leaq	8(%rsp), %rax
	movq	%rax, 7*8(%rdi)
	movq	%r12, 12*8(%rdi)
	movq	%r13, 13*8(%rdi)
	movq	%r14, 14*8(%rdi)
	movq	%r15, 15*8(%rdi)
	movq	(%rsp), %rax
	movq	%rax, 16*8(%rdi)
	movq	%rax, 17*8(%rdi)
	ret
	.cfi_endproc
	.size	tm_unwind_here, . - tm_unwind_here
/* Where the kernel returns to from a signal handler of ours (scan.c). */
	.globl	tm_scan_restorer
	.hidden	tm_scan_restorer
	.type	tm_scan_restorer, @function
	.p2align 4
tm_scan_restorer:
	movl	$15, %eax
	syscall
	hlt
	.size	tm_scan_restorer, . - tm_scan_restorer
	.section .note.GNU-stack,"",@progbits
