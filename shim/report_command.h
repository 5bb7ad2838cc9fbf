/* SPDX-License-Identifier: MIT */
/*
 * report_command: TIERMALLOC_REPORT=leak, frag or full: the installed command is started on the ledger
 * of the process that ends, and waited for. It writes to the descriptor; where there is no command,
 * one line names the ledger and what to type.
 */
#ifndef TM_REPORT_COMMAND_H
#define TM_REPORT_COMMAND_H

/* At the end of the process, behind tm_ledger_end. */
void tm_report_command(int fd);

#endif
