# SPDX-License-Identifier: MIT
libtmbase_a_SOURCES += \
	%reldir%/assert.h \
	%reldir%/attrs.h \
	%reldir%/authorities.def \
	%reldir%/bits.h \
	%reldir%/cuda_api.def \
	%reldir%/cuda_types.h \
	%reldir%/fmt.c \
	%reldir%/fmt.h \
	%reldir%/hash.h \
	%reldir%/ledger_format.h \
	%reldir%/list.h \
	%reldir%/lock_ranks.def \
	%reldir%/parse.c \
	%reldir%/parse.h \
	%reldir%/parts.def \
	%reldir%/pymalloc.c \
	%reldir%/pymalloc.h \
	%reldir%/stats.def \
	%reldir%/symbols.def \
	%reldir%/tiers.def \
	%reldir%/trace_format.h \
	%reldir%/tunables.c \
	%reldir%/tunables.def \
	%reldir%/tunables.h \
	%reldir%/tunables_parse.c \
	%reldir%/tunables_parse.h \
	%reldir%/version.c \
	%reldir%/version.h
