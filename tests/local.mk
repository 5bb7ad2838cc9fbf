# SPDX-License-Identifier: MIT
# Test programs are found by name, so that adding one is adding one file (tests/README.md):
#   tests/SUITE/NAME.c, .cpp   a program, built into the build tree; lib*.c makes lib*.so
#   tests/SUITE/NAME.sh, .py   a script, run from the source tree
#   tests/unit/test_MODULE.c   Criterion tests, linked into one program

tm_suites = preload death stress fuzz cuda runner tools exports
tm_test_src := $(foreach s,$(tm_suites),$(wildcard $(srcdir)/tests/$(s)/*.c $(srcdir)/tests/$(s)/*.cpp))
tm_test_names := $(patsubst $(srcdir)/%,%,$(basename $(tm_test_src)))
tm_test_libs := $(foreach n,$(tm_test_names),$(if $(filter lib%,$(notdir $(n))),$(n).so))
tm_test_progs := $(foreach n,$(tm_test_names),$(if $(filter lib%,$(notdir $(n))),,$(n)))

tm_compile = $(AM_V_CC)CC='$(CC)' CXX='$(CXX)' TM_SRC=$(abs_top_srcdir) TM_BUILD=$(abs_top_builddir) \
	TM_TEST_CFLAGS='$(TM_TEST_CFLAGS)' $(srcdir)/tests/compile $< $(abs_top_builddir)/$@

# One rule per language and kind; the left side lists what is there.
tm_c_names := $(patsubst $(srcdir)/%.c,%,$(filter %.c,$(tm_test_src)))
tm_cpp_names := $(patsubst $(srcdir)/%.cpp,%,$(filter %.cpp,$(tm_test_src)))
$(filter $(addsuffix .so,$(tm_c_names)),$(tm_test_libs)): %.so: $(srcdir)/%.c $(srcdir)/tests/compile
	$(tm_compile)
$(filter $(addsuffix .so,$(tm_cpp_names)),$(tm_test_libs)): %.so: $(srcdir)/%.cpp $(srcdir)/tests/compile
	$(tm_compile)
$(filter $(tm_c_names),$(tm_test_progs)): %: $(srcdir)/%.c $(srcdir)/tests/compile | $(tm_test_libs)
	$(tm_compile)
$(filter $(tm_cpp_names),$(tm_test_progs)): %: $(srcdir)/%.cpp $(srcdir)/tests/compile | $(tm_test_libs)
	$(tm_compile)
tm_core_tests := $(if $(tm_test_src),$(shell grep -lE '^/\* core: yes' $(tm_test_src) /dev/null))
$(patsubst $(srcdir)/%,%,$(basename $(tm_core_tests))): libtmcore.a libtmbase.a

-include $(addsuffix .d,$(tm_test_progs) $(tm_test_libs))

# Unit tests: every test_*.c, linked into one program with the archives; with Criterion, or with the
# stand-in of tests/unit/plain. Their macros define functions without prototypes.
if HAVE_CRITERION
tm_unit_harness =
tm_unit_include = $(CRITERION_CFLAGS)
tm_unit_libs = $(CRITERION_LIBS)
else
tm_unit_harness = $(srcdir)/tests/unit/plain/plain.c
tm_unit_include = -I$(srcdir)/tests/unit/plain
tm_unit_libs =
endif
tm_unit_src := $(wildcard $(srcdir)/tests/unit/*.c) $(tm_unit_harness)
tm_unit_obj := $(patsubst $(srcdir)/%.c,%.o,$(tm_unit_src))
tm_unit_cflags = $(DEFS) $(tm_unit_include) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) -Wno-pedantic \
	-Wno-missing-prototypes -Wno-format-zero-length $(CFLAGS)
$(tm_unit_obj): %.o: $(srcdir)/%.c config.h
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) $(tm_unit_cflags) -MMD -MP -c -o $@ $<
tests/unit/unit: $(tm_unit_obj) libtmcore.a libtmbase.a libtmtools.a
	$(AM_V_CCLD)$(CC) $(AM_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(tm_unit_obj) \
		libtmcore.a libtmbase.a libtmcore.a libtmtools.a $(tm_unit_libs) -lpthread -lm
-include $(tm_unit_obj:.o=.d)

# What 'tests/run' needs; 'make check' runs it.
if SANITIZERS
tests: tests/unit/unit
else
tests: all-am tests/unit/unit $(tm_test_progs) $(tm_test_libs) $(tm_fake_libs)
endif
.PHONY: tests

check-local: tests
	TM_BUILD=$(abs_top_builddir) $(srcdir)/tests/run $(TM_SUITES)

clean-local:
	rm -f $(tm_test_progs) $(tm_test_libs) $(addsuffix .d,$(tm_test_progs) $(tm_test_libs))
	rm -f tests/unit/unit $(tm_unit_obj) $(tm_unit_obj:.o=.d) $(tm_fake_clean)

EXTRA_DIST += tests/README.md tests/HAZARDS.md tests/run tests/compile tests/bench tests/data tests/demo \
	tests/engines/engines tests/engines/work \
	$(wildcard $(addprefix $(srcdir)/tests/,$(addsuffix /*.[ch],$(tm_suites)) \
		$(addsuffix /*.cpp,$(tm_suites)) $(addsuffix /*.sh,$(tm_suites) builds lint bench-smoke engines) \
		$(addsuffix /*.py,$(tm_suites) builds lint bench-smoke engines) $(addsuffix /*.txt,$(tm_suites) lint) \
		tools/*.java unit/*.[ch] unit/plain/*.c unit/plain/criterion/*.h))
