/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_ON_ERROR=abort TIERMALLOC_LEDGER=off */
/* dies: SIGABRT */
/* stderr: tiermalloc: free of a block that is free: 0x[0-9a-f]+ */
/* H20 H34: the same with no account kept. */
#include "free_twice_small.c"
