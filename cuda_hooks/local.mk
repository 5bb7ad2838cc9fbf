# SPDX-License-Identifier: MIT
# Without the hooks nothing is linked in their place: shim/module.h asks for them by a weak reference.
if HAVE_CUDA
libtiermalloc_so_SOURCES += \
	%reldir%/caller.c \
	%reldir%/caller.h \
	%reldir%/capture.c \
	%reldir%/capture.h \
	%reldir%/context.c \
	%reldir%/context.h \
	%reldir%/device_block.h \
	%reldir%/device_free.c \
	%reldir%/device_mem.c \
	%reldir%/device_mem.h \
	%reldir%/driver.c \
	%reldir%/driver.h \
	%reldir%/hooks.c \
	%reldir%/hooks.h \
	%reldir%/host_mem.c \
	%reldir%/life.c \
	%reldir%/module.c \
	%reldir%/note.c \
	%reldir%/note.h \
	%reldir%/other_mem.c \
	%reldir%/pools.c \
	%reldir%/pools.h \
	%reldir%/runtime.c
# The rest can be tested without a driver.
libtmcore_a_SOURCES += \
	%reldir%/memory.c \
	%reldir%/memory.h \
	%reldir%/pool_cache.c \
	%reldir%/pool_cache.h \
	%reldir%/pool_slab.c \
	%reldir%/pool_slab.h \
	%reldir%/pool_vmm.c \
	%reldir%/pool_vmm.h \
	%reldir%/sites.c \
	%reldir%/sites.h \
	%reldir%/track.c \
	%reldir%/track.h
if HAVE_CUDA_HEADERS
libtiermalloc_so_SOURCES += %reldir%/verify.c
endif
endif
%reldir%/libtiermalloc_so-verify.$(OBJEXT): CPPFLAGS += $(TM_CUDA_CPPFLAGS)
