# SPDX-License-Identifier: MIT
# The fake driver and runtime that the programs of this folder run on (README.md). They lie where
# the programs' run path leads: libcuda.so.1 as of release 13, older ones in v11020 and so on, to be
# chosen by LD_LIBRARY_PATH; the runtimes beside it; none of this is installed.

tm_fake_src := $(filter-out %/version.c,$(wildcard $(srcdir)/tests/cuda/fake/*.c))
tm_fake_obj := $(patsubst $(srcdir)/%.c,%.o,$(tm_fake_src))
tm_fakert_src := $(wildcard $(srcdir)/tests/cuda/fakert/*.c)
tm_fake_head := $(wildcard $(srcdir)/tests/cuda/*.h $(srcdir)/tests/cuda/fake*/*.h $(srcdir)/tests/cuda/fake*/*.def)
tm_fake_cc = $(CC) -std=gnu11 -D_GNU_SOURCE -I$(srcdir) -O2 -g -fPIC -fvisibility=hidden -pthread \
	-Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
tm_fake_versions = 11020 11040 12020
tm_fakert_sonames = libcudart.so.11.0 libcudart.so.12 libcudart.so.13
tm_fake_libs := tests/cuda/libcuda.so.1 $(tm_fake_versions:%=tests/cuda/v%/libcuda.so.1) \
	$(tm_fakert_sonames:%=tests/cuda/%) tests/cuda/libcudart_static.a

$(tm_fake_obj): %.o: $(srcdir)/%.c $(tm_fake_head)
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(tm_fake_cc) -c -o $@ $<

# What a driver of that release exports: the rows that are not newer.
tests/cuda/fake/exports-%.map: $(srcdir)/tests/cuda/fake/driver.def
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed -n 's/^D(\([a-zA-Z0-9]*\), \([a-zA-Z0-9_]*\), \([0-9]*\), \([A-Z]*\),.*/\2 \3 \4/p' $< | \
	awk -v max=$* 'BEGIN { print "{ global: tmfake_*;" } $$2 <= max { print "\t" $$1 ";"; \
		if ($$3 != "NONE") print "\t" $$1 "_" tolower($$3) ";" } END { print "local: *; };" }' >$@

tm_fake_link = $(AM_V_CCLD)$(MKDIR_P) $(@D) && $(tm_fake_cc) -DFAKE_VERSION=$(1) -shared -Wl,-Bsymbolic \
	-Wl,-soname,libcuda.so.1 -Wl,--version-script=tests/cuda/fake/exports-$(1).map -o $@ \
	$(srcdir)/tests/cuda/fake/version.c $(tm_fake_obj)
tests/cuda/libcuda.so.1: $(tm_fake_obj) $(srcdir)/tests/cuda/fake/version.c tests/cuda/fake/exports-13000.map
	$(call tm_fake_link,13000)
$(tm_fake_versions:%=tests/cuda/v%/libcuda.so.1): tests/cuda/v%/libcuda.so.1: $(tm_fake_obj) \
		$(srcdir)/tests/cuda/fake/version.c tests/cuda/fake/exports-%.map
	$(call tm_fake_link,$*)

tm_fakert_version = $(if $(filter %.12,$@),12090,$(if $(filter %.13,$@),13000,11020))
$(tm_fakert_sonames:%=tests/cuda/%): $(tm_fakert_src) $(tm_fake_head)
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && echo '$(@F) { global: cuda*; local: *; };' >$@.map && \
	$(tm_fake_cc) -DCUDART_VERSION=$(tm_fakert_version) -shared -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' \
		-Wl,--version-script=$@.map -o $@ $(tm_fakert_src) -ldl
tests/cuda/libcudart_static.a: $(tm_fakert_src) $(tm_fake_head)
	$(AM_V_AR)$(MKDIR_P) $(@D)/fakert && for f in $(tm_fakert_src); do \
		$(tm_fake_cc) -c -o $(@D)/fakert/$$(basename $$f .c).o $$f || exit 1; done && \
	rm -f $@ && $(AR) cr $@ $(@D)/fakert/*.o

$(filter tests/cuda/%,$(tm_test_progs) $(tm_test_libs)): | $(tm_fake_libs)

tests/cuda/libchain1.so: | tests/cuda/libchain2.so

tm_fake_clean = $(tm_fake_libs) $(tm_fake_obj) tests/cuda/fake/exports-*.map \
	tests/cuda/libcudart.so.*.map tests/cuda/fakert/*.o

EXTRA_DIST += tests/cuda/README.md $(wildcard $(addprefix $(srcdir)/tests/cuda/,fake/*.[ch] fake/*.def \
	fakert/*.[ch] fakert/*.def gpu/*.[ch] gpu/*.sh gpu/*.py))
