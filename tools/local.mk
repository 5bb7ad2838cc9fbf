# SPDX-License-Identifier: MIT
# The command. It links shim/base and policies, never the heap.
bin_PROGRAMS += tiermalloc
tiermalloc_CFLAGS = $(AM_CFLAGS) $(LIBDW_CFLAGS) $(JANSSON_CFLAGS) $(ZLIB_CFLAGS)
tiermalloc_LDADD = libtmtools.a libtmbase.a $(LIBDW_LIBS) $(JANSSON_LIBS) $(ZLIB_LIBS) -ldl -lm
# What the command computes with, without input and output: unit tests link it too.
noinst_LIBRARIES += libtmtools.a
libtmtools_a_CFLAGS = $(AM_CFLAGS)
libtmtools_a_SOURCES = \
	%reldir%/analysis/growth.c \
	%reldir%/analysis/growth.h \
	%reldir%/analysis/ranges.c \
	%reldir%/analysis/ranges.h \
	%reldir%/analysis/trend.c \
	%reldir%/analysis/trend.h
tiermalloc_SOURCES = \
	%reldir%/analysis/document_load.c \
	%reldir%/analysis/document_load.h \
	%reldir%/buffer.c \
	%reldir%/buffer.h \
	%reldir%/cmd.h \
	%reldir%/cmd/cmd_config.c \
	%reldir%/cmd/cmd_doctor.c \
	%reldir%/cmd/cmd_export.c \
	%reldir%/cmd/cmd_report.c \
	%reldir%/cmd/cmd_run.c \
	%reldir%/cmd/cmd_serve.c \
	%reldir%/cmd/config_man.c \
	%reldir%/cmd/config_man.h \
	%reldir%/cmd/doctor.h \
	%reldir%/cmd/doctor_cuda.c \
	%reldir%/cmd/doctor_machine.c \
	%reldir%/cmd/doctor_program.c \
	%reldir%/cmd/program.c \
	%reldir%/cmd/program.h \
	%reldir%/cmd/run_account.c \
	%reldir%/cmd/run_account.h \
	%reldir%/cmd/run_child.c \
	%reldir%/cmd/run_child.h \
	%reldir%/cmd/run_paths.c \
	%reldir%/cmd/run_paths.h \
	%reldir%/document/document.c \
	%reldir%/document/document.h \
	%reldir%/document/document_fields.c \
	%reldir%/document/document_fields.h \
	%reldir%/document/json_schema.c \
	%reldir%/document/utf8.c \
	%reldir%/document/utf8.h \
	%reldir%/elf_look.c \
	%reldir%/elf_look.h \
	%reldir%/export/export.c \
	%reldir%/export/export.h \
	%reldir%/export/export_chrome.c \
	%reldir%/export/export_file.c \
	%reldir%/export/export_file.h \
	%reldir%/export/export_html.c \
	%reldir%/export/export_pprof.c \
	%reldir%/export/export_prometheus.c \
	%reldir%/export/export_stacks.c \
	%reldir%/export/http.c \
	%reldir%/export/http.h \
	%reldir%/export/json_out.c \
	%reldir%/export/page.S \
	%reldir%/export/sha256.c \
	%reldir%/export/sha256.h \
	%reldir%/help.c \
	%reldir%/help.h \
	%reldir%/ledger/ledger.c \
	%reldir%/ledger/ledger.h \
	%reldir%/ledger/ledger_list.c \
	%reldir%/ledger/ledger_list.h \
	%reldir%/ledger/mappings.c \
	%reldir%/ledger/mappings.h \
	%reldir%/library.c \
	%reldir%/library.h \
	%reldir%/main.c
if HAVE_JANSSON
tiermalloc_SOURCES += %reldir%/document/json_in.c
else
tiermalloc_SOURCES += %reldir%/document/json_none.c
endif
dist_tmshare_DATA += %reldir%/document/report-1.schema.json
if HAVE_ZLIB
tiermalloc_SOURCES += %reldir%/export/gzip.c
else
tiermalloc_SOURCES += %reldir%/export/gzip_stored.c
endif
# From a ledger to the document, and its text.
tiermalloc_SOURCES += \
	%reldir%/analysis/acknowledged.c \
	%reldir%/analysis/acknowledged.h \
	%reldir%/analysis/analysis.c \
	%reldir%/analysis/analysis.h \
	%reldir%/analysis/analysis_frag.c \
	%reldir%/analysis/analysis_gpu.c \
	%reldir%/analysis/analysis_leaks.c \
	%reldir%/analysis/analysis_scan.c \
	%reldir%/analysis/analysis_sites.c \
	%reldir%/analysis/analysis_tables.c \
	%reldir%/analysis/balance.c \
	%reldir%/analysis/combine.c \
	%reldir%/analysis/combine.h \
	%reldir%/analysis/combine_diff.c \
	%reldir%/analysis/combine_merge.c \
	%reldir%/analysis/combine_parts.h \
	%reldir%/analysis/holders.c \
	%reldir%/analysis/holders.h \
	%reldir%/analysis/suppressions.c \
	%reldir%/analysis/suppressions.h \
	%reldir%/analysis/symbols.h \
	%reldir%/cmd/cmd_ack.c \
	%reldir%/cmd/cmd_diff.c \
	%reldir%/cmd/cmd_ls.c \
	%reldir%/cmd/cmd_symbols.c \
	%reldir%/cmd/cmd_top.c \
	%reldir%/cmd/fail_on.c \
	%reldir%/cmd/fail_on.h \
	%reldir%/cmd/select.c \
	%reldir%/cmd/select.h \
	%reldir%/ledger/control.c \
	%reldir%/ledger/control.h \
	%reldir%/ledger/ledger_sites.c \
	%reldir%/text/text.c \
	%reldir%/text/text.h \
	%reldir%/text/text_fit.c \
	%reldir%/text/text_fit.h \
	%reldir%/text/text_frag.c \
	%reldir%/text/text_full.c \
	%reldir%/text/text_gpu.c \
	%reldir%/text/text_leaks.c
if HAVE_LIBDW
tiermalloc_SOURCES += %reldir%/analysis/symbols.c
else
tiermalloc_SOURCES += %reldir%/analysis/symbols_none.c
endif
# Policies over traces and ledgers.
tiermalloc_SOURCES += \
	%reldir%/analysis/decisions.c \
	%reldir%/analysis/decisions.h \
	%reldir%/cmd/cmd_explain.c \
	%reldir%/cmd/cmd_replay.c \
	%reldir%/cmd/cmd_trace.c \
	%reldir%/cmd/cmd_tune.c \
	%reldir%/cmd/trace_convert.c \
	%reldir%/cmd/trace_convert.h \
	%reldir%/policy/replay.c \
	%reldir%/policy/replay.h \
	%reldir%/policy/replay_arena.c \
	%reldir%/policy/replay_arena.h \
	%reldir%/policy/rules_file.c \
	%reldir%/policy/rules_file.h \
	%reldir%/policy/trace_file.c \
	%reldir%/policy/trace_file.h
# The assembler copies these in; it tells nobody what it read.
tm_page_parts = $(addprefix $(srcdir)/%reldir%/export/page/,page.css util.js data.js overview.js timeline.js \
	flame.js sites.js pages.js devices.js main.js)
EXTRA_DIST += $(tm_page_parts)
%reldir%/export/page.$(OBJEXT): $(tm_page_parts)
%reldir%/export/tiermalloc-page.$(OBJEXT): $(tm_page_parts)
