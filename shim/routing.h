/* SPDX-License-Identifier: MIT */
/*
 * routing: where policies/ meets the heap. Asks which tier a block above 64 KiB goes to, tells the
 * policies of its death, keeps their memory and the rules of TIERMALLOC_RULES.
 *
 * All functions with a heap: the caller holds that heap (tm_thread_enter). Memory is mapped when the
 * first such block comes; without it, and where the ledger of sites is full, all goes to the session
 * tier, as in an allocator without tiers.
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
	_Atomic bool ready;     /* the sites have memory */
	_Atomic bool failed;    /* there is none: not tried again */
	_Atomic uint8_t guards; /* bit n: a rule says enum tm_rule_guard n */
	_Atomic uint32_t rows;  /* raised when rows have to ask the rules anew */
	struct tm_lock lock;    /* of adding rules and of the first block */
};
extern TM_HIDDEN struct tm_routing tm_routing;

/* At boot, after the heap: settings, rules. */
void tm_routing_init(void);

struct tm_routing_request {
	size_t size;
	size_t align;
	struct tm_site site;
	size_t asked; /* by the program, where `size` has canaries; 0: `size` */
};

/* Which tier; never TM_TIER_ALL. */
struct tm_route_decision tm_routing_decide(struct tm_heap *h,
					   const struct tm_routing_request *request);

/*
 * Of blocks above 1 KiB up to 64 KiB nobody tells one by one. Once h->medium_left requests were served,
 * the slow path asks: which rows of the heap's account are temporary is worked out from what they were
 * given and what of it lives, once an epoch.
 */
void tm_routing_look(struct tm_heap *h);

/*
 * The tier that a rule chooses for a request of 1 to 64 KiB; TM_TIER_ALL: none does. A profile's lines do
 * not: what they say of such sizes is learned again before it would pay. TM_ROUTING_NO_RULE: no rule can
 * ever be about such a request of this site.
 */
enum tm_routing_reach { TM_ROUTING_NO_RULE, TM_ROUTING_SOME_RULE };
enum tm_tier tm_routing_ruled(struct tm_heap *h, const struct tm_routing_request *request,
			      enum tm_routing_reach *ret_reach);

/* [h held] Rules or modules came: its rows ask again. All heaps do, at their next look. */
void tm_routing_ask_anew(void);
void tm_routing_ask_anew_here(struct tm_heap *h);

/* The block lies there now: what its death has to name, and what its rule asks for. */
void tm_routing_born(void *p, struct tm_route_decision decision);

/* It is about to be freed: what is told once it is. */
struct tm_route_death tm_routing_dies(const struct tm_granule *g);
void tm_routing_died(struct tm_heap *h, struct tm_route_death death);

/* The program says where a step begins. */
void tm_routing_step(void);

/* A session begins: serving has begun. */
void tm_routing_serve(void);

/* What a decision's rule asks for; its number is not 0. */
const struct tm_rule_actions *tm_routing_actions(unsigned rule);

/* Some rule of the environment guards blocks; known once the rules were read. */
bool tm_routing_guards(enum tm_rule_guard guard);

/* What a rule says about guarding this request, of any size; nobody else is asked. */
enum tm_rule_guard tm_routing_guard(struct tm_heap *h, const struct tm_routing_request *request);

/* Where the rule stands. */
unsigned tm_routing_line(unsigned rule);

/* dlclose: what is known of call sites in [begin, end) is void. */
void tm_routing_forget(uintptr_t begin, uintptr_t end);

/* Loading or serving. */
enum tm_phase_kind tm_routing_phase(void);

#endif
