/* SPDX-License-Identifier: MIT */
/*
 * context: the contexts that were seen, and when memory that was freed may be used again.
 *
 * Freed blocks are stamped with the open epoch of their context. An epoch is over when an event that
 * covers all work of the context (cuCtxRecordEvent, CUDA 12.5), recorded behind its last free, is
 * reached, or when the context was synchronised. One event for many frees: it is recorded with the
 * 64th, a millisecond after the last one, or when somebody wants the memory. While any stream is captured nothing is
 * recorded, queried or waited for, which would end the capture.
 */
#ifndef TM_CUDA_CONTEXT_H
#define TM_CUDA_CONTEXT_H

#include "cuda_hooks/capture.h"
#include "shim/base/attrs.h"
#include "shim/base/cuda_types.h"

#define TM_CONTEXTS 64u
#define TM_CONTEXT_EVENTS 16u

struct tm_pools;

struct tm_context {
	tm_cu_context handle;   /* NULL: slot is free; slot 0 stands for no context */
	tm_cu_device device;    /* -1: unknown */
	struct tm_pools *pools; /* NULL: none yet */
	tm_cu_result broken;    /* a fault that every call of the context gives from now on; 0 */
	uint64_t place; /* the same number and the slot's, for who keeps something by them */
	uint32_t life;  /* another number when the slot was used for another context */
	/* Its thread may end it while others, who the program does not know of, use it for us. */
	uint32_t guests; /* those: it does not end before they are done */
	uint32_t ending; /* calls under way that may end it: nobody comes any more */
	/* Epochs [lock]. */
	uint32_t open; /* frees are stamped with it; starts at 1 */
	uint32_t done; /* epochs up to here are over */
	uint32_t frees;
	uint32_t recorded_ms;  /* when the last event was recorded */
	uint32_t first, count; /* ring */
	struct {
		tm_cu_event event;
		uint32_t epoch;
	} ring[TM_CONTEXT_EVENTS];
};

/* [lock] The records; 0 stands for no context. */
extern TM_HIDDEN struct tm_context tm_contexts[TM_CONTEXTS];

TM_INLINE struct tm_context *tm_context_at(uint16_t index)
{
	return &tm_contexts[index];
}

/* [lock] Record 0, once there is a driver. */
void tm_context_init(void);

/* [lock] The record of a context, made where it is new. NULL handle or no room: record 0. */
uint16_t tm_context_find(tm_cu_context handle);

TM_INLINE uint16_t tm_context_of(tm_cu_context handle)
{
	extern TM_HIDDEN uint16_t tm_context_last; /* a guess */
	return handle != NULL && tm_contexts[tm_context_last].handle == handle
		       ? tm_context_last
		       : tm_context_find(handle);
}
uint16_t tm_context_known(tm_cu_context handle); /* [lock] 0: never seen */

/* The calling thread's context, or NULL. No lock needed. */
tm_cu_context tm_context_current(void);

/*
 * What the driver says to a thread, whatever it is asked: that it has ended, that no context is current. An
 * answer of our own, for memory that the driver knows nothing of, comes after that. current as above.
 */
tm_cu_result tm_context_refusal(tm_cu_context current);

/* [lock] A context that was seen and is gone: its record is cleared (its events went with it). */
void tm_context_forget(uint16_t index);

/*
 * Around a call that may end the context, which record 0 is none of. No lock is held. A context that has ended
 * is forgotten before the second one.
 */
struct tm_context_end {
	uint16_t index;
	uint32_t life;
};
struct tm_context_end tm_context_end_begin(tm_cu_context handle);
void tm_context_end_done(struct tm_context_end end);

/* [lock] One more guest, and one less of that life. False: it is about to end. */
bool tm_context_enter(uint16_t index);
void tm_context_leave(uint16_t index, uint32_t life);

/* In a forked child: the contexts and their pools are the parent's, the driver is not called. */
void tm_context_fork_child(void);

/* [lock] Each record of a device, in turn from after; 0: no more. */
uint16_t tm_context_next_of(tm_cu_device device, uint16_t after);

/*
 * [lock] The stamp of a block that is freed now. Events are used where `by_event`; current: the thread's
 * context, as it was asked just now.
 */
uint32_t tm_context_stamp(struct tm_context *c, tm_cu_context current, uint32_t now_ms,
			  bool by_event);

/* [lock] Finds out what is over. */
void tm_context_settle(struct tm_context *c);

/*
 * [lock] Closes the open epoch by an event where something was freed in it and the context is the current one.
 * False: there are no such events.
 */
bool tm_context_record(struct tm_context *c, tm_cu_context current);

/*
 * [lock] Around a wait for the context: what was freed until now belongs to the epoch that close gives,
 * what others free meanwhile to the next one; over once the wait has succeeded.
 */
uint32_t tm_context_close(struct tm_context *c);
void tm_context_over(struct tm_context *c, uint32_t epoch);

/* [lock] The driver's answer to a wait, a record or a query: a fault of the device stays for good. */
void tm_context_heard(struct tm_context *c, tm_cu_result rc);

/* Waits for the oldest event; no lock held. True: something more is over. */
bool tm_context_wait_oldest(uint16_t index);

/*
 * Waits for the work of other contexts that may use the memory of this one: those of the same device,
 * and those of devices in the mask. No lock may be held; cheap where there are none.
 */
void tm_context_wait_others(uint16_t index, uint32_t devices);
bool tm_context_has_others(uint16_t index, uint32_t devices); /* [lock] */
bool tm_context_any(void);                                    /* [lock] one was ever seen */

/*
 * The wait itself, with no lock held; the context may be current or not. The driver's answer. current: the
 * thread's context, where the caller has asked just now; NULL: it has not.
 */
tm_cu_result tm_context_wait(tm_cu_context handle, tm_cu_context current);

/*
 * Everything that was freed before the call is over: waits for the context, current or not. No
 * lock may be held. The driver's answer.
 */
tm_cu_result tm_context_synchronise(uint16_t index);

#endif
