/* SPDX-License-Identifier: MIT */
/*
 * report_command: TIERMALLOC_REPORT=leak, frag or full. Runs the installed tiermalloc command on
 * the ledger of the ending process, with its output on the given descriptor, and waits for it. If
 * the command isn't installed, one line names the ledger and the command line to use.
 */
#ifndef TM_REPORT_COMMAND_H
#define TM_REPORT_COMMAND_H

/* At process end, after tm_ledger_end. */
void tm_report_command(int fd);

#endif
