# SPDX-License-Identifier: MIT
# Without the hooks nothing is linked in their place: shim/module.h asks for them by a weak reference.
if HAVE_CUDA
libtiermalloc_so_SOURCES +=
if HAVE_CUDA_HEADERS
libtiermalloc_so_SOURCES += %reldir%/verify.c
endif
endif
%reldir%/libtiermalloc_so-verify.$(OBJEXT): CPPFLAGS += $(TM_CUDA_CPPFLAGS)
