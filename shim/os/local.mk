# SPDX-License-Identifier: MIT
libtmcore_a_SOURCES +=
