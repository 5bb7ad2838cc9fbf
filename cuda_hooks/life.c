/* SPDX-License-Identifier: MIT */
/*
 * life: hooks of calls about the driver itself: its contexts, captures and look-ups, and queries
 * about memory.
 */
#include "cuda_hooks/caller.h"
#include "cuda_hooks/context.h"
#include "cuda_hooks/device_mem.h"
#include "cuda_hooks/driver.h"
#include "cuda_hooks/hooks.h"
#include "cuda_hooks/track.h"

tm_cu_result tm_on_cuInit(unsigned int flags)
{
	tm_cu_result rc = tm_driver.cuInit(flags);
	if (rc == TM_CU_SUCCESS)
		tm_hooks_initialised();
	return rc;
}

/* --- lookups: the real answer first; replaced where it is one of ours ------------------------------- */

static void *looked_up(const char *symbol, void *found)
{
	tm_hooks_lock();
	tm_caller_asked(tm_hooks_thread.site);
	tm_hooks_unlock();
	return tm_driver_substitute(symbol, found);
}

tm_cu_result tm_on_cuGetProcAddress(const char *symbol, void **pfn, int version,
				    unsigned long flags)
{
	tm_cu_result rc = tm_driver.cuGetProcAddress(symbol, pfn, version, flags);
	if (rc == TM_CU_SUCCESS && symbol != NULL && pfn != NULL && *pfn != NULL)
		*pfn = looked_up(symbol, *pfn);
	return rc;
}

tm_cu_result tm_on_cuGetProcAddress_v2(const char *symbol, void **pfn, int version,
				       unsigned long flags, tm_cu_lookup_result *status)
{
	tm_cu_result rc = tm_driver.cuGetProcAddress_v2(symbol, pfn, version, flags, status);
	if (rc == TM_CU_SUCCESS && symbol != NULL && pfn != NULL && *pfn != NULL)
		*pfn = looked_up(symbol, *pfn);
	return rc;
}

/* --- contexts end: their memory went with them ---------------------------------------------------------- */

/*
 * [lock] The primary context of each device, as last retained. After a reset a program may continue
 * with the same handle, and reset it again.
 */
static tm_cu_context primaries[TM_TRACK_DEVICES];

static bool is_numbered(tm_cu_device device)
{
	return device >= 0 && device < (int)TM_TRACK_DEVICES;
}

static void learn_primary(tm_cu_context context, tm_cu_device device)
{
	uint16_t i;
	tm_hooks_lock();
	i = tm_context_of(context);
	if (i != 0)
		tm_context_at(i)->device = device;
	if (is_numbered(device))
		primaries[device] = context;
	tm_hooks_unlock();
}

tm_cu_result tm_on_cuDevicePrimaryCtxRetain(tm_cu_context *context, tm_cu_device device)
{
	tm_cu_result rc = tm_driver.cuDevicePrimaryCtxRetain(context, device);
	if (rc == TM_CU_SUCCESS)
		learn_primary(*context, device);
	return rc;
}

/*
 * Whether the driver reports the primary context as active (wanted 1) or inactive (0); false if it
 * can't tell.
 */
static bool is_said_to_be(int wanted, tm_cu_device device)
{
	unsigned int flags;
	int active = -1;
	return tm_driver.cuDevicePrimaryCtxGetState != NULL &&
	       tm_driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == TM_CU_SUCCESS &&
	       (active != 0) == (wanted != 0);
}

/*
 * To be called before a primary context may end: if it was retained unseen by the hooks, retains it
 * for a moment to learn its handle.
 */
static void know_primary(tm_cu_device device)
{
	tm_cu_context context;
	bool known;
	tm_hooks_lock();
	known = !is_numbered(device) || primaries[device] != NULL || !tm_context_any();
	tm_hooks_unlock();
	if (known || !is_said_to_be(1, device) || tm_driver.cuDevicePrimaryCtxRetain == NULL ||
	    tm_driver.cuDevicePrimaryCtxRetain(&context, device) != TM_CU_SUCCESS)
		return;
	if (tm_driver.cuDevicePrimaryCtxRelease_v2 != NULL)
		tm_driver.cuDevicePrimaryCtxRelease_v2(device);
	else if (tm_driver.cuDevicePrimaryCtxRelease != NULL)
		tm_driver.cuDevicePrimaryCtxRelease(device);
	learn_primary(context, device);
}

/* A reset keeps the handle; a last release gives it up. */
enum end { END_RESET, END_RELEASED };

static void forget_primary(tm_cu_device device, enum end end)
{
	uint16_t i;
	if (!is_numbered(device))
		return;
	tm_hooks_lock();
	i = tm_context_known(primaries[device]);
	if (i != 0)
		tm_device_forget_context(i);
	if (end == END_RELEASED)
		primaries[device] = NULL;
	tm_hooks_unlock();
}

/* Waits for other threads that use the primary context on the hooks' behalf. */
static struct tm_context_end end_of_primary(tm_cu_device device)
{
	tm_cu_context context;
	know_primary(device);
	tm_hooks_lock();
	context = is_numbered(device) ? primaries[device] : NULL;
	tm_hooks_unlock();
	return tm_context_end_begin(context);
}

/* What may end a primary context, and does if the call succeeded and `ended` holds then. */
#define END_PRIMARY(call, device, how, ended)                                                      \
	do {                                                                                       \
		struct tm_context_end end = end_of_primary(device);                                \
		tm_cu_result rc = (call);                                                          \
		if (rc == TM_CU_SUCCESS && (ended))                                                \
			forget_primary(device, how);                                               \
		tm_context_end_done(end);                                                          \
		return rc;                                                                         \
	} while (0)

/* The last release ends it. */
#define RELEASE_PRIMARY(call, device)                                                              \
	END_PRIMARY(call, device, END_RELEASED, is_said_to_be(0, device))
#define RESET_PRIMARY(call, device) END_PRIMARY(call, device, END_RESET, true)

tm_cu_result tm_on_cuDevicePrimaryCtxRelease(tm_cu_device device)
{
	RELEASE_PRIMARY(tm_driver.cuDevicePrimaryCtxRelease(device), device);
}

tm_cu_result tm_on_cuDevicePrimaryCtxRelease_v2(tm_cu_device device)
{
	RELEASE_PRIMARY(tm_driver.cuDevicePrimaryCtxRelease_v2(device), device);
}

tm_cu_result tm_on_cuDevicePrimaryCtxReset(tm_cu_device device)
{
	RESET_PRIMARY(tm_driver.cuDevicePrimaryCtxReset(device), device);
}

tm_cu_result tm_on_cuDevicePrimaryCtxReset_v2(tm_cu_device device)
{
	RESET_PRIMARY(tm_driver.cuDevicePrimaryCtxReset_v2(device), device);
}

#define DESTROY(call, context)                                                                     \
	do {                                                                                       \
		struct tm_context_end end = tm_context_end_begin(context);                         \
		tm_cu_result rc = (call);                                                          \
		if (rc == TM_CU_SUCCESS)                                                           \
			forget(context);                                                           \
		tm_context_end_done(end);                                                          \
		return rc;                                                                         \
	} while (0)

static void forget(tm_cu_context context)
{
	uint16_t i;
	tm_hooks_lock();
	i = tm_context_known(context);
	if (i != 0)
		tm_device_forget_context(i);
	tm_hooks_unlock();
}

tm_cu_result tm_on_cuCtxDestroy(tm_cu_context context)
{
	DESTROY(tm_driver.cuCtxDestroy(context), context);
}

tm_cu_result tm_on_cuCtxDestroy_v2(tm_cu_context context)
{
	DESTROY(tm_driver.cuCtxDestroy_v2(context), context);
}

/* --- peers ---------------------------------------------------------------------------------------------- */

tm_cu_result tm_on_cuCtxEnablePeerAccess(tm_cu_context peer, unsigned int flags)
{
	tm_cu_result rc = tm_driver.cuCtxEnablePeerAccess(peer, flags);
	if (rc == TM_CU_SUCCESS)
		tm_device_peer(peer, TM_DEVICE_PEER_ADDED);
	return rc;
}

tm_cu_result tm_on_cuCtxDisablePeerAccess(tm_cu_context peer)
{
	tm_cu_result rc = tm_driver.cuCtxDisablePeerAccess(peer);
	if (rc == TM_CU_SUCCESS)
		tm_device_peer(peer, TM_DEVICE_PEER_REMOVED);
	return rc;
}

/* --- captures ------------------------------------------------------------------------------------------- */

/*
 * The capture is counted before it begins, so that no other thread waits for the device meanwhile.
 */
#define BEGIN(stream, form, call)                                                                  \
	do {                                                                                       \
		struct tm_capture capture = tm_capture_of(stream, form);                           \
		tm_cu_result rc;                                                                   \
		tm_capture_begun(&capture);                                                        \
		rc = (call);                                                                       \
		if (rc != TM_CU_SUCCESS)                                                           \
			tm_capture_over(&capture);                                                 \
		return rc;                                                                         \
	} while (0)

tm_cu_result tm_on_cuStreamBeginCapture(tm_cu_stream stream)
{
	BEGIN(stream, TM_CAPTURE_ANY, tm_driver.cuStreamBeginCapture(stream));
}

tm_cu_result tm_on_cuStreamBeginCapture_ptsz(tm_cu_stream stream)
{
	BEGIN(stream, TM_CAPTURE_PTDS, tm_driver.cuStreamBeginCapture_ptsz(stream));
}

tm_cu_result tm_on_cuStreamBeginCapture_v2(tm_cu_stream stream, tm_cu_capture_mode mode)
{
	BEGIN(stream, TM_CAPTURE_ANY, tm_driver.cuStreamBeginCapture_v2(stream, mode));
}

tm_cu_result tm_on_cuStreamBeginCapture_v2_ptsz(tm_cu_stream stream, tm_cu_capture_mode mode)
{
	BEGIN(stream, TM_CAPTURE_PTDS, tm_driver.cuStreamBeginCapture_v2_ptsz(stream, mode));
}

tm_cu_result tm_on_cuStreamBeginCaptureToGraph(tm_cu_stream stream, tm_cu_graph graph,
					       const tm_cu_node *nodes, const tm_cu_edge *edges,
					       size_t count, tm_cu_capture_mode mode)
{
	BEGIN(stream, TM_CAPTURE_ANY,
	      tm_driver.cuStreamBeginCaptureToGraph(stream, graph, nodes, edges, count, mode));
}

tm_cu_result tm_on_cuStreamBeginCaptureToGraph_ptsz(tm_cu_stream stream, tm_cu_graph graph,
						    const tm_cu_node *nodes,
						    const tm_cu_edge *edges, size_t count,
						    tm_cu_capture_mode mode)
{
	BEGIN(stream, TM_CAPTURE_PTDS,
	      tm_driver.cuStreamBeginCaptureToGraph_ptsz(stream, graph, nodes, edges, count, mode));
}

/*
 * Whether the capture goes on after cuStreamEndCapture returned `rc`. A capture may also end with
 * an error: if it was invalidated or has unjoined work. Other errors leave it active: it belongs to
 * another thread, or the stream only takes part in it. The driver tells.
 */
static bool goes_on(tm_cu_result rc, tm_cu_stream stream, enum tm_capture_form form)
{
	tm_cu_capture_status status = 0;
	if (rc == TM_CU_SUCCESS || rc == TM_CU_CAPTURE_INVALIDATED)
		return false;
	if (form == TM_CAPTURE_PTDS && tm_driver.cuStreamIsCapturing_ptsz != NULL)
		return tm_driver.cuStreamIsCapturing_ptsz(stream, &status) != TM_CU_SUCCESS ||
		       status != 0;
	return tm_driver.cuStreamIsCapturing == NULL ||
	       tm_driver.cuStreamIsCapturing(stream, &status) != TM_CU_SUCCESS || status != 0;
}

static tm_cu_result after_capture(tm_cu_result rc, tm_cu_stream stream, enum tm_capture_form form)
{
	struct tm_capture capture;
	if (tm_capture_any() && !goes_on(rc, stream, form)) {
		capture = tm_capture_of(stream, form);
		tm_capture_over(&capture);
	}
	return rc;
}

tm_cu_result tm_on_cuStreamEndCapture(tm_cu_stream stream, tm_cu_graph *graph)
{
	return after_capture(tm_driver.cuStreamEndCapture(stream, graph), stream, TM_CAPTURE_ANY);
}

tm_cu_result tm_on_cuStreamEndCapture_ptsz(tm_cu_stream stream, tm_cu_graph *graph)
{
	return after_capture(tm_driver.cuStreamEndCapture_ptsz(stream, graph), stream,
			     TM_CAPTURE_PTDS);
}

tm_cu_result tm_on_cuStreamDestroy_v2(tm_cu_stream stream)
{
	tm_cu_result rc = tm_driver.cuStreamDestroy_v2(stream);
	if (rc == TM_CU_SUCCESS)
		tm_capture_stream_gone(stream);
	return rc;
}

/* --- questions: the driver's answer; who asks for an identity must be able to rely on it -------------- */

static bool asks_identity(tm_cu_pointer_attribute attribute)
{
	return attribute == TM_CU_POINTER_BUFFER_ID || attribute == TM_CU_POINTER_BLOCK_ID ||
	       attribute == TM_CU_POINTER_P2P_TOKENS;
}

tm_cu_result tm_on_cuPointerGetAttribute(void *data, tm_cu_pointer_attribute attribute,
					 tm_cu_ptr ptr)
{
	tm_cu_result rc = tm_driver.cuPointerGetAttribute(data, attribute, ptr);
	if (rc == TM_CU_SUCCESS && asks_identity(attribute))
		tm_device_looked_at(ptr);
	return rc;
}

tm_cu_result tm_on_cuPointerGetAttributes(unsigned int count, tm_cu_pointer_attribute *attributes,
					  void **data, tm_cu_ptr ptr)
{
	tm_cu_result rc = tm_driver.cuPointerGetAttributes(count, attributes, data, ptr);
	unsigned int i;
	for (i = 0; rc == TM_CU_SUCCESS && i < count; i++) {
		if (asks_identity(attributes[i])) {
			tm_device_looked_at(ptr);
			break;
		}
	}
	return rc;
}

tm_cu_result tm_on_cuMemGetHandleForAddressRange(void *handle, tm_cu_ptr ptr, size_t bytes,
						 tm_cu_range_type type, unsigned long long flags)
{
	tm_cu_result rc = tm_driver.cuMemGetHandleForAddressRange(handle, ptr, bytes, type, flags);
	if (rc == TM_CU_SUCCESS)
		tm_device_looked_at(ptr);
	return rc;
}

tm_cu_result tm_on_cuPointerSetAttribute(const void *value, tm_cu_pointer_attribute attribute,
					 tm_cu_ptr ptr)
{
	tm_cu_result rc = tm_driver.cuPointerSetAttribute(value, attribute, ptr);
	/* The answer stays valid for the block's life, so it must not be reused. */
	if (rc == TM_CU_SUCCESS)
		tm_device_looked_at(ptr);
	return rc;
}
