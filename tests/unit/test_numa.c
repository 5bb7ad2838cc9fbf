/* SPDX-License-Identifier: MIT */
/* numa: on a machine that is not there. */
#include <criterion/criterion.h>
#include <linux/mempolicy.h>

#include "shim/heap/numa.h"
#include "tests/unit/heap_fake.h"

static struct {
	const char *has_memory;
	uint64_t allowed;
	int policy;
	bool filtered;
	int refuse;
	int reads, binds;
	int mode; /* of the last bind */
	uint64_t set;
	uintptr_t at;
	size_t bytes;
} machine;

static int bind_it(void *addr, size_t bytes, int mode, const struct tm_numa_set *set)
{
	machine.binds++;
	machine.mode = mode;
	machine.set = set ? set->word[0] : 0;
	machine.at = (uintptr_t)addr;
	machine.bytes = bytes;
	return machine.refuse;
}

static long read_it(const char *path, char *buf, size_t size)
{
	size_t n = strlen(machine.has_memory);

	machine.reads++;
	cr_assert_str_eq(path, "/sys/devices/system/node/has_memory");
	cr_assert_lt(n, size);
	memcpy(buf, machine.has_memory, n);
	return (long)n;
}

static bool ask_it(void)
{
	return !machine.filtered;
}

static int policy_it(void)
{
	return machine.policy;
}

static int allowed_it(struct tm_numa_set *set)
{
	set->word[0] = machine.allowed;
	return 0;
}

static void machine_of(const char *has_memory, uint64_t allowed)
{
	machine.has_memory = has_memory;
	machine.allowed = allowed;
	machine.binds = machine.reads = 0;
	tm_numa_os = (struct tm_numa_os){bind_it, read_it, ask_it, policy_it, allowed_it};
}

static void *take(enum tm_part part)
{
	void *p;

	heap_fresh();
	p = tm_extent_take(part, TM_UNIT_PAGES, 1);
	cr_assert_not_null(p);
	return p;
}

Test(numa, loaded_blocks_are_interleaved_and_others_are_not)
{
	void *p;

	machine_of("0-1\n", 3);
	tm_numa_configure(TM_NUMA_AUTO, NULL);
	take(TM_PART_LARGE);
	cr_assert_eq(machine.reads, 0);
	p = take(TM_PART_PERSISTENT);
	cr_assert_eq(machine.binds, 1);
	cr_assert_eq(machine.mode, MPOL_INTERLEAVE);
	cr_assert_eq(machine.set, 3);
	cr_assert(machine.at <= (uintptr_t)p && machine.bytes >= TM_UNIT_BYTES);
}

Test(numa, one_node_costs_one_look_and_no_call)
{
	machine_of("0\n", 1);
	tm_numa_configure(TM_NUMA_AUTO, NULL);
	take(TM_PART_PERSISTENT);
	take(TM_PART_PERSISTENT);
	cr_assert_eq(machine.reads, 1);
	cr_assert_eq(machine.binds, 0);
	tm_numa_configure(TM_NUMA_INTERLEAVE, NULL);
	take(TM_PART_LARGE);
	cr_assert_eq(machine.binds, 0);
}

Test(numa, nodes_without_memory_or_permission_are_left_out)
{
	machine_of("0,2-3\n", 5);
	tm_numa_configure(TM_NUMA_AUTO, NULL);
	take(TM_PART_PERSISTENT);
	cr_assert_eq(machine.set, 5);
	machine_of("0,2-3\n", 2);
	tm_numa_configure(TM_NUMA_AUTO, NULL);
	take(TM_PART_PERSISTENT);
	cr_assert_eq(machine.binds, 0);
}

Test(numa, a_policy_of_the_process_is_left_alone)
{
	machine_of("0-1\n", 3);
	machine.policy = MPOL_BIND;
	tm_numa_configure(TM_NUMA_AUTO, NULL);
	take(TM_PART_PERSISTENT);
	cr_assert_eq(machine.binds, 0);
	/* unless the user asks */
	tm_numa_configure(TM_NUMA_INTERLEAVE, NULL);
	take(TM_PART_SPAN);
	cr_assert_eq(machine.mode, MPOL_INTERLEAVE);
	tm_numa_configure(TM_NUMA_LOCAL, NULL);
	take(TM_PART_LARGE);
	cr_assert_eq(machine.mode, MPOL_LOCAL);
	cr_assert_eq(machine.set, 0);
}

Test(numa, a_list_binds_everything_to_it)
{
	machine_of("0-3\n", 15);
	tm_numa_configure(TM_NUMA_NODES, "1,3");
	take(TM_PART_SPAN);
	cr_assert_eq(machine.mode, MPOL_BIND);
	cr_assert_eq(machine.set, 10);
	machine_of("0-1\n", 3);
	tm_numa_configure(TM_NUMA_NODES, "1,3");
	take(TM_PART_SPAN);
	cr_assert_eq(machine.binds, 0);
}

Test(numa, off_and_filters_ask_nobody)
{
	machine_of("0-1\n", 3);
	tm_numa_configure(TM_NUMA_OFF, NULL);
	take(TM_PART_PERSISTENT);
	cr_assert_eq(machine.reads, 0);
	machine.filtered = true;
	tm_numa_configure(TM_NUMA_AUTO, NULL);
	take(TM_PART_PERSISTENT);
	cr_assert_eq(machine.reads + machine.binds, 0);
}

Test(numa, a_refusal_is_counted_and_memory_is_there)
{
	machine_of("0-1\n", 3);
	machine.refuse = -EPERM;
	tm_numa_configure(TM_NUMA_AUTO, NULL);
	memset(take(TM_PART_PERSISTENT), 1, TM_UNIT_BYTES);
	cr_assert_eq(tm_numa_refused(), 1);
}

Test(numa, memory_that_changes_its_part_changes_its_policy)
{
	void *p;

	machine_of("0-1\n", 3);
	tm_numa_configure(TM_NUMA_AUTO, NULL);
	p = take(TM_PART_PERSISTENT);
	tm_extent_give(TM_PART_PERSISTENT, p, TM_UNIT_PAGES);
	cr_assert(tm_extent_hand_over(TM_PART_PERSISTENT, TM_PART_LARGE, 1));
	cr_assert_eq(machine.mode, MPOL_DEFAULT);
	cr_assert(tm_extent_hand_over(TM_PART_LARGE, TM_PART_PERSISTENT, 1));
	cr_assert_eq(machine.mode, MPOL_INTERLEAVE);
	heap_check();
}

Test(numa, rules_place_single_blocks)
{
	void *p;

	machine_of("0-1\n", 3);
	tm_numa_configure(TM_NUMA_AUTO, NULL);
	p = take(TM_PART_LARGE);
	cr_assert(tm_numa_place(p, TM_UNIT_BYTES, TM_NUMA_ON_SET, 1));
	cr_assert_eq(machine.mode, MPOL_BIND);
	cr_assert_eq(machine.set, 2);
	cr_assert(!tm_numa_place(p, TM_UNIT_BYTES, TM_NUMA_ON_SET, 2));
	cr_assert(!tm_numa_place(p, TM_UNIT_BYTES, TM_NUMA_ON_SET, 5000));
	cr_assert(tm_numa_place(p, TM_UNIT_BYTES, TM_NUMA_NEAR, 0));
	cr_assert_eq(machine.mode, MPOL_LOCAL);
	cr_assert_eq(machine.binds, 2);
}
