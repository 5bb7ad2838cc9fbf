# SPDX-License-Identifier: MIT
libtmbase_a_SOURCES += \
	%reldir%/assert.h \
	%reldir%/attrs.h \
	%reldir%/bits.h \
	%reldir%/fmt.c \
	%reldir%/fmt.h \
	%reldir%/hash.h \
	%reldir%/list.h \
	%reldir%/lock_ranks.def \
	%reldir%/parse.c \
	%reldir%/parse.h \
	%reldir%/tiers.def \
	%reldir%/version.c \
	%reldir%/version.h
