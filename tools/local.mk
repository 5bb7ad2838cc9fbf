# SPDX-License-Identifier: MIT
# The command. It links shim/base and policies, never the heap.
bin_PROGRAMS += tiermalloc
tiermalloc_CFLAGS = $(AM_CFLAGS)
tiermalloc_LDADD = libtmbase.a
tiermalloc_SOURCES = \
	%reldir%/main.c
