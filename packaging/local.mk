# SPDX-License-Identifier: MIT
# Files for DIR/share/tiermalloc (JSON schema, example rules, dashboard): dist_tmshare_DATA.
dist_tmshare_DATA += %reldir%/example.rules
