/* SPDX-License-Identifier: MIT */
/*
 * Blocks come from malloc itself: they are no part of the runner's own picture of its memory,
 * as real leaks are not.
 */
#include "tools/runner/leak_demo.h"

#include <stdlib.h>
#include <string.h>

/* Bytes each session leaves behind in either way. */
#define HISTORY_BYTES 1024
#define TICKET_BYTES 320

struct record {
	struct record *next;
	char text[HISTORY_BYTES];
};

struct ticket {
	char *note;
	char rest[TICKET_BYTES];
};

/* A cache of past sessions that nobody ever bounds: grows, and all of it can be reached. */
static struct record *history;

static __attribute__((noinline)) void remember(const struct yi_session *session)
{
	struct record *record = malloc(sizeof(*record));
	size_t bytes =
		session->answer_bytes < HISTORY_BYTES ? session->answer_bytes : HISTORY_BYTES;

	if (!record)
		return;
	memset(record->text, 0, sizeof(record->text));
	if (bytes)
		memcpy(record->text, session->answer, bytes);
	record->next = history;
	history = record;
}

/* Where a ticket is known while it is used; volatile, so that the compiler keeps the blocks. */
static struct ticket *volatile current;

/* A ticket with a note in a block of its own, and the only pointer to both is overwritten. */
static __attribute__((noinline)) void forget(const struct yi_session *session)
{
	struct ticket *ticket = malloc(sizeof(*ticket));

	if (!ticket)
		return;
	memset(ticket, 0, sizeof(*ticket));
	ticket->note = strdup(session->request->session);
	current = ticket;
	current = NULL;
}

void yi_leak_demo_session(const struct yi_session *session)
{
	remember(session);
	forget(session);
}
