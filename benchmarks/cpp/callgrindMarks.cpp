// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file callgrindMarks.cpp
//! Callgrind's requests as functions that ctypes can call; outside valgrind they do nothing.
//!
//! benchmarks/check_regression.py compiles this where valgrind's header is installed. No build of ours needs it.

#include <valgrind/callgrind.h>

extern "C"
{

    //! Counts from here on. Before it a program runs several times faster, for imports are of no interest.
    void startCounting()
    {
        CALLGRIND_START_INSTRUMENTATION;
    }

    //! Forgets what was counted.
    void forgetCounts()
    {
        CALLGRIND_ZERO_STATS;
    }

    //! Writes what was counted since the last call of this or of forgetCounts() to a file that names \p label.
    void writeCounts(char const* label)
    {
        CALLGRIND_DUMP_STATS_AT(label);
    }

    //! Counts no longer.
    void stopCounting()
    {
        CALLGRIND_STOP_INSTRUMENTATION;
    }

} // extern "C"
