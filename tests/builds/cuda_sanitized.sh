# SPDX-License-Identifier: MIT
# Sourced by cuda_asan.sh and cuda_tsan.sh, which say what kind of sanitizer and which programs of tests/cuda. A library
# of its own is made for them in this directory: the hooks and the lock instrumented, all else from the tree that is
# tested, and without malloc, which the sanitizer's run-time library must have. Programs, driver and runtimes are
# instrumented, too.
set -eu
grep -q 'define TM_HAVE_CUDA 1' "$TM_BUILD/config.h" || {
	echo "skipped: built without the CUDA hooks"
	exit 77
}
# shellcheck disable=SC2154 # of who sources this
echo 'int main(void) { return 0; }' >one.c && gcc $kind -o one one.c 2>/dev/null && ./one || {
	echo "skipped: gcc has no such sanitizer here"
	exit 77
}
names=
for source in "$TM_SRC"/tests/cuda/*.c; do
	name=$(basename "$source" .c)
	case $name in lib*) continue ;; esac
	grep -q '^/\* run: none' "$source" && [ "${name%_subject}" = "$name" ] && continue
	case " $(echo ${without-}) " in *" $name "*) continue ;; esac
	case " $(echo ${only-$name}) " in *" $name "*) names="$names $name" ;; esac
done
cat >Makefile <<END
abs_top_srcdir := $TM_SRC
srcdir := $TM_SRC
outer := $TM_BUILD
CC := gcc $kind
AR := ar
MKDIR_P := mkdir -p
programs := $(for n in $names; do printf ' tests/cuda/%s' "$n"; done)
END
cat >>Makefile <<'END'
include $(srcdir)/tests/cuda/local.mk
flags := -std=gnu11 -D_GNU_SOURCE -I$(srcdir) -I$(outer) -O1 -g -fno-omit-frame-pointer -fPIC -fvisibility=hidden \
	-ftls-model=initial-exec
instrumented := $(filter-out verify.c,$(notdir $(wildcard $(srcdir)/cuda_hooks/*.c)))
objects := $(instrumented:%.c=hooks/%.o) hooks/lock.o hooks/boot.o hooks/late.o
libraries := $(patsubst $(srcdir)/%.c,%.so,$(wildcard $(srcdir)/tests/cuda/lib*.c))
all: libtiermalloc.so $(programs) $(libraries)
hooks/%.o: $(srcdir)/cuda_hooks/%.c
	@mkdir -p hooks && $(CC) $(flags) -c -o $@ $<
hooks/lock.o: $(srcdir)/shim/os/lock.c
	@mkdir -p hooks && $(CC) $(flags) -c -o $@ $<
# The two that know of sanitizers: one takes the program for a stranger's, one comes before shadow memory is there.
hooks/boot.o: $(srcdir)/shim/boot.c late.h
	@mkdir -p hooks && gcc $(flags) -include late.h -c -o $@ $<
hooks/late.o: late.c
	@mkdir -p hooks && gcc $(flags) -c -o $@ $<
libtiermalloc.so: $(objects)
	@$(CC) -shared -o $@ $(objects) $(foreach n,api interpose_dl start,$(outer)/shim/libtiermalloc_so-$(n).o) \
		$(wildcard $(outer)/shim/dl_*.o) $(outer)/libtmcore.a $(outer)/libtmbase.a $(outer)/libtmcore.a \
		-Wl,-soname,libtiermalloc.so -Wl,-z,defs -Wl,-z,now -Wl,--version-script=$(srcdir)/shim/tiermalloc.map
compile = @CC='$(CC) -w' CXX=false TM_BUILD=$(outer) bash $(srcdir)/tests/compile $< $(CURDIR)/$@
$(libraries): %.so: $(srcdir)/%.c | $(tm_fake_libs)
	$(compile)
tests/cuda/libchain1.so: tests/cuda/libchain2.so
$(programs): %: $(srcdir)/%.c | $(libraries)
	$(compile)
END
cat >late.h <<'END'
#pragma redefine_extname __asan_init tm_none_of_asan
#pragma redefine_extname __tsan_init tm_none_of_tsan
#pragma redefine_extname __lsan_init tm_none_of_lsan
#define tm_boot tm_boot_at_once
END
cat >late.c <<'END'
#include "shim/boot.h"
bool tm_boot_at_once(void);
static bool up;
__attribute__((constructor(101))) static void begin(void)
{
	up = true;
}
bool tm_boot(void)
{
	return up && tm_boot_at_once();
}
END
: >config.status
cp "$TM_BUILD/config.h" .
ln -sf "$TM_BUILD/tiermalloc" .
make -s -j"$(nproc 2>/dev/null || echo 2)" all
# Their dlopen knows nothing of the program's run path; TSan wants addresses that not every kernel gives by chance.
export LD_LIBRARY_PATH=$PWD/tests/cuda
still=
setarch "$(uname -m)" -R true 2>/dev/null && still="setarch $(uname -m) -R"
# shellcheck disable=SC2046,SC2086 # lists
TM_BUILD=$PWD exec $still "$TM_SRC/tests/run" $(for n in $names; do grep -q '^/\* run: none' "$TM_SRC/tests/cuda/$n.c" || echo "cuda/$n"; done)
