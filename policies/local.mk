# SPDX-License-Identifier: MIT
# Values in, decision out: these files go into the preload library and into the command alike.
libtmbase_a_SOURCES +=
