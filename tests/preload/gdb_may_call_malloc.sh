#!/bin/bash
# SPDX-License-Identifier: MIT
# H82: gdb stops a thread inside the allocator's slow path, as its mmap or madvise returns, and calls
# malloc, calloc and free in the program. It gets memory, ten times, and the program goes on to its
# end. (Where the system call is only about to begin, a call from gdb makes the kernel drop it.)
# Failure: the call hangs on a lock that the stopped thread holds. The calls may map memory themselves.
# needs: gcc gdb
set -u
cd "$TMPDIR" || exit 1
cat > prog.c <<'END'
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	syscall(SYS_getppid); /* gdb starts to look here */
	for (int i = 0; i < 200; i++) {
		size_t bytes = (size_t)(i + 1) * 300000;
		char *p = malloc(bytes), *q = malloc((size_t)i * 100);
		memset(p, 1, bytes);
		free(p);
		free(q);
		if (i % 5 == 0)
			malloc_trim(0);
	}
	return 42;
}
END
gcc -O0 -g -fno-builtin -o prog prog.c || exit 1
cat > script <<'END'
set pagination off
set confirm off
set startup-with-shell off
catch syscall getppid
run
delete
catch syscall mmap madvise munmap mremap
END
for i in 1 2 3 4 5 6 7 8 9 10; do
	cat >> script <<'END'
continue
continue
print "stopped in a system call"
set scheduler-locking on
disable
call ((void *(*)(unsigned long))malloc)(10)
call ((void *(*)(unsigned long, unsigned long))calloc)(3, 70000)
call ((void (*)(void *))free)($)
enable
set scheduler-locking off
END
done
printf 'delete\ncontinue\n' >> script
# some virtual machines cannot write the registers that a call needs
if ! gdb -batch -nx -ex 'set startup-with-shell off' -ex 'catch syscall getppid' -ex run \
	-ex 'print ((int (*)(void))getuid)() + 1000000' ./prog 2>&1 | grep -qE '^\$1 = 1[0-9]{6}$'; then
	echo "skipped: gdb cannot call functions here"; exit 77
fi
gdb -batch -nx -ex "set environment LD_PRELOAD $TM_LIB" -x script ./prog >out 2>&1
stops=$(grep -c 'stopped in a system call' out)
got=$(grep -cE '^\$[0-9]+ = \(void \*\) 0x[0-9a-f]+' out)
if ! grep -q 'exited with code 052' out || [ "$got" != $((stops * 2)) ] || [ "$stops" -lt 10 ]; then
	echo "$stops stops, $got blocks"; tail -40 out; exit 1
fi
