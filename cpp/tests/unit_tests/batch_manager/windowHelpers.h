// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file windowHelpers.h
//! Managers with window pools, and what a sequence needs of one. Needs no test framework.

#pragma once

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace tensorrt_llm::batch_manager::testing
{

inline constexpr std::int64_t kSize = 4; //!< tokens of a block

inline KvCacheManagerConfig config(std::vector<WindowPoolConfig> pools, std::int64_t step, BlockId numBlocks = 64)
{
    KvCacheManagerConfig result;
    result.numBlocks = numBlocks;
    result.tokensPerBlock = kSize;
    result.windowPools = std::move(pools);
    result.maxStepTokens = step;
    return result;
}

inline WindowPoolStats poolOf(KVCacheManager const& manager, std::size_t pool = 1)
{
    return manager.stats().windowPools.at(pool - 1);
}

//! Blocks that a sequence needs at once, by looking at every token of every block at every moment of its life.
inline std::int64_t mostInWindow(
    std::int64_t windowSize, std::int64_t numSlots, std::int64_t maxStepTokens, std::int64_t tokensPerBlock)
{
    std::int64_t most = 0;
    for (std::int64_t written = 0; written <= numSlots; ++written)
    {
        auto const end = maxStepTokens == 0 ? numSlots : std::min(numSlots, written + maxStepTokens);
        std::set<std::int64_t> needed;
        for (auto token = std::max<std::int64_t>(written - windowSize + 1, 0); token < end; ++token)
        {
            needed.insert(token / tokensPerBlock);
        }
        most = std::max(most, static_cast<std::int64_t>(needed.size()));
    }
    return most;
}

} // namespace tensorrt_llm::batch_manager::testing
