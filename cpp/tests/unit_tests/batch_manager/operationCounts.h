// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file operationCounts.h
//! How long a run of random operations is, and what it consisted of.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

namespace tensorrt_llm::batch_manager::testing
{

//! The value of an environment variable, or \p otherwise.
inline int fromEnvironment(char const* name, int otherwise)
{
    auto const* const wanted = std::getenv(name);
    return wanted == nullptr ? otherwise : std::atoi(wanted);
}

//! Steps of a run: TRTLLM_FUZZ_STEPS, or what takes seconds.
inline int numFuzzSteps(int otherwise)
{
    return fromEnvironment("TRTLLM_FUZZ_STEPS", otherwise);
}

//! Calls of each operation, by name.
class OperationCounts
{
public:
    void count(char const* operation)
    {
        ++mCalls[operation];
    }

    void add(OperationCounts const& other)
    {
        for (auto const& [operation, calls] : other.mCalls)
        {
            mCalls[operation] += calls;
        }
    }

    [[nodiscard]] std::int64_t total() const
    {
        std::int64_t total = 0;
        for (auto const& entry : mCalls)
        {
            total += entry.second;
        }
        return total;
    }

    //! All of them in one line.
    [[nodiscard]] std::string text() const
    {
        auto text = std::to_string(total()) + " operations:";
        for (auto const& [operation, calls] : mCalls)
        {
            text += " " + operation + " " + std::to_string(calls);
        }
        return text;
    }

private:
    std::map<std::string, std::int64_t> mCalls;
};

} // namespace tensorrt_llm::batch_manager::testing
