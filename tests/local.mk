# SPDX-License-Identifier: MIT
# Test programs are found by name, so that adding one is adding one file (tests/README.md):
#   tests/SUITE/NAME.c, .cpp   a program, built into the build tree; lib*.c makes lib*.so
#   tests/SUITE/NAME.sh, .py   a script, run from the source tree
# Unit tests are linked into one program per build: add the file to tests_unit_unit_SOURCES.

tm_suites = preload death stress fuzz cuda runner tools
tm_test_src := $(foreach s,$(tm_suites),$(wildcard $(srcdir)/tests/$(s)/*.c $(srcdir)/tests/$(s)/*.cpp))
tm_test_names := $(patsubst $(srcdir)/%,%,$(basename $(tm_test_src)))
tm_test_libs := $(foreach n,$(tm_test_names),$(if $(filter lib%,$(notdir $(n))),$(n).so))
tm_test_progs := $(foreach n,$(tm_test_names),$(if $(filter lib%,$(notdir $(n))),,$(n)))

tm_compile = $(AM_V_CC)CC='$(CC)' CXX='$(CXX)' TM_SRC=$(abs_top_srcdir) TM_BUILD=$(abs_top_builddir) \
	TM_TEST_CFLAGS='$(TM_TEST_CFLAGS)' $(srcdir)/tests/compile $< $(abs_top_builddir)/$@

$(tm_test_libs): %.so: $(srcdir)/%.c $(srcdir)/tests/compile
	$(tm_compile)
$(filter $(patsubst $(srcdir)/%.c,%,$(tm_test_src)),$(tm_test_progs)): %: $(srcdir)/%.c \
		$(srcdir)/tests/compile libtmcore.a libtmbase.a | $(tm_test_libs)
	$(tm_compile)
$(filter $(patsubst $(srcdir)/%.cpp,%,$(tm_test_src)),$(tm_test_progs)): %: $(srcdir)/%.cpp \
		$(srcdir)/tests/compile libtmcore.a libtmbase.a | $(tm_test_libs)
	$(tm_compile)

-include $(addsuffix .d,$(tm_test_progs) $(tm_test_libs))

if HAVE_CRITERION
check_PROGRAMS += tests/unit/unit
endif
tests_unit_unit_CFLAGS = $(AM_CFLAGS) -Wno-pedantic -Wno-missing-prototypes $(CRITERION_CFLAGS)
tests_unit_unit_LDADD = libtmcore.a libtmbase.a libtmcore.a $(CRITERION_LIBS) -lpthread
tests_unit_unit_SOURCES = \
	tests/unit/test_version.c

# What 'tests/run' needs; 'make check' runs it.
if SANITIZERS
tests: $(check_PROGRAMS)
else
tests: all-am $(check_PROGRAMS) $(tm_test_progs) $(tm_test_libs)
endif
.PHONY: tests

check-local: tests
	TM_BUILD=$(abs_top_builddir) $(srcdir)/tests/run $(TM_SUITES)

clean-local:
	rm -f $(tm_test_progs) $(tm_test_libs) $(addsuffix .d,$(tm_test_progs) $(tm_test_libs))

EXTRA_DIST += tests/README.md tests/run tests/compile tests/bench tests/data \
	$(wildcard $(addprefix $(srcdir)/tests/,$(addsuffix /*.[ch],$(tm_suites)) \
		$(addsuffix /*.cpp,$(tm_suites)) $(addsuffix /*.sh,$(tm_suites) builds lint) \
		$(addsuffix /*.py,$(tm_suites) builds lint) $(addsuffix /*.txt,$(tm_suites) lint) \
		unit/*.h))
