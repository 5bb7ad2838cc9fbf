/* SPDX-License-Identifier: MIT */
/*
 * See leak_demo.h. Uses malloc directly: the blocks are not in the runner's own account of its
 * memory, just as those of real leaks are not.
 */
#include "tools/runner/leak_demo.h"

#include <stdlib.h>
#include <string.h>

/* Bytes that each session leaks in each way. */
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

/* A cache of past sessions without a bound: grows, and stays reachable. */
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

/* The ticket in use; volatile, so that the compiler keeps the blocks. */
static struct ticket *volatile current;

/* Leaks a ticket with a note in a block of its own: the only pointer to both is overwritten. */
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
