/* SPDX-License-Identifier: MIT */
/*
 * places: resolves a return address for rules: its file, the offset in it and, for symbol rules,
 * the function. Called once per new call site, and only if such rules exist; reads a file's symbols
 * once.
 *
 * One lock (rank PLACES). Records are never overwritten, because their names are read without it.
 */
#ifndef TM_PLACES_H
#define TM_PLACES_H

#include "policies/route.h"

void tm_places_init(void);

/* Makes `route` resolve addresses here. Its rules and their memory must exist already. */
void tm_places_serve(struct tm_route *route);

/* After dlclose: drops what is known of addresses in [begin, end). */
void tm_places_forget(uintptr_t begin, uintptr_t end);

#endif
