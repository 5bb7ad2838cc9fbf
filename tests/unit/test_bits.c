/* SPDX-License-Identifier: MIT */
/* bits, list: arithmetic at its edges, lists in zeroed memory. */
#include <criterion/criterion.h>

#include "shim/base/bits.h"
#include "shim/base/hash.h"
#include "shim/base/list.h"

Test(bits, alignment_at_the_edges)
{
	size_t up;

	cr_assert_eq(tm_bits_align_up(0, 16), 0);
	cr_assert_eq(tm_bits_align_up(1, 16), 16);
	cr_assert_eq(tm_bits_align_up(16, 16), 16);
	cr_assert_eq(tm_bits_align_down(31, 16), 16);
	cr_assert_not(tm_bits_align_up_checked(SIZE_MAX - 3, 16, &up));
	cr_assert(tm_bits_align_up_checked(SIZE_MAX - 15, 16, &up));
	cr_assert_eq(up, SIZE_MAX - 15);
	cr_assert(tm_bits_is_aligned(4096, 4096));
	cr_assert_not(tm_bits_is_aligned(4097, 2));
}

Test(bits, logarithms_and_powers)
{
	cr_assert_not(tm_bits_is_pow2(0));
	cr_assert(tm_bits_is_pow2(UINT64_C(1) << 63));
	cr_assert_not(tm_bits_is_pow2(6));
	cr_assert_eq(tm_bits_log2(1), 0);
	cr_assert_eq(tm_bits_log2(UINT64_MAX), 63);
	cr_assert_eq(tm_bits_log2_up(0), 0);
	cr_assert_eq(tm_bits_log2_up(1), 0);
	cr_assert_eq(tm_bits_log2_up(5), 3);
	cr_assert_eq(tm_bits_log2_up(8), 3);
	cr_assert_eq(tm_bits_from(UINT64_MAX, 64), 0);
	cr_assert_eq(tm_bits_from(0xff, 4), 0xf0);
	cr_assert_eq(tm_bits_div_up(SIZE_MAX, 2), SIZE_MAX / 2 + 1);
}

Test(bits, hashes_spread_consecutive_keys)
{
	unsigned int seen[64] = {0};
	unsigned int used = 0;

	for (uint64_t key = 0; key < 64; key++)
		seen[tm_hash_slot(key << 4, 6)]++;
	for (int i = 0; i < 64; i++)
		used += seen[i] != 0;
	cr_assert_gt(used, 24);
	cr_assert_neq(tm_hash_bytes("a", 1), tm_hash_bytes("a\0", 2));
	cr_assert_neq(tm_hash_add(1, 2), tm_hash_add(2, 1));
}

struct item {
	int value;
	struct tm_list_node node;
};

Test(bits, a_zeroed_list_is_empty_and_works)
{
	static struct tm_list list, other;
	struct item items[4] = {{.value = 0}, {.value = 1}, {.value = 2}, {.value = 3}};

	cr_assert(tm_list_is_empty(&list));
	cr_assert_null(tm_list_pop_front(&list));
	tm_list_push_back(&list, &items[1].node);
	tm_list_push_back(&list, &items[2].node);
	tm_list_push_front(&list, &items[0].node);
	tm_list_remove(&list, &items[1].node);
	cr_assert_eq(TM_CONTAINER_OF(list.first, struct item, node)->value, 0);
	cr_assert_eq(TM_CONTAINER_OF(list.last, struct item, node)->value, 2);
	tm_list_push_back(&other, &items[3].node);
	tm_list_splice_back(&other, &list);
	cr_assert(tm_list_is_empty(&list));
	cr_assert_eq(TM_CONTAINER_OF(tm_list_pop_back(&other), struct item, node)->value, 2);
	cr_assert_eq(TM_CONTAINER_OF(tm_list_pop_front(&other), struct item, node)->value, 3);
	cr_assert_eq(TM_CONTAINER_OF(tm_list_pop_front(&other), struct item, node)->value, 0);
	cr_assert(tm_list_is_empty(&other));
	cr_assert_null(other.last);
}
