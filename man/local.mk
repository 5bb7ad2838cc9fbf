# SPDX-License-Identifier: MIT
# Pages in mdoc, one line each: dist_man1_MANS, dist_man3_MANS, dist_man5_MANS, dist_man7_MANS.
# tiermalloc-tunables.5 is what 'tiermalloc config --man' prints; tests/lint compares.
dist_man1_MANS += %reldir%/tiermalloc.1 %reldir%/yi-coder-run.1
dist_man3_MANS += %reldir%/tiermalloc.3
dist_man5_MANS += %reldir%/tiermalloc-rules.5 %reldir%/tiermalloc-tunables.5
dist_man7_MANS += %reldir%/tiermalloc.7
