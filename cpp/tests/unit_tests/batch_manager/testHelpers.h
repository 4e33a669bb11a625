// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file testHelpers.h
//! Short ways to write prompts and media, and hash functions that collide. Needs no test framework.

#pragma once

#include "tensorrt_llm/batch_manager/blockKey.h"
#include "tensorrt_llm/batch_manager/common.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace tensorrt_llm::batch_manager::testing
{

//! Every key meets every other in the table, so only equality can tell them apart.
inline BlockHash constantHash(void const* /*data*/, std::size_t /*size*/)
{
    return {7, 7};
}

//! Eight homes, at the end of the table too, and eight tags: long probes that wrap around.
inline BlockHash crowdedHash(void const* data, std::size_t size)
{
    auto const hash = xxh3Hash(data, size);
    return {hash.low % 8 - 4, (hash.high % 8) << 32};
}

inline std::vector<TokenId> range(TokenId first, std::size_t count)
{
    std::vector<TokenId> tokens(count);
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
}

inline MediaDigest digest(std::uint8_t value)
{
    MediaDigest result{};
    result.fill(value);
    return result;
}

struct Run
{
    std::int32_t item;
    std::int64_t position;
    std::int64_t length;
};

//! Items 0, 1, ... with digests filled with 1, 2, ...; rows are what the runs give.
inline MediaRuns mediaOf(std::vector<Run> const& runs)
{
    MediaRuns media;
    for (auto const& run : runs)
    {
        media.runItems.push_back(run.item);
        media.runPositions.push_back(run.position);
        media.runLengths.push_back(run.length);
        while (media.digests.size() <= static_cast<std::size_t>(run.item))
        {
            media.digests.push_back(digest(static_cast<std::uint8_t>(media.digests.size() + 1)));
            media.identified.push_back(1);
            media.itemRows.push_back(0);
        }
        media.itemRows[static_cast<std::size_t>(run.item)] += run.length;
    }
    return media;
}

} // namespace tensorrt_llm::batch_manager::testing
