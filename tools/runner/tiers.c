/* SPDX-License-Identifier: MIT */
#include "tools/runner/tiers.h"

#include <string.h>

#include "tools/runner/mem.h"

/* As declared by the library's public header, without which the runner is built. */
struct tiermalloc_stats {
	uint64_t struct_bytes, live_bytes[4], slot_bytes[4], cached_bytes[4];
	uint64_t resident_bytes, peak_bytes, sessions;
};

extern int tiermalloc_stats(struct tiermalloc_stats *stats) __attribute__((weak));

enum yi_tier yi_tiers_of_class(int class)
{
	static const enum yi_tier tiers[YI_MEM_CLASSES] = {
		[YI_MEM_WEIGHTS] = YI_TIER_PERSISTENT,    [YI_MEM_KV] = YI_TIER_SESSION,
		[YI_MEM_ACTIVATIONS] = YI_TIER_TEMPORARY, [YI_MEM_TOKENIZER] = YI_TIER_PERSISTENT,
		[YI_MEM_REQUESTS] = YI_TIER_SESSION,      [YI_MEM_OTHER] = YI_TIER_PERSISTENT,
	};

	return tiers[class];
}

const char *yi_tiers_name(enum yi_tier tier)
{
	static const char *const names[YI_TIERS] = {"total", "persistent", "session", "temporary"};

	return names[tier];
}

void yi_tiers_sample(struct yi_tiers *tiers)
{
	struct tiermalloc_stats stats = {.struct_bytes = sizeof(stats)};

	memset(tiers, 0, sizeof(*tiers));
	tiers->sampled = true;
	for (int class = 0; class < YI_MEM_CLASSES; class ++) {
		struct yi_mem_count count;

		yi_mem_read((enum yi_mem_class) class, &count);
		tiers->ours[yi_tiers_of_class(class)] += count.live_bytes;
		tiers->ours[YI_TIER_TOTAL] += count.live_bytes;
	}
	if (!tiermalloc_stats || tiermalloc_stats(&stats))
		return;
	tiers->library = true;
	memcpy(tiers->theirs, stats.live_bytes, sizeof(tiers->theirs));
	tiers->theirs_kept = stats.cached_bytes[0];
	tiers->theirs_resident = stats.resident_bytes;
}

void yi_tiers_print(const struct yi_tiers *tiers, FILE *out)
{
	if (!tiers->sampled)
		return;
	fprintf(out, "%-12s %12s %12s   live in the middle of the run%s\n", "tier", "runner MiB",
		"library MiB", tiers->library ? "" : ", without the library");
	for (int tier = YI_TIER_PERSISTENT; tier <= YI_TIERS; tier++) {
		enum yi_tier row = (enum yi_tier)(tier % YI_TIERS);

		fprintf(out, "%-12s %12.2f", yi_tiers_name(row),
			(double)tiers->ours[row] / 1048576);
		if (tiers->library)
			fprintf(out, " %12.2f\n", (double)tiers->theirs[row] / 1048576);
		else
			fprintf(out, " %12s\n", "-");
	}
}

void yi_tiers_write(const struct yi_tiers *tiers, FILE *out)
{
	if (!tiers->sampled)
		return;
	fputs(",\n  \"tiers\": {", out);
	for (int tier = 0; tier < YI_TIERS; tier++) {
		fprintf(out, "\n    \"%s\": {\"runner_bytes\": %llu, \"library_bytes\": ",
			yi_tiers_name((enum yi_tier)tier), (unsigned long long)tiers->ours[tier]);
		if (tiers->library)
			fprintf(out, "%llu},", (unsigned long long)tiers->theirs[tier]);
		else
			fputs("null},", out);
	}
	fprintf(out, "\n    \"kept_bytes\": %llu, \"resident_bytes\": %llu\n  }",
		(unsigned long long)tiers->theirs_kept, (unsigned long long)tiers->theirs_resident);
}
