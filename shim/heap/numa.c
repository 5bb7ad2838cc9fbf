/* SPDX-License-Identifier: MIT */
#include "shim/heap/numa.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "shim/base/parse.h"
#include "shim/os/msg.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

#ifndef MPOL_LOCAL
#define MPOL_LOCAL 4
#endif

static int real_bind(void *addr, size_t bytes, int mode, const struct tm_numa_set *set)
{
	/* the kernel reads one bit less than it is told */
	return (int)tm_syscall6(SYS_mbind, (long)(uintptr_t)addr, (long)bytes, mode,
				(long)(uintptr_t)(set ? set->word : NULL),
				set ? TM_NUMA_NODES_MAX + 1 : 0, 0);
}

static bool real_may_ask(void)
{
	struct tm_proc_status status;

	return tm_proc_may_open() && tm_proc_status(&status) == 0 && status.seccomp == 0;
}

static int real_process_policy(void)
{
	int mode = MPOL_DEFAULT;
	long rc = tm_syscall6(SYS_get_mempolicy, (long)(uintptr_t)&mode, 0, 0, 0, 0, 0);

	return rc != 0 ? (int)rc : mode;
}

static int real_allowed(struct tm_numa_set *ret_set)
{
	return (int)tm_syscall6(SYS_get_mempolicy, 0, (long)(uintptr_t)ret_set->word,
				TM_NUMA_NODES_MAX, 0, MPOL_F_MEMS_ALLOWED, 0);
}

struct tm_numa_os tm_numa_os = {real_bind, tm_proc_read, real_may_ask, real_process_policy,
				real_allowed};

static struct {
	enum tm_numa wish;                     /* [const after boot] */
	struct tm_numa_set chosen;             /* [const after boot] of TM_NUMA_NODES */
	struct tm_numa_set all;                /* nodes that have memory and are allowed */
	_Atomic uint32_t known;                /* 0: not known yet; else the number of nodes + 1 */
	_Atomic uint8_t policy[TM_PART_COUNT]; /* enum tm_numa_policy */
	_Atomic uint64_t refused;
} numa = {.wish = TM_NUMA_OFF};

/* --- sets ------------------------------------------------------------------------------------- */

static bool add_range(struct tm_numa_set *set, struct tm_str range)
{
	struct tm_str first;
	uint64_t from, to;

	if (!tm_parse_next(&range, '-', &first) ||
	    tm_parse_u64_in(first, 0, TM_NUMA_NODES_MAX - 1, &from) != 0)
		return false;
	to = from;
	if (range.len != 0 && tm_parse_u64_in(range, from, TM_NUMA_NODES_MAX - 1, &to) != 0)
		return false;
	for (uint64_t i = from; i <= to; i++)
		set->word[i / 64] |= UINT64_C(1) << (i % 64);
	return true;
}

/* Parse a list such as "0,2-3"; anything else in it is ignored. */
static void parse_set(struct tm_numa_set *set, struct tm_str text)
{
	struct tm_str range;

	while (tm_parse_next(&text, ',', &range))
		(void)add_range(set, range);
}

static uint32_t count_of(const struct tm_numa_set *set)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < TM_NUMA_WORDS; i++)
		count += (uint32_t)__builtin_popcountll(set->word[i]);
	return count;
}

static bool is_within(const struct tm_numa_set *set, const struct tm_numa_set *whole)
{
	for (unsigned i = 0; i < TM_NUMA_WORDS; i++)
		if (set->word[i] & ~whole->word[i])
			return false;
	return true;
}

/* --- what is wanted --------------------------------------------------------------------------- */

TM_AT_START_CODE void tm_numa_configure(enum tm_numa wish, const char *nodes)
{
	numa.wish = wish;
	numa.chosen = (struct tm_numa_set){0};
	numa.all = (struct tm_numa_set){0};
	atomic_store(&numa.known, 0);
	atomic_store(&numa.refused, 0);
	if (wish == TM_NUMA_NODES && nodes != NULL)
		parse_set(&numa.chosen, tm_str_of(nodes));
}

static uint32_t look_at_machine(void)
{
	struct tm_numa_set allowed = {0}, memory = {0};
	char text[512];
	long n = tm_numa_os.may_ask() ? tm_numa_os.read("/sys/devices/system/node/has_memory", text,
							sizeof(text))
				      : -EPERM;

	if (n > 0 && text[n - 1] == '\n')
		n--;
	if (n <= 0)
		return 0;
	parse_set(&memory, (struct tm_str){text, (size_t)n});
	if (numa.wish != TM_NUMA_NODES && count_of(&memory) < 2)
		return count_of(&memory);
	if (tm_numa_os.allowed(&allowed) != 0)
		return 0;
	for (unsigned i = 0; i < TM_NUMA_WORDS; i++)
		memory.word[i] &= allowed.word[i];
	/* several threads may do this at once; they write the same */
	numa.all = memory;
	return count_of(&memory);
}

static enum tm_numa_policy policy_of(enum tm_part part, uint32_t nodes)
{
	if (numa.wish == TM_NUMA_NODES) {
		if (count_of(&numa.chosen) != 0 && is_within(&numa.chosen, &numa.all))
			return TM_NUMA_ON_SET;
		if (part == 0)
			tm_msg(TM_MSG_WARN,
			       "TIERMALLOC_NUMA: a node is not there or has no memory, "
			       "nothing is bound");
		return TM_NUMA_AS_IS;
	}
	if (nodes < 2 || numa.wish == TM_NUMA_OFF)
		return TM_NUMA_AS_IS;
	if (numa.wish == TM_NUMA_INTERLEAVE)
		return TM_NUMA_ON_ALL;
	if (numa.wish == TM_NUMA_LOCAL)
		return TM_NUMA_NEAR;
	return part == TM_PART_PERSISTENT && tm_numa_os.process_policy() == MPOL_DEFAULT
		       ? TM_NUMA_ON_ALL
		       : TM_NUMA_AS_IS;
}

/* The number of usable nodes, read once. */
static uint32_t nodes(void)
{
	uint32_t known = atomic_load_explicit(&numa.known, memory_order_acquire), count;

	if (TM_LIKELY(known != 0))
		return known - 1;
	count = look_at_machine();
	for (unsigned part = 0; part < TM_PART_COUNT; part++)
		atomic_store_explicit(&numa.policy[part],
				      (uint8_t)policy_of((enum tm_part)part, count),
				      memory_order_relaxed);
	/* release: whoever sees the number sees sets and policies */
	atomic_store_explicit(&numa.known, count + 1, memory_order_release);
	return count;
}

/* --- binding ---------------------------------------------------------------------------------- */

static bool bind(void *addr, size_t bytes, enum tm_numa_policy policy,
		 const struct tm_numa_set *set)
{
	static const int modes[] = {[TM_NUMA_AS_IS] = MPOL_DEFAULT,
				    [TM_NUMA_ON_ALL] = MPOL_INTERLEAVE,
				    [TM_NUMA_NEAR] = MPOL_LOCAL,
				    [TM_NUMA_ON_SET] = MPOL_BIND};
	bool has_set = policy == TM_NUMA_ON_ALL || policy == TM_NUMA_ON_SET;

	if (tm_numa_os.bind(addr, bytes, modes[policy], has_set ? set : NULL) == 0)
		return true;
	if (atomic_fetch_add_explicit(&numa.refused, 1, memory_order_relaxed) == 0)
		tm_msg(TM_MSG_WARN, "the kernel refuses to place memory on NUMA nodes");
	return false;
}

static void bind_part(enum tm_numa_policy policy, uint32_t page, size_t pages)
{
	(void)bind(tm_zone_page_addr(page), pages << TM_PAGE_SHIFT, policy,
		   policy == TM_NUMA_ON_SET ? &numa.chosen : &numa.all);
}

/* Only the persistent part has a policy unless the user asked for one. */
static bool is_of_interest(enum tm_part part)
{
	return numa.wish != TM_NUMA_OFF &&
	       (numa.wish != TM_NUMA_AUTO || part == TM_PART_PERSISTENT);
}

void tm_numa_fresh(enum tm_part part, uint32_t page, size_t pages)
{
	enum tm_numa_policy policy;

	if (TM_LIKELY(!is_of_interest(part)))
		return;
	(void)nodes();
	policy = atomic_load_explicit(&numa.policy[part], memory_order_relaxed);
	if (policy != TM_NUMA_AS_IS)
		bind_part(policy, page, pages);
}

void tm_numa_relabel(enum tm_part from, enum tm_part to, uint32_t page, size_t pages)
{
	enum tm_numa_policy old, now;

	if (TM_LIKELY(!is_of_interest(from) && !is_of_interest(to)))
		return;
	(void)nodes();
	old = atomic_load_explicit(&numa.policy[from], memory_order_relaxed);
	now = atomic_load_explicit(&numa.policy[to], memory_order_relaxed);
	if (old != now)
		bind_part(now, page, pages);
}

bool tm_numa_place(void *addr, size_t bytes, enum tm_numa_policy policy, uint32_t node)
{
	struct tm_numa_set set = {0};

	if (numa.wish == TM_NUMA_OFF || nodes() < 2)
		return false;
	if (policy != TM_NUMA_ON_SET)
		return bind(addr, bytes, policy, &numa.all);
	if (node >= TM_NUMA_NODES_MAX)
		return false;
	set.word[node / 64] = UINT64_C(1) << (node % 64);
	return is_within(&set, &numa.all) && bind(addr, bytes, policy, &set);
}

uint64_t tm_numa_refused(void)
{
	return atomic_load_explicit(&numa.refused, memory_order_relaxed);
}
