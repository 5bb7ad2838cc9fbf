/* SPDX-License-Identifier: MIT */
/*
 * epoch_records: what the ledger has of each site in the growth test (struct tm_ledger_cohorts), and the
 * counts of device memory that go into it: its blocks carry no epochs but times of birth.
 */
#ifndef TM_EPOCH_RECORDS_H
#define TM_EPOCH_RECORDS_H

#include "shim/base/ledger_format.h"

/* A site with fewer live objects is no growing one yet. */
#define TM_EPOCH_LIVE_MIN 8u
/* Objects of this age, in windows, are old. */
#define TM_EPOCH_OLD_WINDOWS 8u

/* One count of a site. */
struct tm_epoch_site {
	uint64_t key; /* site | height << 48; 0: rows without one */
	uint64_t live_bytes;
	uint64_t objects; /* ever allocated */
	uint64_t bytes;   /* of these */
	uint64_t size;    /* of those that live; 0: none, or of several sizes */
	uint32_t live;
	uint32_t old;
	uint32_t gpu_row; /* as in struct tm_ledger_cohorts */
	uint32_t cohort[TM_LEDGER_COHORTS];
};

struct tm_ledger_cohorts *tm_epoch_record(uint32_t index);

/* [lock of samples.c] All of these. The window that ends is epoch's. */
void tm_epoch_record_begin(struct tm_ledger_cohorts *r, const struct tm_epoch_site *s,
			   uint32_t epoch);
void tm_epoch_record_write(struct tm_ledger_cohorts *r, const struct tm_epoch_site *s,
			   uint32_t epoch);

/* Counts what lives of device memory and writes it. */
void tm_epoch_record_devices(uint64_t now_ms);

#endif
