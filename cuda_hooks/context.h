/* SPDX-License-Identifier: MIT */
/*
 * context: the contexts that the hooks have seen, and when freed device memory may be reused.
 *
 * A freed block is stamped with the open epoch of its context. An epoch is over once an event that
 * covers all work of the context (cuCtxRecordEvent, CUDA 12.5), recorded after the epoch's last
 * free, has completed, or once the context was synchronised. One event serves many frees: it is
 * recorded at the 64th free, at a free at least a millisecond after the last event, or when the
 * memory is requested. While any stream is being captured nothing is recorded, queried or waited
 * for, because that would end the capture.
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
	tm_cu_context handle;   /* NULL: record is unused; record 0 stands for "no context" */
	tm_cu_device device;    /* -1: unknown */
	struct tm_pools *pools; /* NULL: none yet */
	/* 0, or the error that every call of the context returns from now on */
	tm_cu_result broken;
	uint64_t place; /* `life` and the record's index in one word, as a cache key */
	uint32_t life;  /* changes when the record is reused for another context */
	/*
	 * A thread of the program may end the context while another one uses it on the hooks'
	 * behalf.
	 */
	uint32_t guests; /* number of such uses; the context does not end before they are done */
	uint32_t ending; /* calls in progress that may end the context; no new guests then */
	/* Epochs [lock] */
	uint32_t open; /* epoch that frees are stamped with; starts at 1 */
	uint32_t done; /* epochs up to this one are over */
	uint32_t frees;
	uint32_t recorded_ms;  /* when the last event was recorded */
	uint32_t first, count; /* ring */
	struct {
		tm_cu_event event;
		uint32_t epoch;
	} ring[TM_CONTEXT_EVENTS];
};

/* [lock] Record 0 stands for "no context". */
extern TM_HIDDEN struct tm_context tm_contexts[TM_CONTEXTS];

TM_INLINE struct tm_context *tm_context_at(uint16_t index)
{
	return &tm_contexts[index];
}

/* [lock] Sets up record 0; called once the driver is bound. */
void tm_context_init(void);

/*
 * [lock] Index of a context's record, which is created if missing. 0 for a NULL handle or a full
 * table.
 */
uint16_t tm_context_find(tm_cu_context handle);

/* [lock] The same, fast for the context that was found last. */
TM_INLINE uint16_t tm_context_of(tm_cu_context handle)
{
	extern TM_HIDDEN uint16_t tm_context_last; /* index that was found last */
	return handle != NULL && tm_contexts[tm_context_last].handle == handle
		       ? tm_context_last
		       : tm_context_find(handle);
}
uint16_t tm_context_known(tm_cu_context handle); /* [lock] 0: never seen */

/* The calling thread's current context, or NULL. Takes no lock. */
tm_cu_context tm_context_current(void);

/*
 * The error that the driver returns to this thread whatever the call is: the context has ended, or
 * none is current; else success. Ask it before an answer of our own about memory that the driver
 * does not know. current: as above.
 */
tm_cu_result tm_context_refusal(tm_cu_context current);

/* [lock] Clears the record of a context that has ended; its events ended with it. */
void tm_context_forget(uint16_t index);

/*
 * Bracket a call that may end the context (record 0 is never affected). Called without the lock. If
 * the context has ended, it must be forgotten before tm_context_end_done.
 */
struct tm_context_end {
	uint16_t index;
	uint32_t life;
};
struct tm_context_end tm_context_end_begin(tm_cu_context handle);
void tm_context_end_done(struct tm_context_end end);

/*
 * [lock] Adds a guest; false: the context is about to end. tm_context_leave removes one, if the
 * record still has that life.
 */
bool tm_context_enter(uint16_t index);
void tm_context_leave(uint16_t index, uint32_t life);

/*
 * In a forked child: forgets all contexts and pools, which are the parent's. Does not call the
 * driver.
 */
void tm_context_fork_child(void);

/* [lock] Iterates over the records of a device: the next index after `after`; 0: no more. */
uint16_t tm_context_next_of(tm_cu_device device, uint16_t after);

/*
 * [lock] Epoch to stamp a block with that is freed now. Records events if `by_event`. current: the
 * thread's context, asked for just before.
 */
uint32_t tm_context_stamp(struct tm_context *c, tm_cu_context current, uint32_t now_ms,
			  bool by_event);

/* [lock] Queries the recorded events and updates `done`. */
void tm_context_settle(struct tm_context *c);

/*
 * [lock] Records an event and closes the open epoch, if something was freed in it and the context
 * is current. False: the driver has no such events, or recording failed.
 */
bool tm_context_record(struct tm_context *c, tm_cu_context current);

/*
 * [lock] Bracket a wait for the context. tm_context_close returns the epoch that holds all frees so
 * far; frees during the wait go to the next one. Call tm_context_over with that epoch once the wait
 * has succeeded.
 */
uint32_t tm_context_close(struct tm_context *c);
void tm_context_over(struct tm_context *c, uint32_t epoch);

/*
 * [lock] Takes note of the driver's result of a wait, a record or a query: an error of the device
 * is kept for good.
 */
void tm_context_heard(struct tm_context *c, tm_cu_result rc);

/*
 * Waits for the oldest recorded event, or else for the context. Called without the lock. True:
 * another epoch is over.
 */
bool tm_context_wait_oldest(uint16_t index);

/*
 * Waits for all other contexts whose work may use this context's memory: those on the same device
 * and on the devices in the bit mask. Called without the lock; cheap if there are none.
 */
void tm_context_wait_others(uint16_t index, uint32_t devices);
bool tm_context_has_others(uint16_t index, uint32_t devices); /* [lock] */
/* [lock] whether any context was ever seen */
bool tm_context_any(void);

/*
 * Synchronises a context, current or not, and returns the driver's result. Called without the lock.
 * current: the thread's context if the caller has just asked for it; else NULL.
 */
tm_cu_result tm_context_wait(tm_cu_context handle, tm_cu_context current);

/*
 * Waits for the context, current or not, so that every free before the call is over. Called without
 * the lock. Returns the driver's result.
 */
tm_cu_result tm_context_synchronise(uint16_t index);

#endif
