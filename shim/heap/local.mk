# SPDX-License-Identifier: MIT
libtmcore_a_SOURCES += \
	%reldir%/account.c \
	%reldir%/account.h \
	%reldir%/emergency.c \
	%reldir%/emergency.h \
	%reldir%/extent.c \
	%reldir%/extent.h \
	%reldir%/extent_check.c \
	%reldir%/granule.h \
	%reldir%/grow.c \
	%reldir%/grow.h \
	%reldir%/heap.c \
	%reldir%/heap.h \
	%reldir%/large.c \
	%reldir%/large.h \
	%reldir%/meta.c \
	%reldir%/meta.h \
	%reldir%/part.h \
	%reldir%/purge.c \
	%reldir%/purge.h \
	%reldir%/remote.c \
	%reldir%/remote.h \
	%reldir%/size_class.c \
	%reldir%/size_class.h \
	%reldir%/span.c \
	%reldir%/span.h \
	%reldir%/steal.c \
	%reldir%/store.h \
	%reldir%/tcache.c \
	%reldir%/tcache.h \
	%reldir%/tcache_inline.h \
	%reldir%/trim.c \
	%reldir%/trim.h \
	%reldir%/unit.c \
	%reldir%/zone.c \
	%reldir%/zone.h
