/* SPDX-License-Identifier: MIT */
/*
 * verify: compile-time assertions that our declarations match those of the CUDA Toolkit. Compiled
 * only if configure found its headers (12.5 or newer); the types of cuda_types.h are then the
 * Toolkit's.
 */
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <cuda_runtime_api.h>

#define TM_CUDA_TOOLKIT 1
#include "shim/base/cuda_types.h"

#define SAME(symbol, type)                                                                         \
	_Static_assert(__builtin_types_compatible_p(__typeof__(symbol), type),                     \
		       "cuda_api.def: " #symbol);
#define D(symbol, name, version, stream, kind, parameters, arguments)                              \
	SAME(symbol, tm_cu_result parameters)
#define U(symbol, version, parameters, arguments) SAME(symbol, tm_cu_result parameters)
#define R(symbol, kind, parameters, arguments) SAME(symbol, tm_rt_error parameters)
#include "shim/base/cuda_api.def"

#define VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours);
VALUE(TM_CU_SUCCESS, CUDA_SUCCESS)
VALUE(TM_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE)
VALUE(TM_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY)
VALUE(TM_CU_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED)
VALUE(TM_CU_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED)
VALUE(TM_CU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT)
VALUE(TM_CU_NOT_READY, CUDA_ERROR_NOT_READY)
VALUE(TM_CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED)
VALUE(TM_CU_CAPTURE_FIRST, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
VALUE(TM_CU_CAPTURE_LAST, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
VALUE(TM_CU_CAPTURE_INVALIDATED, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
VALUE(TM_RT_NO_RUNTIME, cudaErrorInitializationError)
VALUE(TM_CU_POINTER_BUFFER_ID, CU_POINTER_ATTRIBUTE_BUFFER_ID)
VALUE(TM_CU_POINTER_P2P_TOKENS, CU_POINTER_ATTRIBUTE_P2P_TOKENS)
VALUE(TM_CU_POINTER_BLOCK_ID, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID)
VALUE(TM_CU_DEVICE_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
VALUE(TM_CU_DEVICE_POSIX_FD, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)
VALUE(TM_CU_DEVICE_RDMA_VMM, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED)
VALUE(TM_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING)
VALUE(TM_CU_HOST_WRITECOMBINED, CU_MEMHOSTALLOC_WRITECOMBINED)
VALUE(TM_CU_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED)
VALUE(TM_CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE)
VALUE(TM_CU_HANDLE_POSIX_FD, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
VALUE(TM_CU_ACCESS_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
VALUE(TM_CU_IPC_HANDLE_BYTES, CU_IPC_HANDLE_SIZE)

/* Structures that the hooks fill in or read by our own declaration. */
_Static_assert(sizeof(CUmemAllocationProp) == 32 && offsetof(CUmemAllocationProp, location) == 8 &&
		       offsetof(CUmemAllocationProp, allocFlags) == 24 &&
		       offsetof(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable) == 25,
	       "tm_cu_prop");
_Static_assert(sizeof(CUmemAccessDesc) == 12 && offsetof(CUmemAccessDesc, flags) == 8,
	       "tm_cu_access");
_Static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR) == 24 && offsetof(CUDA_ARRAY_DESCRIPTOR, Format) == 16,
	       "tm_cu_array_shape");
_Static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40 &&
		       offsetof(CUDA_ARRAY3D_DESCRIPTOR, Format) == 24,
	       "tm_cu_array3d_shape");
_Static_assert(sizeof(struct cudaPitchedPtr) == 32 && sizeof(struct cudaExtent) == 24 &&
		       sizeof(struct cudaChannelFormatDesc) == 20 &&
		       sizeof(cudaIpcMemHandle_t) == 64,
	       "types of the runtime");
