/* SPDX-License-Identifier: MIT */
/*
 * interpose_cxx: operator new and delete under their linkage names: jumps through tm_root.ops, as in
 * interpose.c. All forms meet in one heap, so that mixtures of them work (H39).
 */
#include "shim/base/attrs.h"
#include "shim/boot.h"

/* The Itanium ABI's names; a reference to std::nothrow_t is a pointer that nobody looks at. */
#define DECLARE(result, name, ...) TM_EXPORT result name(__VA_ARGS__)

DECLARE(void *, _Znwm, size_t size);
DECLARE(void *, _Znam, size_t size);
DECLARE(void *, _ZnwmRKSt9nothrow_t, size_t size, const void *nothrow);
DECLARE(void *, _ZnamRKSt9nothrow_t, size_t size, const void *nothrow);
DECLARE(void *, _ZnwmSt11align_val_t, size_t size, size_t align);
DECLARE(void *, _ZnamSt11align_val_t, size_t size, size_t align);
DECLARE(void *, _ZnwmSt11align_val_tRKSt9nothrow_t, size_t size, size_t align, const void *nothrow);
DECLARE(void *, _ZnamSt11align_val_tRKSt9nothrow_t, size_t size, size_t align, const void *nothrow);
DECLARE(void, _ZdlPv, void *p);
DECLARE(void, _ZdaPv, void *p);
DECLARE(void, _ZdlPvm, void *p, size_t size);
DECLARE(void, _ZdaPvm, void *p, size_t size);
DECLARE(void, _ZdlPvRKSt9nothrow_t, void *p, const void *nothrow);
DECLARE(void, _ZdaPvRKSt9nothrow_t, void *p, const void *nothrow);
DECLARE(void, _ZdlPvSt11align_val_t, void *p, size_t align);
DECLARE(void, _ZdaPvSt11align_val_t, void *p, size_t align);
DECLARE(void, _ZdlPvmSt11align_val_t, void *p, size_t size, size_t align);
DECLARE(void, _ZdaPvmSt11align_val_t, void *p, size_t size, size_t align);
DECLARE(void, _ZdlPvSt11align_val_tRKSt9nothrow_t, void *p, size_t align, const void *nothrow);
DECLARE(void, _ZdaPvSt11align_val_tRKSt9nothrow_t, void *p, size_t align, const void *nothrow);

void *_Znwm(size_t size)
{
	return tm_root.ops.op_new(size);
}

void *_Znam(size_t size)
{
	return tm_root.ops.op_new(size);
}

void *_ZnwmRKSt9nothrow_t(size_t size, const void *nothrow)
{
	(void)nothrow;
	return tm_root.ops.op_new_nothrow(size);
}

void *_ZnamRKSt9nothrow_t(size_t size, const void *nothrow)
{
	(void)nothrow;
	return tm_root.ops.op_new_nothrow(size);
}

void *_ZnwmSt11align_val_t(size_t size, size_t align)
{
	return tm_root.ops.op_new_aligned(size, align);
}

void *_ZnamSt11align_val_t(size_t size, size_t align)
{
	return tm_root.ops.op_new_aligned(size, align);
}

void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const void *nothrow)
{
	(void)nothrow;
	return tm_root.ops.op_new_aligned_nothrow(size, align);
}

void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const void *nothrow)
{
	(void)nothrow;
	return tm_root.ops.op_new_aligned_nothrow(size, align);
}

void _ZdlPv(void *p)
{
	tm_root.ops.op_delete(p);
}

void _ZdaPv(void *p)
{
	tm_root.ops.op_delete(p);
}

void _ZdlPvm(void *p, size_t size)
{
	tm_root.ops.op_delete_sized(p, size);
}

void _ZdaPvm(void *p, size_t size)
{
	tm_root.ops.op_delete_sized(p, size);
}

void _ZdlPvRKSt9nothrow_t(void *p, const void *nothrow)
{
	(void)nothrow;
	tm_root.ops.op_delete(p);
}

void _ZdaPvRKSt9nothrow_t(void *p, const void *nothrow)
{
	(void)nothrow;
	tm_root.ops.op_delete(p);
}

void _ZdlPvSt11align_val_t(void *p, size_t align)
{
	(void)align;
	tm_root.ops.op_delete(p);
}

void _ZdaPvSt11align_val_t(void *p, size_t align)
{
	(void)align;
	tm_root.ops.op_delete(p);
}

void _ZdlPvmSt11align_val_t(void *p, size_t size, size_t align)
{
	(void)align;
	(void)size; /* aligned blocks are asked for as multiples of their alignment */
	tm_root.ops.op_delete(p);
}

void _ZdaPvmSt11align_val_t(void *p, size_t size, size_t align)
{
	(void)align;
	(void)size; /* aligned blocks are asked for as multiples of their alignment */
	tm_root.ops.op_delete(p);
}

void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *p, size_t align, const void *nothrow)
{
	(void)align;
	(void)nothrow;
	tm_root.ops.op_delete(p);
}

void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *p, size_t align, const void *nothrow)
{
	(void)align;
	(void)nothrow;
	tm_root.ops.op_delete(p);
}
