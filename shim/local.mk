# SPDX-License-Identifier: MIT
# libtmcore_a_SOURCES: logic that unit tests may link. libtiermalloc_so_SOURCES: what interposes.
include_HEADERS += %reldir%/tiermalloc.h
EXTRA_DIST += %reldir%/tiermalloc.map

libtmcore_a_SOURCES +=

libtiermalloc_so_SOURCES += \
	%reldir%/api.c

include %reldir%/base/local.mk
include %reldir%/os/local.mk
include %reldir%/heap/local.mk
