#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 3600
# The CUDA hooks under -fsanitize=thread, on the fake driver: the programs with threads.
kind="-fsanitize=thread -Wno-tsan"
only="abandoned_captures_are_over captures_stay_valid full_devices_fail_as_late_as_the_driver many_contexts_are_told_apart
	mistakes_get_the_drivers_answers next_and_default_know_their_caller own_streams_of_threads_are_waited_for
	runtimes_come_and_go transfers_of_other_contexts_are_waited_for wrong_times_get_the_drivers_answers"
export TSAN_OPTIONS=report_thread_leaks=0:die_after_fork=0
. "$TM_SRC/tests/builds/cuda_sanitized.sh"
