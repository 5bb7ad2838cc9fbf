# SPDX-License-Identifier: MIT
# The runner links none of our code: it is the stranger that the library is tried on.
# Kernels for one instruction set go into an archive of their own with its -m flags.
# Results are compared bit for bit: no fused multiply-add unless it is written down.
YI_CFLAGS = $(AM_CFLAGS) -O3 -ffp-contract=off -fno-math-errno
# Tests link the two archives, too.
noinst_LIBRARIES += libyi.a
bin_PROGRAMS += yi-coder-run
yi_coder_run_CFLAGS = $(YI_CFLAGS)
yi_coder_run_SOURCES = %reldir%/main.c
yi_coder_run_LDADD = libyi.a
noinst_LIBRARIES += libyiv3.a
yi_coder_run_LDADD += libyiv3.a
if ARCH_X86_64
libyiv3_a_CFLAGS = $(YI_CFLAGS) -mavx2 -mfma -mf16c -mbmi2
libyiv3_a_SOURCES = \
	%reldir%/dot_v3.c \
	%reldir%/dot_v3.h \
	%reldir%/dot_v3_acts.c \
	%reldir%/dot_v3_float.c \
	%reldir%/dot_v3_k.c
else
# Empty elsewhere.
libyiv3_a_SOURCES = %reldir%/dot_v3.h
endif
yi_coder_run_LDADD += -lm -lpthread -ldl
libyi_a_CFLAGS = $(YI_CFLAGS)
libyi_a_SOURCES = \
	%reldir%/attention.c \
	%reldir%/attention.h \
	%reldir%/blocks.h \
	%reldir%/detok.c \
	%reldir%/device.h \
	%reldir%/device_cuda.c \
	%reldir%/dot.c \
	%reldir%/dot.h \
	%reldir%/dot_ref.c \
	%reldir%/error.c \
	%reldir%/error.h \
	%reldir%/forward.c \
	%reldir%/forward.h \
	%reldir%/gguf.c \
	%reldir%/gguf.h \
	%reldir%/gguf_cursor.c \
	%reldir%/gguf_cursor.h \
	%reldir%/gguf_index.c \
	%reldir%/gguf_value.c \
	%reldir%/half.h \
	%reldir%/info.c \
	%reldir%/json.c \
	%reldir%/json.h \
	%reldir%/kv.c \
	%reldir%/kv.h \
	%reldir%/kv_buffers.h \
	%reldir%/kv_pool.c \
	%reldir%/kv_state.c \
	%reldir%/leak_demo.c \
	%reldir%/leak_demo.h \
	%reldir%/make_main.c \
	%reldir%/make_model.c \
	%reldir%/make_model.h \
	%reldir%/make_vocab.c \
	%reldir%/make_weights.c \
	%reldir%/matmul.c \
	%reldir%/matmul.h \
	%reldir%/mem.c \
	%reldir%/mem.h \
	%reldir%/merge.c \
	%reldir%/merge.h \
	%reldir%/model.c \
	%reldir%/model.h \
	%reldir%/model_check.c \
	%reldir%/model_check.h \
	%reldir%/ops.c \
	%reldir%/ops.h \
	%reldir%/options.c \
	%reldir%/options.h \
	%reldir%/pretok.c \
	%reldir%/pretok.h \
	%reldir%/prompt.c \
	%reldir%/prompt.h \
	%reldir%/quant.c \
	%reldir%/quant.h \
	%reldir%/quant_vec.c \
	%reldir%/quant_vec.h \
	%reldir%/request.c \
	%reldir%/request.h \
	%reldir%/run.c \
	%reldir%/run.h \
	%reldir%/sampler.c \
	%reldir%/sampler.h \
	%reldir%/scheduler.c \
	%reldir%/scheduler.h \
	%reldir%/scheduler_admit.c \
	%reldir%/scheduler_report.c \
	%reldir%/serve.c \
	%reldir%/serve.h \
	%reldir%/session.c \
	%reldir%/session.h \
	%reldir%/stats.c \
	%reldir%/stats.h \
	%reldir%/stop.c \
	%reldir%/stop.h \
	%reldir%/threads.c \
	%reldir%/threads.h \
	%reldir%/tiers.c \
	%reldir%/tiers.h \
	%reldir%/tokenizer.c \
	%reldir%/tokenizer.h \
	%reldir%/unicode.c \
	%reldir%/unicode.h \
	%reldir%/unicode_runs.h \
	%reldir%/vocab.c \
	%reldir%/vocab.h \
	%reldir%/vocab_special.c
EXTRA_DIST += %reldir%/gen_unicode.py tests/runner/oracle
tests/fuzz/gguf tests/runner/kernels: libyi.a libyiv3.a
