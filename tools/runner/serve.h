/* SPDX-License-Identifier: MIT */
/*
 * serve-load: many sessions over one model, as a server would hold them.
 */
#ifndef YI_SERVE_H
#define YI_SERVE_H

/* The verb; argv[1] is its name.  Returns the exit status. */
int yi_serve_main(int argc, char **argv);

#endif
