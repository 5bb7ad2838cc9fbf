/* SPDX-License-Identifier: MIT */
/*
 * doctor: checks this machine, a program's file or a running process, and prints findings as lines
 * "ok", "note" or "problem". A problem keeps the library from working; a note is worth knowing.
 */
#ifndef TM_TOOLS_DOCTOR_H
#define TM_TOOLS_DOCTOR_H

#include <limits.h>

#include "shim/base/attrs.h"
#include "tools/elf_look.h"

struct tm_doctor {
	unsigned int problems;
	char library[PATH_MAX]; /* empty: not found */
};

void tm_doctor_ok(const char *format, ...) TM_PRINTF(1, 2);
void tm_doctor_note(const char *format, ...) TM_PRINTF(1, 2);
void tm_doctor_problem(struct tm_doctor *doctor, const char *format, ...) TM_PRINTF(2, 3);

void tm_doctor_machine(struct tm_doctor *doctor);
/* Returns 0, or the exit status if the command does not exist. */
int tm_doctor_program(struct tm_doctor *doctor, const char *command);
int tm_doctor_process(struct tm_doctor *doctor, int pid);

/* Findings about CUDA. */
void tm_doctor_cuda_machine(void);
void tm_doctor_cuda_program(const struct tm_elf *elf);
void tm_doctor_cuda_process(int pid, bool has_library);

/* Reads a whole small file without its last newline; false if it can't be read. */
bool tm_doctor_read(const char *path, char *buf, size_t size);

/* Reads the number that a file begins with; false for "max" and anything else. */
bool tm_doctor_read_number(const char *path, uint64_t *ret_value);

#endif
