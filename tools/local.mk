# SPDX-License-Identifier: MIT
# The command. It links shim/base and policies, never the heap.
bin_PROGRAMS += tiermalloc
tiermalloc_CFLAGS = $(AM_CFLAGS) $(LIBDW_CFLAGS) $(JANSSON_CFLAGS) $(ZLIB_CFLAGS)
tiermalloc_LDADD = libtmtools.a libtmbase.a $(LIBDW_LIBS) $(JANSSON_LIBS) $(ZLIB_LIBS) -ldl -lm
# What the command computes with, without input and output: unit tests link it too.
noinst_LIBRARIES += libtmtools.a
libtmtools_a_CFLAGS = $(AM_CFLAGS)
libtmtools_a_SOURCES = \
	%reldir%/growth.c \
	%reldir%/growth.h \
	%reldir%/ranges.c \
	%reldir%/ranges.h \
	%reldir%/trend.c \
	%reldir%/trend.h
tiermalloc_SOURCES = \
	%reldir%/buffer.c \
	%reldir%/buffer.h \
	%reldir%/cmd.h \
	%reldir%/cmd_config.c \
	%reldir%/cmd_doctor.c \
	%reldir%/cmd_export.c \
	%reldir%/cmd_report.c \
	%reldir%/cmd_run.c \
	%reldir%/cmd_serve.c \
	%reldir%/config_man.c \
	%reldir%/help.c \
	%reldir%/help.h \
	%reldir%/config_man.h \
	%reldir%/doctor.h \
	%reldir%/document.c \
	%reldir%/document.h \
	%reldir%/document_fields.c \
	%reldir%/document_fields.h \
	%reldir%/document_load.c \
	%reldir%/document_load.h \
	%reldir%/doctor_cuda.c \
	%reldir%/doctor_machine.c \
	%reldir%/doctor_program.c \
	%reldir%/elf_look.c \
	%reldir%/elf_look.h \
	%reldir%/export.c \
	%reldir%/export.h \
	%reldir%/export_chrome.c \
	%reldir%/export_file.c \
	%reldir%/export_file.h \
	%reldir%/export_html.c \
	%reldir%/export_pprof.c \
	%reldir%/export_prometheus.c \
	%reldir%/export_stacks.c \
	%reldir%/http.c \
	%reldir%/http.h \
	%reldir%/json_out.c \
	%reldir%/json_schema.c \
	%reldir%/library.c \
	%reldir%/ledger.c \
	%reldir%/ledger.h \
	%reldir%/ledger_list.c \
	%reldir%/ledger_list.h \
	%reldir%/library.h \
	%reldir%/main.c \
	%reldir%/mappings.c \
	%reldir%/mappings.h \
	%reldir%/page.S \
	%reldir%/program.c \
	%reldir%/program.h \
	%reldir%/run_account.c \
	%reldir%/run_account.h \
	%reldir%/run_child.c \
	%reldir%/run_child.h \
	%reldir%/run_paths.c \
	%reldir%/run_paths.h \
	%reldir%/sha256.c \
	%reldir%/sha256.h \
	%reldir%/utf8.c \
	%reldir%/utf8.h
if HAVE_JANSSON
tiermalloc_SOURCES += %reldir%/json_in.c
else
tiermalloc_SOURCES += %reldir%/json_none.c
endif
dist_tmshare_DATA += %reldir%/report-1.schema.json
if HAVE_ZLIB
tiermalloc_SOURCES += %reldir%/gzip.c
else
tiermalloc_SOURCES += %reldir%/gzip_stored.c
endif
# From a ledger to the document, and its text.
tiermalloc_SOURCES += \
	%reldir%/acknowledged.c \
	%reldir%/acknowledged.h \
	%reldir%/analysis.c \
	%reldir%/analysis.h \
	%reldir%/analysis_frag.c \
	%reldir%/analysis_gpu.c \
	%reldir%/analysis_leaks.c \
	%reldir%/analysis_scan.c \
	%reldir%/analysis_sites.c \
	%reldir%/analysis_tables.c \
	%reldir%/balance.c \
	%reldir%/cmd_ack.c \
	%reldir%/cmd_diff.c \
	%reldir%/cmd_ls.c \
	%reldir%/cmd_symbols.c \
	%reldir%/cmd_top.c \
	%reldir%/combine.c \
	%reldir%/combine.h \
	%reldir%/combine_diff.c \
	%reldir%/combine_merge.c \
	%reldir%/combine_parts.h \
	%reldir%/control.c \
	%reldir%/control.h \
	%reldir%/fail_on.c \
	%reldir%/fail_on.h \
	%reldir%/holders.c \
	%reldir%/holders.h \
	%reldir%/ledger_sites.c \
	%reldir%/select.c \
	%reldir%/select.h \
	%reldir%/suppressions.c \
	%reldir%/suppressions.h \
	%reldir%/symbols.h \
	%reldir%/text.c \
	%reldir%/text_fit.c \
	%reldir%/text_fit.h \
	%reldir%/text.h \
	%reldir%/text_frag.c \
	%reldir%/text_full.c \
	%reldir%/text_gpu.c \
	%reldir%/text_leaks.c
if HAVE_LIBDW
tiermalloc_SOURCES += %reldir%/symbols.c
else
tiermalloc_SOURCES += %reldir%/symbols_none.c
endif
# Policies over traces and ledgers.
tiermalloc_SOURCES += \
	%reldir%/cmd_explain.c \
	%reldir%/cmd_replay.c \
	%reldir%/cmd_trace.c \
	%reldir%/cmd_tune.c \
	%reldir%/decisions.c \
	%reldir%/decisions.h \
	%reldir%/replay.c \
	%reldir%/replay.h \
	%reldir%/replay_arena.c \
	%reldir%/replay_arena.h \
	%reldir%/rules_file.c \
	%reldir%/rules_file.h \
	%reldir%/trace_convert.c \
	%reldir%/trace_convert.h \
	%reldir%/trace_file.c \
	%reldir%/trace_file.h
# The assembler copies these in; it tells nobody what it read.
tm_page_parts = $(addprefix $(srcdir)/%reldir%/page/,page.css util.js data.js overview.js timeline.js \
	flame.js sites.js pages.js devices.js main.js)
EXTRA_DIST += %reldir%/page
%reldir%/page.$(OBJEXT): $(tm_page_parts)
%reldir%/tiermalloc-page.$(OBJEXT): $(tm_page_parts)
