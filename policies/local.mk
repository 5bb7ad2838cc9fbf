# SPDX-License-Identifier: MIT
# Values in, decision out: these files go into the preload library and into the command alike.
libtmbase_a_SOURCES += \
	%reldir%/lifetime.c \
	%reldir%/lifetime.h \
	%reldir%/phase.c \
	%reldir%/phase.h \
	%reldir%/route.c \
	%reldir%/route.h \
	%reldir%/rules.c \
	%reldir%/rules.h \
	%reldir%/rules_match.c \
	%reldir%/rules_match.h \
	%reldir%/rules_symbols.c \
	%reldir%/rules_symbols.h \
	%reldir%/sites.c \
	%reldir%/sites.h \
	%reldir%/source.c \
	%reldir%/source.h
