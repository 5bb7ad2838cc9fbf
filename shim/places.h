/* SPDX-License-Identifier: MIT */
/*
 * places: what a rule may ask of a return address: which file it is in, at which offset, and, for
 * symbol rules, where the functions of that file lie. Asked once per new call site, and only while
 * there are rules of that kind; a file's symbols are read once.
 *
 * One lock (rank PLACES). Records are never rewritten, since names of them are in use without it.
 */
#ifndef TM_PLACES_H
#define TM_PLACES_H

#include "policies/route.h"

void tm_places_init(void);

/* From now on `route` asks here. Its rules, and memory for them, must be there. */
void tm_places_serve(struct tm_route *route);

/* dlclose: what was known of [begin, end) is void. */
void tm_places_forget(uintptr_t begin, uintptr_t end);

#endif
