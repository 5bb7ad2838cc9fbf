# SPDX-License-Identifier: MIT
# The runner links none of our code: it is the stranger that the library is tried on.
# Kernels for one instruction set go into an archive of their own with its -m flags.
bin_PROGRAMS += yi-coder-run
yi_coder_run_CFLAGS = $(AM_CFLAGS)
yi_coder_run_LDADD = -lm -lpthread
yi_coder_run_SOURCES = \
	%reldir%/main.c
