/* SPDX-License-Identifier: MIT */
/* See threads.h. */
#include "tools/runner/threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "tools/runner/mem.h"

struct member {
	struct yi_workers *workers; /* [const] */
	pthread_t thread;           /* [const] */
	uint32_t number;            /* [const] 1 .. count - 1 */
};

struct yi_workers {
	pthread_mutex_t lock;
	pthread_cond_t start, done;
	uint64_t round;        /* [lock] incremented for each run */
	uint32_t running;      /* [lock] members that have not returned */
	bool stop;             /* [lock] */
	yi_work_fn *fn;        /* [lock] function of this round */
	void *arg;             /* [lock] */
	uint32_t count;        /* [const] members */
	uint32_t started;      /* [owner] threads that exist */
	struct member *others; /* [const] count - 1 of them */
};

static void *member_main(void *arg)
{
	struct member *member = arg;
	struct yi_workers *workers = member->workers;
	uint64_t seen = 0;

	pthread_mutex_lock(&workers->lock);
	for (;;) {
		yi_work_fn *fn;
		void *fn_arg;

		while (workers->round == seen && !workers->stop)
			pthread_cond_wait(&workers->start, &workers->lock);
		if (workers->stop)
			break;
		seen = workers->round;
		fn = workers->fn;
		fn_arg = workers->arg;
		pthread_mutex_unlock(&workers->lock);
		fn(fn_arg, member->number, workers->count);
		pthread_mutex_lock(&workers->lock);
		if (--workers->running == 0)
			pthread_cond_signal(&workers->done);
	}
	pthread_mutex_unlock(&workers->lock);
	return NULL;
}

struct yi_workers *yi_workers_create(uint32_t count)
{
	struct yi_workers *workers = yi_mem_zeroed(YI_MEM_OTHER, sizeof(*workers));

	if (!workers)
		return NULL;
	workers->count = count;
	pthread_mutex_init(&workers->lock, NULL);
	pthread_cond_init(&workers->start, NULL);
	pthread_cond_init(&workers->done, NULL);
	workers->others = yi_mem_array(YI_MEM_OTHER, count, sizeof(*workers->others));
	if (!workers->others)
		goto fail;
	for (uint32_t i = 1; i < count; i++) {
		struct member *member = &workers->others[i - 1];
		int error;

		member->workers = workers;
		member->number = i;
		error = pthread_create(&member->thread, NULL, member_main, member);
		if (error) {
			yi_workers_free(workers);
			errno = error;
			return NULL;
		}
		workers->started++;
	}
	return workers;
fail:
	yi_workers_free(workers);
	errno = ENOMEM;
	return NULL;
}

void yi_workers_free(struct yi_workers *workers)
{
	if (!workers)
		return;
	pthread_mutex_lock(&workers->lock);
	workers->stop = true;
	pthread_cond_broadcast(&workers->start);
	pthread_mutex_unlock(&workers->lock);
	for (uint32_t i = 0; i < workers->started; i++)
		pthread_join(workers->others[i].thread, NULL);
	pthread_cond_destroy(&workers->done);
	pthread_cond_destroy(&workers->start);
	pthread_mutex_destroy(&workers->lock);
	yi_mem_free(YI_MEM_OTHER, workers->others);
	yi_mem_free(YI_MEM_OTHER, workers);
}

uint32_t yi_workers_count(const struct yi_workers *workers)
{
	return workers->count;
}

void yi_workers_run(struct yi_workers *workers, yi_work_fn *fn, void *arg)
{
	if (workers->count > 1) {
		pthread_mutex_lock(&workers->lock);
		workers->fn = fn;
		workers->arg = arg;
		workers->running = workers->count - 1;
		workers->round++;
		pthread_cond_broadcast(&workers->start);
		pthread_mutex_unlock(&workers->lock);
	}
	fn(arg, 0, workers->count);
	if (workers->count > 1) {
		pthread_mutex_lock(&workers->lock);
		while (workers->running)
			pthread_cond_wait(&workers->done, &workers->lock);
		pthread_mutex_unlock(&workers->lock);
	}
}
