# SPDX-License-Identifier: MIT
# libtmcore_a_SOURCES: logic that unit tests may link. libtiermalloc_so_SOURCES: what interposes.
include_HEADERS += %reldir%/tiermalloc.h
EXTRA_DIST += %reldir%/tiermalloc.map %reldir%/start.ld

libtmcore_a_SOURCES += \
	%reldir%/alloc.c \
	%reldir%/alloc.h \
	%reldir%/alloc_align.c \
	%reldir%/alloc_debug.c \
	%reldir%/alloc_debug.h \
	%reldir%/alloc_slow.c \
	%reldir%/guard_pages.c \
	%reldir%/guard_pages.h \
	%reldir%/boot.c \
	%reldir%/boot.h \
	%reldir%/census.c \
	%reldir%/census.h \
	%reldir%/core.c \
	%reldir%/callsite.c \
	%reldir%/callsite.h \
	%reldir%/cxx.c \
	%reldir%/cxx.h \
	%reldir%/decisions.c \
	%reldir%/decisions.h \
	%reldir%/deep.c \
	%reldir%/deep.h \
	%reldir%/dl.c \
	%reldir%/dl.h \
	%reldir%/early.c \
	%reldir%/early.h \
	%reldir%/elf.c \
	%reldir%/epoch.c \
	%reldir%/epoch.h \
	%reldir%/epoch_records.c \
	%reldir%/epoch_records.h \
	%reldir%/elf.h \
	%reldir%/family.c \
	%reldir%/family.h \
	%reldir%/foreign.c \
	%reldir%/foreign.h \
	%reldir%/fork.c \
	%reldir%/fork.h \
	%reldir%/helper.c \
	%reldir%/helper.h \
	%reldir%/medium.c \
	%reldir%/medium.h \
	%reldir%/module.h \
	%reldir%/modules.c \
	%reldir%/modules.h \
	%reldir%/passive.c \
	%reldir%/pooling.c \
	%reldir%/pooling.h \
	%reldir%/passive.h \
	%reldir%/python.c \
	%reldir%/python.h \
	%reldir%/ledger.c \
	%reldir%/ledger.h \
	%reldir%/routing.c \
	%reldir%/routing.h \
	%reldir%/ruling.c \
	%reldir%/ruling.h \
	%reldir%/places.c \
	%reldir%/places.h \
	%reldir%/ledger_areas.c \
	%reldir%/ledger_areas.h \
	%reldir%/ledger_copy.c \
	%reldir%/ledger_copy.h \
	%reldir%/ledger_granules.c \
	%reldir%/ledger_granules.h \
	%reldir%/ledger_file.c \
	%reldir%/ledger_file.h \
	%reldir%/report.c \
	%reldir%/report.h \
	%reldir%/report_command.c \
	%reldir%/report_command.h \
	%reldir%/samples.c \
	%reldir%/source_drop.c \
	%reldir%/source_drop.h \
	%reldir%/samples.h \
	%reldir%/scan.c \
	%reldir%/scan.h \
	%reldir%/scan_image.c \
	%reldir%/scan_image.h \
	%reldir%/scan_memory.c \
	%reldir%/scan_memory.h \
	%reldir%/scan_suspects.c \
	%reldir%/scan_suspects.h \
	%reldir%/sheet.c \
	%reldir%/sheet.h \
	%reldir%/sizes.c \
	%reldir%/sizes.h \
	%reldir%/thread.c \
	%reldir%/thread.h \
	%reldir%/trace.c \
	%reldir%/trace.h \
	%reldir%/unwind.c \
	%reldir%/unwind.h \
	%reldir%/unwind_pages.c \
	%reldir%/unwind_pages.h \
	%reldir%/unwind_cfi.c \
	%reldir%/unwind_cfi.h

libtiermalloc_so_SOURCES += \
	%reldir%/api.c \
	%reldir%/guardcalls.c \
	%reldir%/interpose.c \
	%reldir%/interpose_cxx.c \
	%reldir%/interpose_dl.c \
	%reldir%/start.c

if ARCH_X86_64
libtiermalloc_so_SOURCES += %reldir%/dl_x86_64.S %reldir%/guardcalls_x86_64.S
libtmcore_a_SOURCES += %reldir%/helper_x86_64.S %reldir%/unwind_x86_64.S
endif
if ARCH_AARCH64
libtiermalloc_so_SOURCES += %reldir%/dl_aarch64.S %reldir%/guardcalls_aarch64.S
libtmcore_a_SOURCES += %reldir%/helper_aarch64.S %reldir%/unwind_aarch64.S
endif
EXTRA_DIST += %reldir%/dl_x86_64.S %reldir%/dl_aarch64.S %reldir%/guardcalls_x86_64.S \
	%reldir%/guardcalls_aarch64.S %reldir%/helper_x86_64.S %reldir%/helper_aarch64.S \
	%reldir%/unwind_x86_64.S %reldir%/unwind_aarch64.S

# A throw passes through (H36).
%reldir%/libtmcore_a-cxx.$(OBJEXT): CFLAGS += -fexceptions
# Exports must stay jumps in every build, or the account would see our own addresses as callers.
%reldir%/libtiermalloc_so-interpose.$(OBJEXT): CFLAGS += -O2
%reldir%/libtiermalloc_so-interpose_cxx.$(OBJEXT): CFLAGS += -O2
%reldir%/libtmcore_a-family.$(OBJEXT): CFLAGS += -O2

include %reldir%/base/local.mk
include %reldir%/os/local.mk
include %reldir%/heap/local.mk
