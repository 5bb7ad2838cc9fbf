/* SPDX-License-Identifier: MIT */
/*
 * analysis_scan: reports on the live scans for unreachable blocks. "No scan ran", "two scans found
 * nothing" and "they found something" must be told apart, and so must the reason why there is no
 * new scan.
 */
#include <errno.h>
#include <stdio.h>

#include "shim/base/fmt.h"
#include "tools/analysis/analysis.h"
#include "tools/text/text.h"

/* Reason if the process has ended, or was not asked. */
static const char *why_not_asked(const struct tm_analysis *a, uint32_t passes)
{
	if (a->doc->process.ended != TM_DOC_RUNNING)
		return passes ? NULL
			      : "nobody asked for one while the process ran; 'tiermalloc leaks PID' does";
	if (a->options->kind == TM_DOC_LEAK)
		return "none was asked for (--no-scan)";
	return "this report asks for none; 'tiermalloc leaks PID' does";
}

/* answer: enum tm_control_answer, or the process's answer, -errno. */
static const char *why_it_failed(int answer)
{
	switch (-answer) {
	case ETIMEDOUT:
		return "the process did not answer: it is stopped, or asks for no "
		       "new memory and has no helper (TIERMALLOC_THREAD)";
	case EACCES: return "this user may not write to its ledger, which is how it is asked";
	case EPERM:
		return "the process may open no files any more (seccomp), its threads stay unseen";
	case ESRCH: return "the process ended before it was done";
	case ENOMEM: return "the process had no memory for it";
	case ENOSPC: return "the ledger's file system is full: what it found had no room";
	case EFAULT: return "the image of the process that was scanned ended before it was done";
	default: return "the process could not make one";
	}
}

bool tm_analysis_young(const struct tm_analysis *a, char *buf, size_t size)
{
	const struct tm_ledger_header *h = &a->ledger->header;
	const struct tm_ledger_judged *young = &a->ledger->young;
	char window[24], bytes[24];

	if (h->scan_passes == 0 || young->objects == 0)
		return false;
	tm_text_time(window, h->window_ms);
	tm_fmt_bytes(bytes, sizeof(bytes), young->bytes);
	if (h->scan_epoch == h->epoch)
		snprintf(buf, size, "blocks younger than %s are not judged: %llu objects, %s",
			 window, (unsigned long long)young->objects, bytes);
	else
		snprintf(buf, size,
			 "blocks born since the last scan, or within %s before it, are not judged: "
			 "%llu objects, %s",
			 window, (unsigned long long)young->objects, bytes);
	return true;
}

void tm_analysis_add_scan(struct tm_analysis *a)
{
	const struct tm_ledger_header *h = &a->ledger->header;
	struct tm_doc_scans *s = &a->doc->scan;
	uint64_t objects = 0, bytes = 0;

	for (size_t i = 0; i < a->ledger->site_count; i++) {
		objects += a->ledger->sites[i].twice.objects;
		bytes += a->ledger->sites[i].twice.bytes;
	}
	s->passes = h->scan_passes;
	s->state = h->scan_passes == 0   ? TM_DOC_NEVER
		   : h->scan_passes == 1 ? TM_DOC_ONCE
		   : objects == 0        ? TM_DOC_NOTHING
					 : TM_DOC_LOST;
	if (h->scan_passes) {
		s->at_unix_ns = tm_ledger_unix_ns(a->ledger, h->scan_ms);
		s->read_bytes = h->scanned_bytes;
		s->unread_bytes = h->opaque_bytes;
		s->threads_stopped = h->threads_stopped;
		s->threads_missed = h->threads_missed;
		s->stopped_us = h->stop_us;
		s->found_objs = objects;
		s->found_bytes = bytes;
		s->young_objs = a->ledger->young.objects;
		s->young_bytes = a->ledger->young.bytes;
	}
	if (a->options->scan == TM_CONTROL_NOT_ASKED)
		s->why = why_not_asked(a, h->scan_passes);
	else if (a->options->scan != TM_CONTROL_SCANNED)
		s->why = why_it_failed(a->options->scan);
}
