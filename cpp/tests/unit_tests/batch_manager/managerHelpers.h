// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file managerHelpers.h
//! Short ways to run prompts through a manager.

#pragma once

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "errorHelpers.h"
#include "testHelpers.h"

#include <boost/test/unit_test.hpp>

#include <optional>
#include <vector>

namespace tensorrt_llm::batch_manager::testing
{

//! Everything that decides what a prompt may share.
struct Prompt
{
    std::vector<TokenId> tokens;
    MediaRuns media;
    ReuseScope scope;
};

inline std::optional<SequenceAllocation> add(
    KVCacheManager& manager, SequenceId id, Prompt const& prompt, std::int64_t maxNewTokens = 1)
{
    return manager.addSequence(id, prompt.tokens, &prompt.media, prompt.scope, maxNewTokens);
}

//! Runs a prompt to its end: added, all of it written, freed. \return its cached tokens.
inline std::int64_t run(KVCacheManager& manager, Prompt const& prompt)
{
    constexpr SequenceId kId = 1000;
    auto const allocation = add(manager, kId, prompt);
    BOOST_REQUIRE(allocation.has_value());
    manager.commit(kId, static_cast<std::int64_t>(prompt.tokens.size()));
    manager.freeSequence(kId);
    manager.checkIntegrity();
    return allocation->cachedTokens;
}

inline std::int64_t probe(KVCacheManager& manager, Prompt const& prompt)
{
    return manager.probe(prompt.tokens, &prompt.media, prompt.scope);
}

inline Prompt text(TokenId first, std::size_t count)
{
    return {range(first, count), {}, {}};
}

} // namespace tensorrt_llm::batch_manager::testing
