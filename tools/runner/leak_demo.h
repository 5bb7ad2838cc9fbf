/* SPDX-License-Identifier: MIT */
/* --leak-demo: two deliberate leaks for the library's leak report to find. */
#ifndef YI_LEAK_DEMO_H
#define YI_LEAK_DEMO_H

#include "tools/runner/session.h"

/* Called when a session has ended. */
void yi_leak_demo_session(const struct yi_session *session);

#endif
