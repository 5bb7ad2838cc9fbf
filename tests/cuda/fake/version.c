/* SPDX-License-Identifier: MIT */
#include "tests/cuda/fake/fake.h"

#ifndef FAKE_VERSION
#define FAKE_VERSION 13000
#endif

const int fake_built_version = FAKE_VERSION;
