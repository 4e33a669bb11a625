// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file randomSource.h
//! Random numbers as a source of choices for FuzzDriver.

#pragma once

#include <cstdint>
#include <random>

namespace tensorrt_llm::batch_manager::testing
{

class RandomSource
{
public:
    explicit RandomSource(unsigned seed)
        : mRandom{seed}
    {
    }

    //! A number below \p bound.
    std::uint32_t below(std::uint32_t bound)
    {
        return static_cast<std::uint32_t>(mRandom() % bound);
    }

private:
    std::mt19937 mRandom;
};

} // namespace tensorrt_llm::batch_manager::testing
