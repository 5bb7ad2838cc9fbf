# SPDX-License-Identifier: MIT
libtmcore_a_SOURCES += \
	%reldir%/buddy.c \
	%reldir%/buddy.h \
	%reldir%/clock.c \
	%reldir%/clock.h \
	%reldir%/lock.c \
	%reldir%/lock.h \
	%reldir%/maps.c \
	%reldir%/maps.h \
	%reldir%/mem.c \
	%reldir%/mem.h \
	%reldir%/msg.c \
	%reldir%/msg.h \
	%reldir%/own.c \
	%reldir%/own.h \
	%reldir%/proc.c \
	%reldir%/proc.h \
	%reldir%/sys.h
if ARCH_X86_64
libtmcore_a_SOURCES += %reldir%/syscall_x86_64.S
endif
if ARCH_AARCH64
libtmcore_a_SOURCES += %reldir%/syscall_aarch64.S
endif
EXTRA_DIST += %reldir%/syscall_x86_64.S %reldir%/syscall_aarch64.S
