/* SPDX-License-Identifier: MIT */
/*
 * doctor: findings about this machine, a program's file or a running process, printed as lines
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
/* 0, or the exit status when the command is not there. */
int tm_doctor_program(struct tm_doctor *doctor, const char *command);
int tm_doctor_process(struct tm_doctor *doctor, int pid);

/* What there is of CUDA. */
void tm_doctor_cuda_machine(void);
void tm_doctor_cuda_program(const struct tm_elf *elf);
void tm_doctor_cuda_process(int pid, bool has_library);

/* Whole small file without the last newline; false when it cannot be read. */
bool tm_doctor_read(const char *path, char *buf, size_t size);

/* The number a file begins with; "max" and what is no number give false. */
bool tm_doctor_read_number(const char *path, uint64_t *ret_value);

#endif
