/* SPDX-License-Identifier: MIT */
/*
 * cuda_types: the types of the CUDA driver and runtime interfaces that cuda_api.def needs.
 *
 * Declared here so that the hooks compile without the CUDA Toolkit. If the Toolkit is found,
 * cuda_hooks/verify.c defines TM_CUDA_TOOLKIT, which makes these names aliases of the Toolkit's
 * types, and asserts that every row of the table has exactly the type that the Toolkit declares.
 */
#ifndef TM_BASE_CUDA_TYPES_H
#define TM_BASE_CUDA_TYPES_H

#include "shim/base/attrs.h"

/* Values of CUresult that the hooks return or check. */
#define TM_CU_SUCCESS 0
#define TM_CU_INVALID_VALUE 1
#define TM_CU_OUT_OF_MEMORY 2
#define TM_CU_NOT_INITIALIZED 3
#define TM_CU_DEINITIALIZED 4
#define TM_CU_INVALID_CONTEXT 201
#define TM_CU_NOT_READY 600
#define TM_CU_NOT_SUPPORTED 801
#define TM_CU_CAPTURE_FIRST 900
#define TM_CU_CAPTURE_INVALIDATED 901
#define TM_CU_CAPTURE_LAST 908

/* Value of cudaError_t: result of a call if no CUDA runtime is loaded. */
#define TM_RT_NO_RUNTIME 3 /* cudaErrorInitializationError */

/* CUpointer_attribute */
#define TM_CU_POINTER_P2P_TOKENS 5
#define TM_CU_POINTER_BUFFER_ID 7
#define TM_CU_POINTER_BLOCK_ID 20

/* CUdevice_attribute */
#define TM_CU_DEVICE_VMM 102
#define TM_CU_DEVICE_POSIX_FD 103
#define TM_CU_DEVICE_RDMA_VMM 110

#define TM_CU_EVENT_DISABLE_TIMING 2u
#define TM_CU_HOST_WRITECOMBINED 4u
#define TM_CU_ALLOCATION_PINNED 1
#define TM_CU_LOCATION_DEVICE 1
#define TM_CU_HANDLE_POSIX_FD 1
#define TM_CU_ACCESS_READWRITE 3
#define TM_CU_IPC_HANDLE_BYTES 64

#if defined(TM_CUDA_TOOLKIT) && TM_CUDA_TOOLKIT
typedef CUresult tm_cu_result;
typedef CUdevice tm_cu_device;
typedef CUdeviceptr tm_cu_ptr;
typedef CUcontext tm_cu_context;
typedef CUstream tm_cu_stream;
typedef CUevent tm_cu_event;
typedef CUgraph tm_cu_graph;
typedef CUgraphNode tm_cu_node;
typedef CUgraphEdgeData tm_cu_edge;
typedef CUarray tm_cu_array;
typedef CUmipmappedArray tm_cu_mipmap;
typedef CUmemoryPool tm_cu_mempool;
typedef CUmemPoolPtrExportData tm_cu_pool_export;
typedef CUmemGenericAllocationHandle tm_cu_handle;
typedef CUmemAllocationProp tm_cu_prop;
typedef CUmemAccessDesc tm_cu_access;
typedef CUmemAllocationHandleType tm_cu_handle_type;
typedef CUmemRangeHandleType tm_cu_range_type;
typedef CUmemAllocationGranularity_flags tm_cu_grain;
typedef CUpointer_attribute tm_cu_pointer_attribute;
typedef CUdevice_attribute tm_cu_device_attribute;
typedef CUstreamCaptureMode tm_cu_capture_mode;
typedef CUstreamCaptureStatus tm_cu_capture_status;
typedef CUdriverProcAddressQueryResult tm_cu_lookup_result;
typedef CUipcMemHandle tm_cu_ipc;
typedef CUDA_ARRAY_DESCRIPTOR tm_cu_array_shape;
typedef CUDA_ARRAY3D_DESCRIPTOR tm_cu_array3d_shape;
typedef cudaError_t tm_rt_error;
typedef cudaStream_t tm_rt_stream;
typedef cudaMemPool_t tm_rt_mempool;
typedef cudaArray_t tm_rt_array;
typedef cudaMipmappedArray_t tm_rt_mipmap;
typedef struct cudaPitchedPtr tm_rt_pitched;
typedef struct cudaExtent tm_rt_extent;
typedef struct cudaChannelFormatDesc tm_rt_format;
typedef cudaIpcMemHandle_t tm_rt_ipc;
#else
typedef int tm_cu_result;
typedef int tm_cu_device;
typedef unsigned long long tm_cu_ptr;
typedef struct tm_cu_context_opaque *tm_cu_context;
typedef struct tm_cu_stream_opaque *tm_cu_stream;
typedef struct tm_cu_event_opaque *tm_cu_event;
typedef struct tm_cu_graph_opaque *tm_cu_graph;
typedef struct tm_cu_node_opaque *tm_cu_node;
typedef struct tm_cu_edge_opaque tm_cu_edge;
typedef struct tm_cu_array_opaque *tm_cu_array;
typedef struct tm_cu_mipmap_opaque *tm_cu_mipmap;
typedef struct tm_cu_mempool_opaque *tm_cu_mempool;
typedef struct tm_cu_pool_export_opaque tm_cu_pool_export;
typedef unsigned long long tm_cu_handle;
typedef int tm_cu_handle_type;
typedef int tm_cu_range_type;
typedef int tm_cu_grain;
typedef int tm_cu_pointer_attribute;
typedef int tm_cu_device_attribute;
typedef int tm_cu_capture_mode;
typedef int tm_cu_capture_status;
typedef int tm_cu_lookup_result;

typedef struct {
	char reserved[TM_CU_IPC_HANDLE_BYTES];
} tm_cu_ipc;

typedef struct {
	int type;
	int id;
} tm_cu_location;

typedef struct {
	int type;
	int requestedHandleTypes;
	tm_cu_location location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType;
		unsigned char gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} tm_cu_prop;

typedef struct {
	tm_cu_location location;
	int flags;
} tm_cu_access;

typedef struct {
	size_t Width;
	size_t Height;
	int Format;
	unsigned int NumChannels;
} tm_cu_array_shape;

typedef struct {
	size_t Width;
	size_t Height;
	size_t Depth;
	int Format;
	unsigned int NumChannels;
	unsigned int Flags;
} tm_cu_array3d_shape;

typedef int tm_rt_error;
typedef tm_cu_stream tm_rt_stream;
typedef tm_cu_mempool tm_rt_mempool;
typedef struct tm_rt_array_opaque *tm_rt_array;
typedef struct tm_rt_mipmap_opaque *tm_rt_mipmap;

typedef struct {
	void *ptr;
	size_t pitch;
	size_t xsize;
	size_t ysize;
} tm_rt_pitched;

typedef struct {
	size_t width;
	size_t height;
	size_t depth;
} tm_rt_extent;

typedef struct {
	int x;
	int y;
	int z;
	int w;
	int f;
} tm_rt_format;

typedef tm_cu_ipc tm_rt_ipc;
#endif

#endif
