# SPDX-License-Identifier: MIT
libtmbase_a_SOURCES += \
	%reldir%/attrs.h \
	%reldir%/version.c \
	%reldir%/version.h
