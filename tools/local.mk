# SPDX-License-Identifier: MIT
# The command. It links shim/base and policies, never the heap.
bin_PROGRAMS += tiermalloc
tiermalloc_CFLAGS = $(AM_CFLAGS)
tiermalloc_LDADD = libtmbase.a -lm
tiermalloc_SOURCES = \
	%reldir%/cmd.h \
	%reldir%/cmd_config.c \
	%reldir%/cmd_doctor.c \
	%reldir%/cmd_report.c \
	%reldir%/cmd_run.c \
	%reldir%/config_man.c \
	%reldir%/config_man.h \
	%reldir%/doctor.h \
	%reldir%/document.c \
	%reldir%/document.h \
	%reldir%/document_fields.c \
	%reldir%/document_fields.h \
	%reldir%/doctor_machine.c \
	%reldir%/doctor_program.c \
	%reldir%/elf_look.c \
	%reldir%/elf_look.h \
	%reldir%/json_out.c \
	%reldir%/library.c \
	%reldir%/ledger.c \
	%reldir%/ledger.h \
	%reldir%/library.h \
	%reldir%/main.c \
	%reldir%/program.c \
	%reldir%/program.h \
	%reldir%/run_account.c \
	%reldir%/run_account.h \
	%reldir%/run_child.c \
	%reldir%/run_child.h \
	%reldir%/utf8.c \
	%reldir%/utf8.h
