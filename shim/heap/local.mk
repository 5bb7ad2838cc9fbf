# SPDX-License-Identifier: MIT
libtmcore_a_SOURCES += \
	%reldir%/extent.c \
	%reldir%/extent.h \
	%reldir%/extent_check.c \
	%reldir%/granule.h \
	%reldir%/large.c \
	%reldir%/large.h \
	%reldir%/part.h \
	%reldir%/unit.c \
	%reldir%/zone.c \
	%reldir%/zone.h
