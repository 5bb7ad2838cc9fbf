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
	%reldir%/boot.c \
	%reldir%/boot.h \
	%reldir%/core.c \
	%reldir%/cxx.c \
	%reldir%/cxx.h \
	%reldir%/dl.c \
	%reldir%/dl.h \
	%reldir%/early.c \
	%reldir%/early.h \
	%reldir%/elf.c \
	%reldir%/elf.h \
	%reldir%/family.c \
	%reldir%/family.h \
	%reldir%/foreign.c \
	%reldir%/foreign.h \
	%reldir%/fork.c \
	%reldir%/fork.h \
	%reldir%/guard_pages.c \
	%reldir%/guard_pages.h \
	%reldir%/helper.c \
	%reldir%/helper.h \
	%reldir%/ledger/callsite.c \
	%reldir%/ledger/callsite.h \
	%reldir%/ledger/census.c \
	%reldir%/ledger/census.h \
	%reldir%/ledger/decisions.c \
	%reldir%/ledger/decisions.h \
	%reldir%/ledger/deep.c \
	%reldir%/ledger/deep.h \
	%reldir%/ledger/epoch.c \
	%reldir%/ledger/epoch.h \
	%reldir%/ledger/epoch_records.c \
	%reldir%/ledger/epoch_records.h \
	%reldir%/ledger/ledger.c \
	%reldir%/ledger/ledger.h \
	%reldir%/ledger/ledger_areas.c \
	%reldir%/ledger/ledger_areas.h \
	%reldir%/ledger/ledger_copy.c \
	%reldir%/ledger/ledger_copy.h \
	%reldir%/ledger/ledger_file.c \
	%reldir%/ledger/ledger_file.h \
	%reldir%/ledger/ledger_granules.c \
	%reldir%/ledger/ledger_granules.h \
	%reldir%/ledger/modules.c \
	%reldir%/ledger/modules.h \
	%reldir%/ledger/python.c \
	%reldir%/ledger/python.h \
	%reldir%/ledger/samples.c \
	%reldir%/ledger/samples.h \
	%reldir%/ledger/sheet.c \
	%reldir%/ledger/sheet.h \
	%reldir%/ledger/sizes.c \
	%reldir%/ledger/sizes.h \
	%reldir%/medium.c \
	%reldir%/medium.h \
	%reldir%/module.h \
	%reldir%/passive.c \
	%reldir%/passive.h \
	%reldir%/places.c \
	%reldir%/places.h \
	%reldir%/pooling.c \
	%reldir%/pooling.h \
	%reldir%/report.c \
	%reldir%/report.h \
	%reldir%/report_command.c \
	%reldir%/report_command.h \
	%reldir%/routing.c \
	%reldir%/routing.h \
	%reldir%/ruling.c \
	%reldir%/ruling.h \
	%reldir%/scan/scan.c \
	%reldir%/scan/scan.h \
	%reldir%/scan/scan_image.c \
	%reldir%/scan/scan_image.h \
	%reldir%/scan/scan_memory.c \
	%reldir%/scan/scan_memory.h \
	%reldir%/scan/scan_suspects.c \
	%reldir%/scan/scan_suspects.h \
	%reldir%/source_drop.c \
	%reldir%/source_drop.h \
	%reldir%/thread.c \
	%reldir%/thread.h \
	%reldir%/trace.c \
	%reldir%/trace.h \
	%reldir%/unwind/unwind.c \
	%reldir%/unwind/unwind.h \
	%reldir%/unwind/unwind_cfi.c \
	%reldir%/unwind/unwind_cfi.h \
	%reldir%/unwind/unwind_pages.c \
	%reldir%/unwind/unwind_pages.h

libtiermalloc_so_SOURCES += \
	%reldir%/api.c \
	%reldir%/guardcalls.c \
	%reldir%/interpose.c \
	%reldir%/interpose_cxx.c \
	%reldir%/interpose_dl.c \
	%reldir%/start.c

if ARCH_X86_64
libtiermalloc_so_SOURCES += %reldir%/dl_x86_64.S %reldir%/guardcalls_x86_64.S
libtmcore_a_SOURCES += %reldir%/helper_x86_64.S %reldir%/unwind/unwind_x86_64.S
endif
if ARCH_AARCH64
libtiermalloc_so_SOURCES += %reldir%/dl_aarch64.S %reldir%/guardcalls_aarch64.S
libtmcore_a_SOURCES += %reldir%/helper_aarch64.S %reldir%/unwind/unwind_aarch64.S
endif
EXTRA_DIST += %reldir%/dl_x86_64.S %reldir%/dl_aarch64.S %reldir%/guardcalls_x86_64.S \
	%reldir%/guardcalls_aarch64.S %reldir%/helper_x86_64.S %reldir%/helper_aarch64.S \
	%reldir%/unwind/unwind_x86_64.S %reldir%/unwind/unwind_aarch64.S

# A throw passes through (H36).
%reldir%/libtmcore_a-cxx.$(OBJEXT): CFLAGS += -fexceptions
# Exports must stay jumps in every build, or the account would see our own addresses as callers.
%reldir%/libtiermalloc_so-interpose.$(OBJEXT): CFLAGS += -O2
%reldir%/libtiermalloc_so-interpose_cxx.$(OBJEXT): CFLAGS += -O2
%reldir%/libtmcore_a-family.$(OBJEXT): CFLAGS += -O2

include %reldir%/base/local.mk
include %reldir%/os/local.mk
include %reldir%/heap/local.mk
