/* SPDX-License-Identifier: MIT */
/* bind: finding the driver, the thread's device and last error. */
#include "tests/cuda/fakert/rt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifndef CUDART_VERSION
#define CUDART_VERSION 13000
#endif

struct rt_driver rt;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool bound, began;
static CUcontext primary[16];
static __thread int device;
static __thread cudaError_t last;

int rt_version(void)
{
	const char *text = getenv("TMFAKE_CUDART");
	return text != NULL ? atoi(text) : CUDART_VERSION;
}

static void *find(const char *export, const char *base, int version, uint64_t flags)
{
	void *fn = NULL;
	int status = -1;
	if (rt.get5 != NULL) {
		if (rt.get5(base, &fn, version, flags, &status) != CUDA_SUCCESS)
			fn = NULL;
	} else if (rt.get4 != NULL) {
		if (rt.get4(base, &fn, version, flags) != CUDA_SUCCESS)
			fn = NULL;
	} else {
		fn = dlsym(rt.handle, export);
	}
	return fn;
}

static void copy_pointer(void *to, void *fn)
{
	memcpy(to, &fn, sizeof(fn));
}

static void bind_all(void)
{
	void *again;
	if (rt_version() >= 12000)
		copy_pointer(&rt.get5, dlsym(rt.handle, "cuGetProcAddress_v2"));
	else if (rt_version() >= 11030)
		copy_pointer(&rt.get4, dlsym(rt.handle, "cuGetProcAddress"));
	/* The real one asks the getter for itself, both forms. */
	again = rt.get5 != NULL ? find("cuGetProcAddress_v2", "cuGetProcAddress", 12000, 0) : NULL;
	if (again != NULL)
		copy_pointer(&rt.get5, again);
	again = rt.get4 != NULL ? find("cuGetProcAddress", "cuGetProcAddress", 11030, 0) : NULL;
	if (again != NULL)
		copy_pointer(&rt.get4, again);
#define L(name, base, version, flags) copy_pointer(&rt.name, find(#name, base, version, flags));
#define P(name, base, version, flags)                                                              \
	copy_pointer(&rt.name##_own, find(#name "_ptsz", base, version, flags));
#include "tests/cuda/fakert/lookups.def"
#undef L
#undef P
}

cudaError_t rt_bind(void)
{
	pthread_mutex_lock(&lock);
	if (!bound) {
		rt.handle = dlopen("libcuda.so.1", RTLD_NOW);
		if (rt.handle != NULL)
			bind_all();
		bound = true;
	}
	pthread_mutex_unlock(&lock);
	return rt.handle == NULL || rt.cuInit == NULL ? cudaErrorInsufficientDriver : cudaSuccess;
}

/* The thread's device is made current where nothing else is. */
cudaError_t rt_begin(void)
{
	CUcontext now = NULL;
	int rc = rt_bind();
	if (rc != cudaSuccess)
		return rc;
	pthread_mutex_lock(&lock);
	if (!began) {
		rc = rt.cuInit(0);
		began = rc == CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	if (rc == CUDA_SUCCESS)
		rc = rt.cuCtxGetCurrent(&now);
	if (rc != CUDA_SUCCESS || now != NULL)
		return rc;
	pthread_mutex_lock(&lock);
	if (primary[device] == NULL)
		rc = rt.cuDevicePrimaryCtxRetain(&primary[device], device);
	pthread_mutex_unlock(&lock);
	return rc != CUDA_SUCCESS ? rc : rt.cuCtxSetCurrent(primary[device]);
}

cudaError_t rt_end(int rc)
{
	if (rc != cudaSuccess && rc != cudaErrorNotReady)
		last = rc;
	return rc;
}

RT_EXPORT cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (version == NULL)
		return rt_end(cudaErrorInvalidValue);
	*version = rt_version();
	return cudaSuccess;
}

RT_EXPORT cudaError_t cudaDriverGetVersion(int *version)
{
	int rc = rt_bind();
	if (version == NULL)
		return rt_end(cudaErrorInvalidValue);
	if (rc != cudaSuccess) {
		*version = 0;
		return cudaSuccess;
	}
	return rt_end(rt.cuDriverGetVersion(version));
}

RT_EXPORT cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last;
	last = cudaSuccess;
	return error;
}

RT_EXPORT cudaError_t cudaPeekAtLastError(void)
{
	return last;
}

RT_EXPORT const char *cudaGetErrorName(cudaError_t error)
{
	const char *text = NULL;
	if (rt_bind() != cudaSuccess || rt.cuGetErrorName(error, &text) != CUDA_SUCCESS)
		return "unrecognized error code";
	return text;
}

RT_EXPORT const char *cudaGetErrorString(cudaError_t error)
{
	return cudaGetErrorName(error);
}

RT_EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **fn,
						       unsigned version, unsigned long long flags,
						       int *status)
{
	int rc = rt_bind(), found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (rc != cudaSuccess)
		return rt_end(rc);
	if (symbol == NULL || fn == NULL)
		return rt_end(cudaErrorInvalidValue);
	*fn = NULL;
	if (rt.get5 != NULL)
		rc = rt.get5(symbol, fn, (int)version, flags, &found);
	else if (rt.get4 != NULL)
		rc = rt.get4(symbol, fn, (int)version, flags);
	if (status != NULL)
		*status = found;
	return rt_end(rc);
}

RT_EXPORT cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **fn,
					      unsigned long long flags, int *status)
{
	return cudaGetDriverEntryPointByVersion(symbol, fn, (unsigned)rt_version(), flags, status);
}

/* --- devices ---------------------------------------------------------------------------------- */

RT_EXPORT cudaError_t cudaGetDeviceCount(int *count)
{
	int rc = rt_bind();
	if (rc == cudaSuccess)
		rc = rt.cuInit(0);
	if (count != NULL)
		*count = 0;
	return rt_end(rc != cudaSuccess ? rc : rt.cuDeviceGetCount(count));
}

RT_EXPORT cudaError_t cudaSetDevice(int wanted)
{
	int count = 0, rc = cudaGetDeviceCount(&count);
	if (rc != cudaSuccess)
		return rt_end(rc);
	if (wanted < 0 || wanted >= count)
		return rt_end(cudaErrorInvalidDevice);
	device = wanted;
	pthread_mutex_lock(&lock);
	if (primary[device] == NULL)
		rc = rt.cuDevicePrimaryCtxRetain(&primary[device], device);
	pthread_mutex_unlock(&lock);
	return rt_end(rc != CUDA_SUCCESS ? rc : rt.cuCtxSetCurrent(primary[device]));
}

RT_EXPORT cudaError_t cudaGetDevice(int *ret_device)
{
	if (ret_device == NULL)
		return rt_end(cudaErrorInvalidValue);
	*ret_device = device;
	return cudaSuccess;
}

RT_EXPORT cudaError_t cudaDeviceSynchronize(void)
{
	int rc = rt_begin();
	return rt_end(rc != CUDA_SUCCESS ? rc : rt.cuCtxSynchronize());
}

RT_EXPORT cudaError_t cudaDeviceReset(void)
{
	int rc = rt_bind();
	return rt_end(rc != CUDA_SUCCESS ? rc : rt.cuDevicePrimaryCtxReset(device));
}

RT_EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int a, int b)
{
	int rc = rt_begin();
	return rt_end(rc != CUDA_SUCCESS ? rc : rt.cuDeviceCanAccessPeer(can, a, b));
}

static cudaError_t with_peer(int peer, CUcontext *ctx)
{
	int rc = rt_begin();
	if (rc == CUDA_SUCCESS)
		rc = rt.cuDevicePrimaryCtxRetain(ctx, peer);
	return rc;
}

RT_EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	CUcontext ctx;
	int rc = with_peer(peer, &ctx);
	return rt_end(rc != CUDA_SUCCESS ? rc : rt.cuCtxEnablePeerAccess(ctx, flags));
}

RT_EXPORT cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	CUcontext ctx;
	int rc = with_peer(peer, &ctx);
	return rt_end(rc != CUDA_SUCCESS ? rc : rt.cuCtxDisablePeerAccess(ctx));
}
