# SPDX-License-Identifier: MIT
# Pages in mdoc, one line each: dist_man1_MANS, dist_man3_MANS, dist_man5_MANS, dist_man7_MANS.
