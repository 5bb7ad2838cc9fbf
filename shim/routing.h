/* SPDX-License-Identifier: MIT */
/*
 * routing: connects policies/ with the heap. Asks the policies for the tier of each block above 64
 * KiB, reports the block's free to them, owns their memory and the rules of TIERMALLOC_RULES.
 *
 * Functions that take a heap: the caller holds it (tm_thread_enter). The policies' memory is mapped
 * at the first block above 64 KiB; if that fails, or the table of sites is full, blocks go to the
 * session tier, as in an allocator without tiers.
 */
#ifndef TM_ROUTING_H
#define TM_ROUTING_H

#include "policies/route.h"
#include "shim/heap/account.h"
#include "shim/os/lock.h"

/* For routing.c and ruling.c. */
struct tm_routing {
	struct tm_route route;
	struct tm_rules rules;
	_Atomic bool ready;     /* the table of sites is mapped */
	_Atomic bool failed;    /* mapping it failed; not retried */
	_Atomic uint8_t guards; /* bit n: some rule has the value n of enum tm_rule_guard */
	_Atomic uint32_t rows;  /* generation; incremented when rows must consult the rules again */
	struct tm_lock lock;    /* held to add a rule and to map the table */
};
extern TM_HIDDEN struct tm_routing tm_routing;

/* At boot, after the heap: reads settings and rules. */
void tm_routing_init(void);

struct tm_routing_request {
	size_t size;
	size_t align;
	struct tm_site site;
	size_t asked; /* the program's size if `size` includes canaries; 0: it is `size` */
};

/* Decides the tier of a block above 64 KiB; never TM_TIER_ALL. */
struct tm_route_decision tm_routing_decide(struct tm_heap *h,
					   const struct tm_routing_request *request);

/*
 * Called by the slow path after every h->medium_left requests of 1 to 64 KiB, which are not
 * reported to the policies one by one. Once per epoch it classifies the rows of the heap's account:
 * a row is temporary if few of the objects that it was given are still live.
 */
void tm_routing_look(struct tm_heap *h);

/*
 * For that it counts live objects, in one call at most about so many entries; a span costs this much
 * more. Several calls, a few requests apart, count a large heap.
 */
#define TM_ROUTING_CENSUS_WORK 65536u
#define TM_ROUTING_SPAN_WORK 48u

/*
 * The tier that a rule assigns to a request of 1 to 64 KiB; TM_TIER_ALL: no rule does. Lines of a
 * profile are ignored: at such sizes learning anew is quicker than the lookup would pay.
 * *ret_reach = TM_ROUTING_NO_RULE: no rule can ever match a request of this size from this site.
 */
enum tm_routing_reach { TM_ROUTING_NO_RULE, TM_ROUTING_SOME_RULE };
enum tm_tier tm_routing_ruled(struct tm_heap *h, const struct tm_routing_request *request,
			      enum tm_routing_reach *ret_reach);

/*
 * After a change of the rules or the loaded modules: makes the rows of all heaps consult the rules
 * again, each heap at its next tm_routing_look; the second form does that now, for a heap that the
 * caller holds.
 */
void tm_routing_ask_anew(void);
void tm_routing_ask_anew_here(struct tm_heap *h);

/*
 * After the allocation: stores in the granule what the free will report, applies the rule's
 * actions.
 */
void tm_routing_born(void *p, struct tm_route_decision decision);

/*
 * A free in two steps: tm_routing_dies before it reads what to report, tm_routing_died after it
 * reports that to the policies.
 */
struct tm_route_death tm_routing_dies(const struct tm_granule *g);
void tm_routing_died(struct tm_heap *h, struct tm_route_death death);

/* The program's mark: a step begins. */
void tm_routing_step(void);

/* The program's mark: a session begins, so the serving phase has begun. */
void tm_routing_serve(void);

/* The actions of a decision's rule; rule: its number, not 0. */
const struct tm_rule_actions *tm_routing_actions(unsigned rule);

/* Whether some rule has this guard; valid once the rules have been read. */
bool tm_routing_guards(enum tm_rule_guard guard);

/* The guard= of the rule that matches this request, of any size. */
enum tm_rule_guard tm_routing_guard(struct tm_heap *h, const struct tm_routing_request *request);

/* The line of the rule in its file. */
unsigned tm_routing_line(unsigned rule);

/* After dlclose: drops what is known of call sites in [begin, end). */
void tm_routing_forget(uintptr_t begin, uintptr_t end);

/* The current phase: loading or serving. */
enum tm_phase_kind tm_routing_phase(void);

#endif
