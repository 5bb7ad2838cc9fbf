/* SPDX-License-Identifier: MIT */
/* phase: loading or serving, from the stream. */
#include <criterion/criterion.h>
#include <string.h>

#include "policies/phase.h"

#define MIB (UINT64_C(1) << 20)

static struct tm_phase phase;

static void small(unsigned requests, uint64_t born, uint64_t died)
{
	struct tm_phase_local local = {born, died, 0};

	tm_phase_flush(&phase, &local, requests);
	cr_assert_eq(local.born_bytes, 0);
}

static void large(uint64_t bytes)
{
	small(1, bytes, 0);
	tm_phase_large_born(&phase, bytes);
	tm_phase_large_kept(&phase);
}

static void burst(unsigned blocks)
{
	for (unsigned i = 0; i < blocks; i++) {
		large(MIB);
		small(2, 8192, 0);
	}
}

Test(phase, begins_with_loading)
{
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_LOAD);
	small(100000, 16 * MIB, 8 * MIB);
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_LOAD, "nothing large was loaded");
}

Test(phase, serving_begins_when_the_burst_is_over)
{
	small(1000, 16 * MIB, 0);
	burst(40);
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_LOAD);
	small(10, 8192, 0);
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_LOAD, "not late yet");
	small(20, 8192, 8192);
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_SERVE);
}

Test(phase, a_little_that_is_large_is_no_load)
{
	small(1000, 64 * MIB, 0);
	burst(5);
	small(1000, 8192, 8192);
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_LOAD, "5 of 69 MiB");
}

Test(phase, turnover_without_growth_is_serving)
{
	small(1000, 8 * MIB, 0);
	for (int i = 0; i < 100 && tm_phase_now(&phase) == TM_PHASE_LOAD; i++)
		small(100, MIB, MIB);
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_SERVE);
}

Test(phase, growth_with_turnover_is_loading)
{
	small(1000, 8 * MIB, 0);
	for (int i = 0; i < 100; i++)
		small(100, 2 * MIB, MIB);
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_LOAD);
}

Test(phase, growth_of_sessions_is_no_load)
{
	burst(100);
	small(100, 8192, 0);
	for (int i = 0; i < 200; i++) {
		large(MIB / 2);
		small(2, 8192, 8192);
	}
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_SERVE);
}

Test(phase, a_model_that_comes_late_is_loading)
{
	burst(10);
	small(100, 8192, 0);
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_SERVE);
	large(100 * MIB);
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_LOAD);
	small(400, 8192, 0);
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_SERVE);
}

Test(phase, a_step_that_is_told_is_serving)
{
	tm_phase_step(&phase);
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_SERVE);
	cr_assert_eq(atomic_load(&phase.changes), 1);
	tm_phase_step(&phase);
	cr_assert_eq(atomic_load(&phase.changes), 1);
	large(100 * MIB);
	cr_assert_eq(tm_phase_now(&phase), TM_PHASE_SERVE, "it stays so");
}
