/* SPDX-License-Identifier: MIT */
/* tm_unwind_here: registers by DWARF number, as they are in the caller behind the call. */
	.text
	.globl	tm_unwind_here
	.hidden	tm_unwind_here
	.type	tm_unwind_here, %function
	.p2align 4
tm_unwind_here:
	.cfi_startproc
	hint	34 /* bti c */
	stp	x18, x19, [x0, #18*8]
	stp	x20, x21, [x0, #20*8]
	stp	x22, x23, [x0, #22*8]
	stp	x24, x25, [x0, #24*8]
	stp	x26, x27, [x0, #26*8]
	stp	x28, x29, [x0, #28*8]
	mov	x1, sp
	stp	x30, x1, [x0, #30*8]
	str	x30, [x0, #32*8]
	ret
	.cfi_endproc
	.size	tm_unwind_here, . - tm_unwind_here
/* Where the kernel returns to from a signal handler of ours (scan.c). */
	.globl	tm_scan_restorer
	.hidden	tm_scan_restorer
	.type	tm_scan_restorer, %function
	.p2align 4
tm_scan_restorer:
	mov	x8, #139
	svc	#0
	brk	#1
	.size	tm_scan_restorer, . - tm_scan_restorer
	.section .note.GNU-stack,"",%progbits
