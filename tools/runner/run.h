/* SPDX-License-Identifier: MIT */
/* The verbs of the command line; each returns an exit status and prints its own error line. */
#ifndef YI_RUN_H
#define YI_RUN_H

int yi_run_main(int argc, char **argv);
int yi_make_model_main(int argc, char **argv);
int yi_info_main(int argc, char **argv);

#endif
