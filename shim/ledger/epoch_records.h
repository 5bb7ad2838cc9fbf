/* SPDX-License-Identifier: MIT */
/*
 * epoch_records: the ledger's records of the growth test, one per site (struct tm_ledger_cohorts).
 * Also counts device memory for them: device blocks carry birth times instead of epochs.
 */
#ifndef TM_EPOCH_RECORDS_H
#define TM_EPOCH_RECORDS_H

#include "shim/base/ledger_format.h"

/* Sites with fewer live objects are not considered to grow. */
#define TM_EPOCH_LIVE_MIN 8u
/* Age in windows from which an object is old. */
#define TM_EPOCH_OLD_WINDOWS 8u

/* A site's figures in one census. */
struct tm_epoch_site {
	uint64_t key; /* site | height << 48; 0: rows without one */
	uint64_t live_bytes;
	uint64_t objects; /* ever allocated */
	uint64_t bytes;   /* ever allocated */
	uint64_t size;    /* of each live object; 0: none live, or sizes differ */
	uint32_t live;    /* objects */
	uint32_t old;     /* live objects of at least TM_EPOCH_OLD_WINDOWS */
	uint32_t gpu_row; /* as in struct tm_ledger_cohorts */
	uint32_t cohort[TM_LEDGER_COHORTS];
};

struct tm_ledger_cohorts *tm_epoch_record(uint32_t index);

/* The three below: under the lock of samples.c. epoch: of the window that ends. */
void tm_epoch_record_begin(struct tm_ledger_cohorts *r, const struct tm_epoch_site *s,
			   uint32_t epoch);
void tm_epoch_record_write(struct tm_ledger_cohorts *r, const struct tm_epoch_site *s,
			   uint32_t epoch);

/* Counts the live device blocks by site and writes their records. */
void tm_epoch_record_devices(uint64_t now_ms);

#endif
