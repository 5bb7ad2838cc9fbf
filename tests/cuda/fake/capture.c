/* SPDX-License-Identifier: MIT */
/*
 * capture: streams that record instead of working, and the graphs that come of it. A graph is a
 * sequence here; its launch submits the sequence.
 */
#include "tests/cuda/fake/fake.h"

struct CUgraphNode_st {
	enum fake_magic magic;
	enum { NODE_OP, NODE_ALLOC, NODE_FREE } kind;
	struct fake_op op;
	uint64_t ns;
	CUdeviceptr pointer;
	CUgraphNode next;
};

struct CUgraph_st {
	enum fake_magic magic;
	size_t count;
	CUgraphNode first, *last;
};

struct CUgraphExec_st {
	enum fake_magic magic;
	CUgraph graph; /* a copy of its own */
};

static size_t captures;
static uint64_t next_capture;

static bool active(CUstream s)
{
	return s->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

bool fake_recording(CUgraph graph)
{
	CUcontext ctx;
	CUstream s;
	for (ctx = fake.contexts; ctx != NULL; ctx = ctx->next)
		for (s = ctx->streams; s != NULL; s = s->next)
			if (active(s) && s->graph == graph && s->capture_id != 0)
				return true;
	return false;
}

/* Does this thread's mode forbid calls that a capture can't hold while that stream records? */
static bool forbids(CUstream s)
{
	bool mine = s->owner == fake_self.id;
	if (!active(s) || s->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (fake_self.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (fake_self.capture_mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
		return mine;
	return mine || s->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

static CUresult invalidate(CUcontext only)
{
	CUresult rc = CUDA_SUCCESS;
	CUcontext ctx;
	CUstream s;
	for (ctx = fake.contexts; ctx != NULL; ctx = ctx->next)
		for (s = ctx->streams; s != NULL; s = s->next)
			if (only != NULL ? ctx == only && active(s) : forbids(s)) {
				s->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
				rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
			}
	return rc;
}

CUresult fake_unsafe(void)
{
	return captures == 0 ? CUDA_SUCCESS : invalidate(NULL);
}

CUresult fake_unsafe_ctx(CUcontext ctx)
{
	return captures == 0 ? CUDA_SUCCESS : invalidate(ctx);
}

/* --- graphs ----------------------------------------------------------------------------------- */

static CUgraph new_graph(void)
{
	CUgraph graph = fake_object(FAKE_GRAPH, sizeof(*graph));
	graph->last = &graph->first;
	return graph;
}

static CUgraphNode add_node(CUgraph graph, const struct CUgraphNode_st *like)
{
	CUgraphNode node = fake_object(FAKE_NODE, sizeof(*node));
	*node = *like;
	node->magic = FAKE_NODE;
	node->next = NULL;
	*graph->last = node;
	graph->last = &node->next;
	graph->count++;
	return node;
}

static void free_graph(CUgraph graph)
{
	CUgraphNode node;
	while ((node = graph->first) != NULL) {
		graph->first = node->next;
		free(node->op.staged);
		fake_object_free(node, sizeof(*node));
	}
	fake_object_free(graph, sizeof(*graph));
}

CUresult fake_do_cuGraphCreate(CUgraph *graph, unsigned flags)
{
	if (graph == NULL || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = new_graph();
	return CUDA_SUCCESS;
}

CUresult fake_do_cuGraphDestroy(CUgraph graph)
{
	if (!fake_is(graph, FAKE_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	free_graph(graph);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	size_t n = 0;
	CUgraphNode node;
	if (!fake_is(graph, FAKE_GRAPH) || count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (node = graph->first; nodes != NULL && node != NULL && n < *count; node = node->next)
		nodes[n++] = node;
	*count = graph->count;
	return CUDA_SUCCESS;
}

static CUresult new_graph_memory(CUdeviceptr *pointer, size_t bytes)
{
	CUresult rc;
	CUcontext ctx = fake_current();
	struct fake_range *range;
	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	range = fake_memory_new(ctx->device, ctx, bytes, FAKE_GRAPH_MEMORY, &rc);
	if (range == NULL)
		return rc;
	*pointer = range->start;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph,
					const CUgraphNode *dependencies, size_t count,
					CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	struct CUgraphNode_st like = {.kind = NODE_ALLOC};
	CUresult rc;
	if (node == NULL || params == NULL || !fake_is(graph, FAKE_GRAPH) ||
	    (dependencies == NULL && count != 0))
		return CUDA_ERROR_INVALID_VALUE;
	rc = new_graph_memory(&like.pointer, params->bytesize);
	if (rc != CUDA_SUCCESS)
		return rc;
	params->dptr = like.pointer;
	*node = add_node(graph, &like);
	return CUDA_SUCCESS;
}

CUresult fake_do_cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph,
				       const CUgraphNode *dependencies, size_t count,
				       CUdeviceptr pointer)
{
	struct CUgraphNode_st like = {.kind = NODE_FREE, .pointer = pointer};
	struct fake_range *range = fake_find(pointer);
	if (node == NULL || !fake_is(graph, FAKE_GRAPH) || (dependencies == NULL && count != 0) ||
	    range == NULL || range->type != FAKE_GRAPH_MEMORY)
		return CUDA_ERROR_INVALID_VALUE;
	*node = add_node(graph, &like);
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph)
{
	CUgraphNode node;
	if (exec == NULL || !fake_is(graph, FAKE_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	*exec = fake_object(FAKE_EXEC, sizeof(**exec));
	(*exec)->graph = new_graph();
	for (node = graph->first; node != NULL; node = node->next)
		add_node((*exec)->graph, node)->op.staged = NULL;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error,
				       char *log, size_t bytes)
{
	(void)error;
	(void)log;
	(void)bytes;
	return instantiate(exec, graph);
}

CUresult fake_do_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
					     unsigned long long flags)
{
	(void)flags;
	return instantiate(exec, graph);
}

CUresult fake_do_cuGraphLaunch(CUgraphExec exec, CUstream given)
{
	CUresult rc;
	CUgraphNode node;
	CUstream s = fake_stream_of(given, &rc);
	if (s == NULL || !fake_is(exec, FAKE_EXEC))
		return s == NULL ? rc : CUDA_ERROR_INVALID_VALUE;
	for (node = exec->graph->first; node != NULL && rc == CUDA_SUCCESS; node = node->next) {
		struct fake_op op = node->op;
		struct fake_range *range;
		if (node->kind == NODE_OP) {
			rc = fake_submit(s, &op, node->ns);
		} else if (node->kind == NODE_FREE) {
			range = fake_find(node->pointer);
			if (range != NULL)
				fake_async_free(range, s, fake_stream_tail(s));
		}
	}
	return rc;
}

CUresult fake_do_cuGraphExecDestroy(CUgraphExec exec)
{
	if (!fake_is(exec, FAKE_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	free_graph(exec->graph);
	fake_object_free(exec, sizeof(*exec));
	return CUDA_SUCCESS;
}

/* --- recording -------------------------------------------------------------------------------- */

static CUresult record(CUstream s, const struct CUgraphNode_st *like)
{
	if (s->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED || !fake_recording(s->graph))
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	add_node(s->graph, like);
	return CUDA_SUCCESS;
}

CUresult fake_capture_op(CUstream s, const struct fake_op *op, uint64_t ns)
{
	struct CUgraphNode_st like = {.kind = NODE_OP, .op = *op, .ns = ns};
	return record(s, &like);
}

CUresult fake_capture_alloc(CUstream s, CUdeviceptr *pointer, size_t bytes)
{
	struct CUgraphNode_st like = {.kind = NODE_ALLOC};
	CUresult rc = s->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED
			      ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
			      : new_graph_memory(&like.pointer, bytes);
	if (rc == CUDA_SUCCESS)
		rc = record(s, &like);
	if (rc == CUDA_SUCCESS)
		*pointer = like.pointer;
	return rc;
}

CUresult fake_capture_free(CUstream s, CUdeviceptr pointer)
{
	struct CUgraphNode_st like = {.kind = NODE_FREE, .pointer = pointer};
	return record(s, &like);
}

static CUresult begin(CUstream given, CUgraph graph, int mode)
{
	CUresult rc;
	CUstream s = fake_stream_of(given, &rc);
	if (s == NULL)
		return rc;
	if (mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (s == &s->ctx->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (s->capture != CU_STREAM_CAPTURE_STATUS_NONE)
		return CUDA_ERROR_ILLEGAL_STATE;
	s->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	s->mode = mode;
	s->graph = graph != NULL ? graph : new_graph();
	s->capture_id = ++next_capture;
	s->owner = fake_self.id;
	captures++;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuStreamBeginCapture(CUstream stream)
{
	return begin(stream, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult fake_do_cuStreamBeginCapture_v2(CUstream stream, int mode)
{
	return begin(stream, NULL, mode);
}

CUresult fake_do_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
					     const CUgraphNode *dependencies, const void *edges,
					     size_t count, int mode)
{
	(void)edges;
	if (!fake_is(graph, FAKE_GRAPH) || (dependencies == NULL && count != 0))
		return CUDA_ERROR_INVALID_VALUE;
	return begin(stream, graph, mode);
}

CUresult fake_do_cuStreamEndCapture(CUstream given, CUgraph *ret_graph)
{
	CUresult rc;
	CUstream s = fake_stream_of(given, &rc), other;
	CUgraph graph;
	bool bad;
	if (s == NULL)
		return rc;
	if (ret_graph == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->capture == CU_STREAM_CAPTURE_STATUS_NONE)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (s->capture_id == 0)
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	if (s->owner != fake_self.id && s->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	graph = s->graph;
	bad = s->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
	for (other = s->ctx->streams; other != NULL; other = other->next)
		if (other->graph == graph && other->capture != CU_STREAM_CAPTURE_STATUS_NONE) {
			bad = bad || other->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
			other->capture = CU_STREAM_CAPTURE_STATUS_NONE;
			other->graph = NULL;
			other->capture_id = 0;
		}
	captures--;
	if (bad)
		free_graph(graph);
	*ret_graph = bad ? NULL : graph;
	return bad ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

/* Its stream is destroyed meanwhile. */
void fake_capture_abandon(CUstream s)
{
	CUgraph graph = s->graph;
	CUstream other;
	if (s->capture == CU_STREAM_CAPTURE_STATUS_NONE || s->capture_id == 0)
		return;
	for (other = s->ctx->streams; other != NULL; other = other->next)
		if (other->graph == graph && other->capture != CU_STREAM_CAPTURE_STATUS_NONE) {
			other->capture = CU_STREAM_CAPTURE_STATUS_NONE;
			other->graph = NULL;
			other->capture_id = 0;
		}
	captures--;
	free_graph(graph);
}

CUresult fake_do_cuStreamGetCaptureInfo(CUstream given, int *status, uint64_t *id)
{
	CUresult rc;
	CUstream s;
	if (fake_stream_is_unused(given)) {
		if (status == NULL)
			return CUDA_ERROR_INVALID_VALUE;
		*status = CU_STREAM_CAPTURE_STATUS_NONE;
		return CUDA_SUCCESS;
	}
	s = fake_stream_of(given, &rc);
	if (s == NULL)
		return rc;
	if (status == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*status = s->capture;
	if (id != NULL && s->capture != CU_STREAM_CAPTURE_STATUS_NONE)
		*id = s->capture_id;
	return CUDA_SUCCESS;
}

CUresult fake_do_cuStreamIsCapturing(CUstream stream, int *status)
{
	return fake_do_cuStreamGetCaptureInfo(stream, status, NULL);
}

CUresult fake_do_cuThreadExchangeStreamCaptureMode(int *mode)
{
	int old = fake_self.capture_mode;
	if (mode == NULL || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	fake_self.capture_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}
