/* SPDX-License-Identifier: MIT */
/* The least an LD_AUDIT library must have. */
#include <link.h>
#include <stdint.h>
#include <stdlib.h>

unsigned la_version(unsigned version)
{
	free(malloc(1000));
	return version;
}

unsigned la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie)
{
	(void)map, (void)lmid, (void)cookie;
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
