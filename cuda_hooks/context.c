/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/context.h"

#include "cuda_hooks/driver.h"
#include "cuda_hooks/hooks.h"
#include "shim/os/clock.h"
#include "shim/os/sys.h"

#define FREES_AN_EVENT 64u
/*
 * frees between two event queries; without these a request must query, and gets all blocks of the
 * epochs to join at once
 */
#define FREES_A_QUERY 16u
#define MS_AN_EVENT 1u
#define GUEST_NS 20000

struct tm_context tm_contexts[TM_CONTEXTS]; /* [lock] */
uint16_t tm_context_last;                   /* [lock] index that was found last */
static uint32_t seen;                       /* [lock] records ever created */

void tm_context_init(void)
{
	tm_contexts[0].device = -1;
	tm_contexts[0].open = 1;
}

tm_cu_context tm_context_current(void)
{
	tm_cu_context handle = NULL;
	if (tm_driver.cuCtxGetCurrent == NULL ||
	    tm_driver.cuCtxGetCurrent(&handle) != TM_CU_SUCCESS)
		return NULL;
	return handle;
}

tm_cu_result tm_context_refusal(tm_cu_context current)
{
	tm_cu_result rc;
	if (current != NULL || tm_driver.cuCtxGetCurrent == NULL)
		return TM_CU_SUCCESS;
	rc = tm_driver.cuCtxGetCurrent(&current);
	if (rc != TM_CU_SUCCESS)
		return rc;
	/* Freeing address 0 does nothing but report the state of the context. */
	return tm_driver.cuMemFree_v2(0) == TM_CU_INVALID_CONTEXT ? TM_CU_INVALID_CONTEXT
								  : TM_CU_SUCCESS;
}

static uint16_t add(tm_cu_context handle, unsigned i)
{
	tm_hooks_initialised();
	seen++;
	tm_contexts[i].handle = handle;
	tm_contexts[i].open = 1;
	tm_contexts[i].device = -1;
	tm_contexts[i].place = (uint64_t)tm_contexts[i].life << 32 | i << 16;
	/* cuCtxGetDevice answers for the current context, which may be another one. */
	if (tm_context_current() == handle && tm_driver.cuCtxGetDevice != NULL &&
	    tm_driver.cuCtxGetDevice(&tm_contexts[i].device) != TM_CU_SUCCESS)
		tm_contexts[i].device = -1;
	return (uint16_t)i;
}

TM_COLD uint16_t tm_context_find(tm_cu_context handle)
{
	unsigned i, unused = 0;
	if (handle == NULL)
		return 0;
	for (i = 1; i < TM_CONTEXTS; i++) {
		if (tm_contexts[i].handle == handle) {
			tm_context_last = (uint16_t)i;
			return (uint16_t)i;
		}
		if (tm_contexts[i].handle == NULL && unused == 0)
			unused = i;
	}
	return unused == 0 ? 0 : add(handle, unused);
}

uint16_t tm_context_known(tm_cu_context handle)
{
	unsigned i;
	for (i = 1; handle != NULL && i < TM_CONTEXTS; i++)
		if (tm_contexts[i].handle == handle)
			return (uint16_t)i;
	return 0;
}

void tm_context_forget(uint16_t index)
{
	if (index != 0)
		tm_contexts[index] = (struct tm_context){
			.device = -1, .open = 1, .life = tm_contexts[index].life + 1};
}

bool tm_context_enter(uint16_t index)
{
	if (tm_contexts[index].ending != 0)
		return false;
	tm_contexts[index].guests++;
	return true;
}

void tm_context_leave(uint16_t index, uint32_t life)
{
	if (tm_contexts[index].life == life)
		tm_contexts[index].guests--;
}

struct tm_context_end tm_context_end_begin(tm_cu_context handle)
{
	static const struct timespec a_moment = {0, GUEST_NS};
	struct tm_context_end end;
	struct tm_context *c;
	tm_hooks_lock();
	end.index = tm_context_known(handle);
	c = &tm_contexts[end.index];
	end.life = c->life;
	if (end.index != 0)
		c->ending++;
	while (end.index != 0 && c->life == end.life && c->guests != 0) {
		tm_hooks_unlock();
		(void)tm_sys_nanosleep(&a_moment);
		tm_hooks_lock();
	}
	tm_hooks_unlock();
	return end;
}

void tm_context_end_done(struct tm_context_end end)
{
	tm_hooks_lock();
	if (end.index != 0 && tm_contexts[end.index].life == end.life)
		tm_contexts[end.index].ending--;
	tm_hooks_unlock();
}

void tm_context_fork_child(void)
{
	uint16_t i;
	/* Don't write to unused records: their pages stay shared with the parent. */
	for (i = 1; i < TM_CONTEXTS; i++)
		if (tm_contexts[i].handle != NULL)
			tm_context_forget(i);
}

uint16_t tm_context_next_of(tm_cu_device device, uint16_t after)
{
	unsigned i;
	for (i = after + 1u; i < TM_CONTEXTS; i++)
		if (tm_contexts[i].handle != NULL && tm_contexts[i].device == device)
			return (uint16_t)i;
	return 0;
}

/* --- epochs --------------------------------------------------------------------------------------- */

static bool has_context_events(void)
{
	return tm_driver.cuCtxRecordEvent != NULL && tm_driver.cuEventCreate != NULL &&
	       tm_driver.cuEventQuery != NULL;
}

void tm_context_heard(struct tm_context *c, tm_cu_result rc)
{
	bool capture = rc >= TM_CU_CAPTURE_FIRST && rc <= TM_CU_CAPTURE_LAST;
	if (rc != TM_CU_SUCCESS && rc != TM_CU_NOT_READY && rc != TM_CU_NOT_SUPPORTED && !capture &&
	    rc != TM_CU_INVALID_VALUE && rc != TM_CU_OUT_OF_MEMORY)
		c->broken = rc;
}

bool tm_context_record(struct tm_context *c, tm_cu_context current)
{
	tm_cu_result rc;
	uint32_t at;
	if (!has_context_events() || c->handle == NULL)
		return false;
	if (c->frees == 0 || tm_capture_any() || current != c->handle)
		return true;
	if (c->count == TM_CONTEXT_EVENTS)
		tm_context_settle(c);
	if (c->count == TM_CONTEXT_EVENTS)
		return true;
	at = (c->first + c->count) % TM_CONTEXT_EVENTS;
	if (c->ring[at].event == NULL &&
	    tm_driver.cuEventCreate(&c->ring[at].event, TM_CU_EVENT_DISABLE_TIMING) !=
		    TM_CU_SUCCESS) {
		c->ring[at].event = NULL;
		return false;
	}
	rc = tm_driver.cuCtxRecordEvent(c->handle, c->ring[at].event);
	tm_context_heard(c, rc);
	if (rc != TM_CU_SUCCESS)
		return false;
	c->recorded_ms = (uint32_t)tm_clock_ms();
	c->ring[at].epoch = c->open++;
	c->frees = 0;
	c->count++;
	return true;
}

void tm_context_settle(struct tm_context *c)
{
	/* Events complete in order: a completed one covers everything recorded before it. */
	while (c->count != 0 && !tm_capture_any()) {
		tm_cu_result rc = tm_driver.cuEventQuery(c->ring[c->first].event);
		tm_context_heard(c, rc);
		if (rc != TM_CU_SUCCESS)
			break;
		if ((int32_t)(c->ring[c->first].epoch - c->done) > 0)
			c->done = c->ring[c->first].epoch;
		c->first = (c->first + 1) % TM_CONTEXT_EVENTS;
		c->count--;
	}
}

uint32_t tm_context_stamp(struct tm_context *c, tm_cu_context current, uint32_t now_ms,
			  bool by_event)
{
	uint32_t epoch = c->open;
	c->frees++;
	if (!by_event)
		return epoch;
	if (c->frees >= FREES_AN_EVENT || now_ms - c->recorded_ms >= MS_AN_EVENT)
		tm_context_record(c, current);
	else if (c->count != 0 && c->frees % FREES_A_QUERY == 0)
		tm_context_settle(c);
	return epoch;
}

uint32_t tm_context_close(struct tm_context *c)
{
	if (c->frees != 0)
		c->open++;
	c->frees = 0;
	return c->open - 1;
}

void tm_context_over(struct tm_context *c, uint32_t epoch)
{
	if ((int32_t)(epoch - c->done) > 0)
		c->done = epoch;
}

tm_cu_result tm_context_wait(tm_cu_context handle, tm_cu_context current)
{
	tm_cu_context popped;
	tm_cu_result rc;
	if (tm_driver.cuCtxSynchronize == NULL)
		return TM_CU_NOT_SUPPORTED;
	if (handle == current || tm_context_current() == handle)
		return tm_driver.cuCtxSynchronize();
	if (tm_driver.cuCtxPushCurrent_v2 == NULL || tm_driver.cuCtxPopCurrent_v2 == NULL)
		return TM_CU_NOT_SUPPORTED;
	rc = tm_driver.cuCtxPushCurrent_v2(handle);
	if (rc != TM_CU_SUCCESS)
		return rc;
	rc = tm_driver.cuCtxSynchronize();
	tm_driver.cuCtxPopCurrent_v2(&popped);
	return rc;
}

static bool is_related(const struct tm_context *c, const struct tm_context *other, uint32_t devices)
{
	return other != c && other->handle != NULL &&
	       (other->device == c->device || other->device < 0 || other->device >= 32 ||
		(devices >> other->device & 1) != 0);
}

bool tm_context_any(void)
{
	return seen != 0;
}

bool tm_context_has_others(uint16_t index, uint32_t devices)
{
	unsigned i;
	/* Most programs have one context. */
	for (i = 1; seen > 1 && i < TM_CONTEXTS; i++)
		if (is_related(&tm_contexts[index], &tm_contexts[i], devices))
			return true;
	return false;
}

void tm_context_wait_others(uint16_t index, uint32_t devices)
{
	uint16_t i;
	for (i = 1; i < TM_CONTEXTS; i++) {
		const struct tm_context *c = &tm_contexts[i];
		tm_cu_context handle = NULL;
		uint32_t life;
		tm_hooks_lock();
		if (is_related(&tm_contexts[index], c, devices) && tm_context_enter(i))
			handle = c->handle;
		life = c->life;
		tm_hooks_unlock();
		if (handle == NULL)
			continue;
		/* An error of another context is reported to those who use that context. */
		(void)tm_context_wait(handle, NULL);
		tm_hooks_lock();
		tm_context_leave(i, life);
		tm_hooks_unlock();
	}
}

tm_cu_result tm_context_synchronise(uint16_t index)
{
	struct tm_context *c = &tm_contexts[index];
	tm_cu_context handle;
	uint32_t epoch, life;
	tm_cu_result rc;
	tm_hooks_lock();
	epoch = tm_context_close(c);
	handle = c->handle;
	life = c->life;
	tm_hooks_unlock();
	rc = tm_context_wait(handle, NULL);
	tm_hooks_lock();
	if (c->life == life) {
		tm_context_heard(c, rc);
		if (rc == TM_CU_SUCCESS)
			tm_context_over(c, epoch);
	}
	tm_hooks_unlock();
	return rc;
}

bool tm_context_wait_oldest(uint16_t index)
{
	struct tm_context *c = &tm_contexts[index];
	tm_cu_context current = tm_context_current();
	tm_cu_event event;
	uint32_t done;
	bool more;
	tm_hooks_lock();
	tm_context_record(c, current);
	done = c->done;
	event = c->count == 0 ? NULL : c->ring[c->first].event;
	tm_hooks_unlock();
	if (event == NULL || tm_driver.cuEventSynchronize == NULL)
		return tm_context_synchronise(index) == TM_CU_SUCCESS;
	/*
	 * Another thread may settle this event and record it anew meanwhile; then this waits
	 * longer.
	 */
	if (tm_driver.cuEventSynchronize(event) != TM_CU_SUCCESS)
		return false;
	tm_hooks_lock();
	tm_context_settle(c);
	more = c->done != done;
	tm_hooks_unlock();
	return more;
}
