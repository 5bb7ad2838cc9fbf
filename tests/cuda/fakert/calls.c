/* SPDX-License-Identifier: MIT */
/* calls: the runtime's functions, each the driver's with the device made current first. */
#include "tests/cuda/fakert/rt.h"

/* Begin, do, note the error: what almost every function here is. */
#define CALL(...)                                                                                  \
	do {                                                                                       \
		int rc = rt_begin();                                                               \
		if (rc == CUDA_SUCCESS)                                                            \
			rc = __VA_ARGS__;                                                          \
		return rt_end(rc);                                                                 \
	} while (0)

#define AT(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

/* --- memory ----------------------------------------------------------------------------------- */

static int device_pointer(int rc, void **pointer, CUdeviceptr at)
{
	if (rc == CUDA_SUCCESS)
		*pointer = (void *)(uintptr_t)at;
	return rc;
}

/* No bytes is a NULL pointer here, and an error for the driver. */
RT_EXPORT cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
	CUdeviceptr at = 0;
	int rc = pointer == NULL ? cudaErrorInvalidValue : rt_begin();
	if (rc == CUDA_SUCCESS && bytes > 0)
		rc = rt.cuMemAlloc_v2(&at, bytes);
	return rt_end(device_pointer(rc, pointer, at));
}

RT_EXPORT cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
	CUdeviceptr at = 0;
	int rc = pointer == NULL || pitch == NULL ? cudaErrorInvalidValue : rt_begin();
	if (rc == CUDA_SUCCESS)
		rc = rt.cuMemAllocPitch_v2(&at, pitch, width, height, 4);
	return rt_end(device_pointer(rc, pointer, at));
}

RT_EXPORT cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pointer, struct cudaExtent extent)
{
	CUdeviceptr at = 0;
	int rc = pointer == NULL ? cudaErrorInvalidValue : rt_begin();
	if (rc == CUDA_SUCCESS)
		rc = rt.cuMemAllocPitch_v2(&at, &pointer->pitch, extent.width,
					   extent.height * extent.depth, 4);
	if (rc != CUDA_SUCCESS)
		return rt_end(rc);
	pointer->ptr = (void *)(uintptr_t)at;
	pointer->xsize = extent.width;
	pointer->ysize = extent.height;
	return cudaSuccess;
}

RT_EXPORT cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags)
{
	CUdeviceptr at = 0;
	int rc = pointer == NULL ? cudaErrorInvalidValue : rt_begin();
	if (rc == CUDA_SUCCESS)
		rc = rt.cuMemAllocManaged(&at, bytes, flags);
	return rt_end(device_pointer(rc, pointer, at));
}

RT_EXPORT cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
	CALL(rt.cuMemHostAlloc(pointer, bytes, 0));
}

RT_EXPORT cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
	CALL(rt.cuMemHostAlloc(pointer, bytes, flags));
}

static int format_of(const struct cudaChannelFormatDesc *desc)
{
	return desc->x == 32 ? 0x20 : desc->x == 16 ? 2 : 1;
}

RT_EXPORT cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
				      size_t width, size_t height, unsigned flags)
{
	CUDA_ARRAY_DESCRIPTOR d = {width, height, 1, 1};
	(void)flags;
	if (desc == NULL)
		return rt_end(cudaErrorInvalidValue);
	d.Format = format_of(desc);
	CALL(rt.cuArrayCreate_v2(array, &d));
}

RT_EXPORT cudaError_t cudaMalloc3DArray(cudaArray_t *array,
					const struct cudaChannelFormatDesc *desc,
					struct cudaExtent extent, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {extent.width, extent.height, extent.depth, 1, 1, flags};
	if (desc == NULL)
		return rt_end(cudaErrorInvalidValue);
	d.Format = format_of(desc);
	CALL(rt.cuArray3DCreate_v2(array, &d));
}

RT_EXPORT cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array,
					       const struct cudaChannelFormatDesc *desc,
					       struct cudaExtent extent, unsigned levels,
					       unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {extent.width, extent.height, extent.depth, 1, 1, flags};
	if (desc == NULL)
		return rt_end(cudaErrorInvalidValue);
	d.Format = format_of(desc);
	CALL(rt.cuMipmappedArrayCreate(array, &d, levels));
}

RT_EXPORT cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
	CALL(rt.cuMipmappedArrayDestroy(array));
}

RT_EXPORT cudaError_t cudaFreeArray(cudaArray_t array)
{
	CALL(rt.cuArrayDestroy(array));
}

RT_EXPORT cudaError_t cudaFree(void *pointer)
{
	CALL(pointer == NULL ? CUDA_SUCCESS : rt.cuMemFree_v2(AT(pointer)));
}

RT_EXPORT cudaError_t cudaFreeHost(void *pointer)
{
	CALL(pointer == NULL ? CUDA_SUCCESS : rt.cuMemFreeHost(pointer));
}

RT_EXPORT cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags)
{
	CALL(rt.cuMemHostRegister_v2(pointer, bytes, flags));
}

RT_EXPORT cudaError_t cudaHostUnregister(void *pointer)
{
	CALL(rt.cuMemHostUnregister(pointer));
}

RT_EXPORT cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
	CALL(rt.cuMemGetInfo_v2(available, total));
}

RT_EXPORT cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream)
{
	CUdeviceptr at = 0;
	int rc = pointer == NULL ? cudaErrorInvalidValue : rt_begin();
	if (rc == CUDA_SUCCESS)
		rc = rt.cuMemAllocAsync(&at, bytes, stream);
	return rt_end(device_pointer(rc, pointer, at));
}

RT_EXPORT cudaError_t cudaMallocAsync_ptsz(void **pointer, size_t bytes, cudaStream_t stream)
{
	CUdeviceptr at = 0;
	int rc = pointer == NULL ? cudaErrorInvalidValue : rt_begin();
	if (rc == CUDA_SUCCESS)
		rc = rt.cuMemAllocAsync_own(&at, bytes, stream);
	return rt_end(device_pointer(rc, pointer, at));
}

RT_EXPORT cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool,
					      cudaStream_t stream)
{
	CUdeviceptr at = 0;
	int rc = pointer == NULL ? cudaErrorInvalidValue : rt_begin();
	if (rc == CUDA_SUCCESS)
		rc = rt.cuMemAllocFromPoolAsync(&at, bytes, pool, stream);
	return rt_end(device_pointer(rc, pointer, at));
}

RT_EXPORT cudaError_t cudaMallocFromPoolAsync_ptsz(void **pointer, size_t bytes, cudaMemPool_t pool,
						   cudaStream_t stream)
{
	CUdeviceptr at = 0;
	int rc = pointer == NULL ? cudaErrorInvalidValue : rt_begin();
	if (rc == CUDA_SUCCESS)
		rc = rt.cuMemAllocFromPoolAsync_own(&at, bytes, pool, stream);
	return rt_end(device_pointer(rc, pointer, at));
}

RT_EXPORT cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
	CALL(rt.cuMemFreeAsync(AT(pointer), stream));
}

RT_EXPORT cudaError_t cudaFreeAsync_ptsz(void *pointer, cudaStream_t stream)
{
	CALL(rt.cuMemFreeAsync_own(AT(pointer), stream));
}

RT_EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	CALL(rt.cuDeviceGetDefaultMemPool(pool, device));
}

RT_EXPORT cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value)
{
	CALL(rt.cuMemPoolSetAttribute(pool, attribute, value));
}

RT_EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	CALL(rt.cuMemPoolTrimTo(pool, keep));
}

/* --- what a pointer is, other processes ------------------------------------------------------- */

RT_EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *ret,
					       const void *pointer)
{
	int type = 0, managed = 0, ordinal = -2, rc;
	void *device = NULL, *host = NULL;
	int names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
		       CU_POINTER_ATTRIBUTE_HOST_POINTER};
	void *data[] = {&type, &managed, &ordinal, &device, &host};
	if (ret == NULL)
		return rt_end(cudaErrorInvalidValue);
	rc = rt_begin();
	if (rc == CUDA_SUCCESS)
		rc = rt.cuPointerGetAttributes(5, names, data, AT(pointer));
	if (rc != CUDA_SUCCESS)
		return rt_end(rc);
	ret->type = managed ? cudaMemoryTypeManaged : type;
	ret->device = ordinal;
	ret->devicePointer = device;
	ret->hostPointer = host;
	return cudaSuccess;
}

RT_EXPORT cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
	CALL(rt.cuIpcGetMemHandle(handle, AT(pointer)));
}

RT_EXPORT cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle,
					   unsigned flags)
{
	CUdeviceptr at = 0;
	int rc = pointer == NULL ? cudaErrorInvalidValue : rt_begin();
	if (rc == CUDA_SUCCESS)
		rc = rt.cuIpcOpenMemHandle_v2(&at, handle, flags);
	return rt_end(device_pointer(rc, pointer, at));
}

RT_EXPORT cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
	CALL(rt.cuIpcCloseMemHandle(AT(pointer)));
}

/* --- work ------------------------------------------------------------------------------------- */

RT_EXPORT cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	(void)kind;
	CALL(rt.cuMemcpy(AT(to), AT(from), bytes));
}

RT_EXPORT cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
				      cudaStream_t stream)
{
	(void)kind;
	CALL(rt.cuMemcpyAsync(AT(to), AT(from), bytes, stream));
}

RT_EXPORT cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
	CALL(rt.cuMemsetD8_v2(AT(to), (unsigned char)value, bytes));
}

RT_EXPORT cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
	CALL(rt.cuMemsetD8Async(AT(to), (unsigned char)value, bytes, stream));
}

RT_EXPORT cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	CALL(rt.cuStreamCreate(stream, 0));
}

RT_EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	CALL(rt.cuStreamCreate(stream, flags));
}

RT_EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	CALL(rt.cuStreamDestroy_v2(stream));
}

RT_EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	CALL(rt.cuStreamSynchronize(stream));
}

RT_EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	CALL(rt.cuStreamQuery(stream));
}

RT_EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode)
{
	CALL(rt.cuStreamBeginCapture_v2(stream, mode));
}

RT_EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	CALL(rt.cuStreamEndCapture(stream, graph));
}

RT_EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
					   unsigned long long flags)
{
	CALL(rt.cuGraphInstantiateWithFlags(exec, graph, flags));
}

RT_EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	CALL(rt.cuGraphLaunch(exec, stream));
}

RT_EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	CALL(rt.cuGraphDestroy(graph));
}

RT_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	CALL(rt.cuGraphExecDestroy(exec));
}

RT_EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	CALL(rt.cuEventCreate(event, 0));
}

RT_EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	CALL(rt.cuEventDestroy_v2(event));
}

RT_EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	CALL(rt.cuEventRecord(event, stream));
}

RT_EXPORT cudaError_t cudaEventQuery(cudaEvent_t event)
{
	CALL(rt.cuEventQuery(event));
}

RT_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	CALL(rt.cuEventSynchronize(event));
}
