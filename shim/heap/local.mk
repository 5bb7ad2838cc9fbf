# SPDX-License-Identifier: MIT
libtmcore_a_SOURCES += \
	%reldir%/extent.c \
	%reldir%/extent.h \
	%reldir%/extent_check.c \
	%reldir%/granule.h \
	%reldir%/grow.c \
	%reldir%/grow.h \
	%reldir%/large.c \
	%reldir%/large.h \
	%reldir%/meta.c \
	%reldir%/meta.h \
	%reldir%/part.h \
	%reldir%/purge.c \
	%reldir%/purge.h \
	%reldir%/unit.c \
	%reldir%/zone.c \
	%reldir%/zone.h
