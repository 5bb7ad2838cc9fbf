/* SPDX-License-Identifier: MIT */
/*
 * run_paths: makes the paths in the library's variables absolute. Each process reads them for itself,
 * and one that was started in another folder would look for a relative one there.
 */
#ifndef TM_TOOLS_RUN_PATHS_H
#define TM_TOOLS_RUN_PATHS_H

/* Changes our own environment, which becomes the command's. 0, or -1 after one line. */
int tm_run_paths_from_here(void);

#endif
