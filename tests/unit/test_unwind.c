/* SPDX-License-Identifier: MIT */
/* unwind: the frames that libgcc's unwinder finds, without it. */
#include <criterion/criterion.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/unwind/unwind.h"
#include "shim/unwind/unwind_cfi.h"

static uint64_t ours[64];
static void *theirs[80];
static struct tm_unwind_walk walk;
static struct tm_unwind_room room;
static int their_count;
static int before; /* theirs that ours leaves out: look(), under a sanitizer its own function too */
static uintptr_t top;
static unsigned seen_count;

static void seen(uintptr_t pc, const struct tm_unwind_object *object)
{
	cr_assert(pc >= object->begin && pc <= object->end);
	seen_count++;
}

static __attribute__((noinline)) void look(void)
{
	struct tm_unwind_regs regs;

	walk = (struct tm_unwind_walk){.room = &room,
				       .return_address = (uintptr_t)__builtin_return_address(0),
				       .frame = (uintptr_t)__builtin_dwarf_cfa(),
				       .stack_top = top,
				       .seen = seen};
	tm_unwind_here(&regs);
	tm_unwind_walk(&walk, &regs, ours, 64);
	their_count = backtrace(theirs, 80);
	for (before = 0; before < 3 && (uintptr_t)theirs[before] != ours[0]; before++)
		;
}

static void compare(unsigned least)
{
	cr_assert(walk.count >= least, "%u frames, of %d", walk.count, their_count);
	for (unsigned i = 0; i < walk.count; i++)
		cr_assert_eq(ours[i], (uintptr_t)theirs[(int)i + before], "frame %u", i);
}

static __attribute__((noinline)) int deep(int n, volatile char *outer)
{
	/* a frame of varying length, which the compiler addresses by its frame pointer */
	volatile char *here = __builtin_alloca(n % 3 == 0 ? 100 + (size_t)n : 16);

	here[0] = outer[0];
	if (n == 0)
		look();
	else
		deep(n - 1, here);
	return here[0];
}

/* The stack is aligned by hand: the CFA is an expression. */
static __attribute__((noinline)) int aligned(volatile char *outer)
{
	_Alignas(128) volatile char here[256];

	here[0] = outer[0];
	here[128] = (char)deep(3, here);
	return here[128];
}

Test(unwind, frames_are_those_of_the_run_time_library)
{
	/* volatile: one call in the code, one program counter, whatever the compiler does to loops */
	static volatile unsigned rounds = 3;
	unsigned looked_up[3];
	char c = 1;

	/* other tests may have run in this process */
	tm_unwind_forget();
	for (unsigned round = 0; round < rounds; round++) {
		unsigned seen_before = seen_count;

		deep(12, &c);
		cr_assert_eq(walk.truncated, false);
		cr_assert_eq((int)walk.count, their_count - before);
		compare(14);
		looked_up[round] = seen_count - seen_before;
	}
	cr_assert(looked_up[0] > 0);
	cr_assert(looked_up[1] == 0 && looked_up[2] == 0,
		  "rows that are known are looked up again");
}

Test(unwind, realigned_frames_are_passed)
{
	char c = 1;

	aligned(&c);
	compare(6);
	cr_assert_not(walk.truncated);
}

Test(unwind, after_forgetting_all_is_looked_up_again)
{
	char c = 1;

	deep(5, &c);
	unsigned seen_before = seen_count;
	tm_unwind_forget();
	deep(5, &c);
	cr_assert(seen_count > seen_before);
	compare(7);
}

#ifdef __x86_64__
/* As an interpreter or a compiler at run time makes it: in an object, without frame information. */
void test_rowless(void (*call)(void));
__asm__(".pushsection .text\n"
	".globl test_rowless\n"
	".type test_rowless, @function\n"
	"test_rowless:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	call *%rdi\n"
	"	pop %rbp\n"
	"	ret\n"
	".size test_rowless, . - test_rowless\n"
	".popsection");

/* Its frame is addressed by a frame pointer, which such code saves. */
static __attribute__((noinline)) void through_rowless(size_t n)
{
	volatile char *here = __builtin_alloca(n);

	here[0] = 1;
	test_rowless(look);
	here[0] = 2;
}

Test(unwind, code_without_rows_is_looked_up_once)
{
	static volatile unsigned rounds = 3;
	unsigned looked_up[3];

	tm_unwind_forget();
	for (unsigned round = 0; round < rounds; round++) {
		unsigned seen_before = seen_count;

		through_rowless(100 + round);
		cr_assert(walk.by_frames);
		cr_assert(walk.count > 2, "%u frames", walk.count);
		looked_up[round] = seen_count - seen_before;
	}
	cr_assert(looked_up[0] > 0);
	cr_assert(looked_up[1] == 0 && looked_up[2] == 0,
		  "code that has no rows is looked up again");
}
#endif

static void on_signal(int number)
{
	char c = (char)number;

	deep(4, &c);
}

Test(unwind, signal_handlers_on_a_stack_of_their_own_are_passed)
{
	static char stack[65536];
	const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	if (getenv("TM_EMULATED"))
		cr_skip_test("the signal trampoline of qemu-user has no rows");
	/* Loads the run-time library's unwinder, which allocates. */
	backtrace(theirs, 1);
	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	compare(9);
	cr_assert_not(walk.truncated);
}

static void *in_thread(void *arg)
{
	char c = 1;

	(void)arg;
	top = (uintptr_t)__builtin_thread_pointer();
	deep(7, &c);
	compare(9);
	cr_assert_not(walk.truncated);
	return NULL;
}

Test(unwind, threads_end_where_they_begin)
{
	pthread_t thread;

	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
}

Test(unwind, a_wrong_frame_gives_the_site_alone)
{
	struct tm_unwind_regs regs;
	struct tm_unwind_walk w = {.room = &room,
				   .return_address = 0x1234,
				   .frame = (uintptr_t)__builtin_dwarf_cfa() - 8};

	tm_unwind_here(&regs);
	tm_unwind_walk(&w, &regs, ours, 64);
	cr_assert_eq(w.count, 1);
	cr_assert_eq(ours[0], 0x1234);
	cr_assert(w.truncated);
	w.frame = UINTPTR_MAX;
	tm_unwind_here(&regs);
	tm_unwind_walk(&w, &regs, ours, 64);
	cr_assert_eq(w.count, 1);
	cr_assert(w.truncated);
}

Test(unwind, the_kernel_says_what_is_readable)
{
	char *p = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(p + 4096, 4096);
	mprotect(p + 8192, 4096, PROT_NONE);
	cr_assert(tm_unwind_readable((uintptr_t)p, 4096));
	cr_assert_not(tm_unwind_readable((uintptr_t)p, 4097));
	cr_assert_not(tm_unwind_readable((uintptr_t)p + 4096, 8));
	cr_assert_not(tm_unwind_readable((uintptr_t)p + 8192, 8));
	cr_assert_not(tm_unwind_readable(UINTPTR_MAX - 7, 8));
	cr_assert_not(tm_unwind_readable(UINTPTR_MAX - 7, 100));
	cr_assert_not(tm_unwind_readable(8, 8));
}

Test(unwind, both_ways_to_find_an_object_agree)
{
	struct tm_unwind_object a, b;
	const uintptr_t code[] = {(uintptr_t)on_signal, (uintptr_t)abort, (uintptr_t)raise};

	for (size_t i = 0; i < TM_ARRAY_LEN(code); i++) {
		cr_assert(tm_unwind_object(code[i], &a));
		cr_assert(tm_unwind_object_by_maps(code[i], &b));
		cr_assert_eq(a.begin, b.begin);
		cr_assert_eq(a.eh_frame, b.eh_frame);
		cr_assert(b.end > code[i]);
	}
	cr_assert_not(tm_unwind_object((uintptr_t)&a, &b));
	cr_assert_not(tm_unwind_object_by_maps((uintptr_t)&a, &b));
}

Test(unwind, pages_of_files_alone_are_given_back)
{
	uint64_t entries[TM_UNWIND_PAGES_ROOM];
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 300 * page;
	int fd = open("/proc/self/exe", O_RDONLY);
	char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	uintptr_t begin = (uintptr_t)map;

	cr_assert_neq(map, MAP_FAILED);
	cr_assert_eq(memcmp(map, "\177ELF", 4), 0);
	if (access("/proc/self/pagemap", R_OK) != 0)
		cr_skip_test("no pagemap here");
	cr_assert(tm_unwind_pages_are_clean(begin, begin + bytes, entries), "as the file has them");
	map[0] = 1;
	cr_assert_not(tm_unwind_pages_are_clean(begin, begin + bytes, entries),
		      "a page of its own");
	cr_assert(tm_unwind_pages_are_clean(begin + page, begin + bytes, entries));
	/* as a program does that moves its code to huge pages */
	cr_assert_eq(mmap(map + 290 * page, page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		     map + 290 * page);
	map[290 * page] = 1;
	cr_assert_not(tm_unwind_pages_are_clean(begin + page, begin + bytes, entries));
	munmap(map, bytes);
	close(fd);
}
