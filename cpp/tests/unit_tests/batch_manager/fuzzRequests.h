// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file fuzzRequests.h
//! Media and retention of FuzzDriver's requests, from a source of choices, and what the KV of their tokens is made
//! from.

#pragma once

#include "tensorrt_llm/batch_manager/blockKey.h"
#include "tensorrt_llm/batch_manager/retention.h"

#include "testHelpers.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace tensorrt_llm::batch_manager::testing
{

//! What stands for the KV of a token.
using Value = std::uint64_t;

//! The value of a token that comes after \p history and means \p next.
inline Value mix(Value history, Value next)
{
    history = (history ^ next) * 0x9e3779b97f4a7c15ULL;
    return history ^ (history >> 29);
}

//! Items at random places; writes what each of their rows means.
template <typename Source>
MediaRuns addMedia(Source& source, std::uint32_t length, Value secret, std::vector<Value>& meaning)
{
    std::vector<Run> runs;
    for (auto position = source.below(16); position < length && runs.size() < 4; position += 1 + source.below(6))
    {
        auto const size = std::min(1 + source.below(6), length - position);
        runs.push_back({static_cast<std::int32_t>(runs.size()), position, size});
        position += size;
    }
    auto media = mediaOf(runs);
    for (std::size_t item = 0; item < runs.size(); ++item)
    {
        auto const known = source.below(10) != 0;
        auto const look = source.below(2);
        // The look of an item without identity is not in its digest: nobody may share its rows.
        media.identified[item] = known ? 1 : 0;
        media.digests[item] = digest(static_cast<std::uint8_t>(known ? look : 0));
        for (std::int64_t row = 0; row < runs[item].length; ++row)
        {
            auto& value = meaning[static_cast<std::size_t>(runs[item].position + row)];
            value = mix(mix(value, known ? 100 + look : secret), static_cast<Value>(row));
        }
    }
    return media;
}

template <typename Source>
RetentionConfig makeRetention(Source& source)
{
    auto const any = [&]
    {
        BlockRetention retention{static_cast<std::int32_t>(source.below(101)), std::nullopt};
        if (source.below(2) == 0)
        {
            retention.durationMs = 1 + source.below(20);
        }
        return retention;
    };
    auto const middle = static_cast<std::int64_t>(1 + source.below(12));
    return {{{0, middle, any()}, {middle, std::nullopt, any()}}, any()};
}

} // namespace tensorrt_llm::batch_manager::testing
