/* SPDX-License-Identifier: MIT */
/*
 * run_paths: makes the paths in the library's variables absolute. Each process reads these
 * variables itself, and would look for a relative path in its own working directory.
 */
#ifndef TM_TOOLS_RUN_PATHS_H
#define TM_TOOLS_RUN_PATHS_H

/*
 * Changes this process's environment, which the command inherits. Returns 0, or -1 after one line.
 */
int tm_run_paths_from_here(void);

#endif
