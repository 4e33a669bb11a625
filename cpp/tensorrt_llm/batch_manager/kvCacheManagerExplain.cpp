// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerExplain.cpp
//! KVCacheManager: why a match stops where it does. For people and tools; it looks at every live sequence and at up to
//! kMaxScopes other scopes.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include <algorithm>
#include <string>

namespace tensorrt_llm::batch_manager
{

namespace
{

constexpr std::size_t kMaxScopes = 256;

//! What a token of a block stands for.
struct Meaning
{
    TokenId token;
    MediaSpan const* span; //!< none for text

    [[nodiscard]] std::int64_t row(std::int32_t offset) const
    {
        return span->rowOffset + (offset - span->blockOffset);
    }
};

Meaning meaningOf(BlockKeyView const& key, std::int32_t offset)
{
    auto const span = std::find_if(key.media.begin(), key.media.end(), [&](MediaSpan const& candidate)
        { return offset >= candidate.blockOffset && offset < candidate.blockOffset + candidate.length; });
    return {key.tokens[static_cast<std::size_t>(offset)], span == key.media.end() ? nullptr : span};
}

MatchStop compare(Meaning const& wanted, Meaning const& found, std::int32_t offset)
{
    if (wanted.token != found.token)
    {
        return MatchStop::kTokens;
    }
    if (wanted.span == nullptr || found.span == nullptr || wanted.span->digest != found.span->digest)
    {
        return MatchStop::kMediaIdentity;
    }
    // Equal rows in runs that are split elsewhere are told apart too: the offsets are part of the key.
    return wanted.row(offset) != found.row(offset) ? MatchStop::kMediaOffset : MatchStop::kMediaRuns;
}

MatchStop compare(ReuseScope const& wanted, ReuseScope const& found)
{
    if (wanted.cacheSalt != found.cacheSalt)
    {
        return MatchStop::kSalt;
    }
    return wanted.adapterId != found.adapterId || wanted.adapterVersion != found.adapterVersion
               ? MatchStop::kAdapter
               : MatchStop::kAdapterMode;
}

} // namespace

char const* nameOf(MatchStop stop)
{
    switch (stop)
    {
    case MatchStop::kComplete:
        return "complete";
    case MatchStop::kReuseDisabled:
        return "reuse_disabled";
    case MatchStop::kUnidentified:
        return "unidentified_media";
    case MatchStop::kNotCommitted:
        return "not_committed";
    case MatchStop::kWindow:
        return "window";
    case MatchStop::kEvicted:
        return "evicted";
    case MatchStop::kSalt:
        return "salt";
    case MatchStop::kAdapter:
        return "adapter";
    case MatchStop::kAdapterMode:
        return "adapter_mode";
    case MatchStop::kTokens:
        return "tokens";
    case MatchStop::kMediaIdentity:
        return "media_identity";
    case MatchStop::kMediaOffset:
        return "media_offset";
    case MatchStop::kMediaRuns:
        return "media_runs";
    case MatchStop::kUnknown:
        return "unknown";
    }
    return "unknown";
}

MatchExplanation KVCacheManager::explain(
    ArrayView<TokenId> tokens, MediaRunsView const& media, ReuseScope const& scope, bool otherSalts)
{
    MatchExplanation result;
    result.cachedTokens = probe(tokens, media, scope);
    auto const index = mMatch.blocks.size();
    auto const begin = static_cast<std::int64_t>(index) * tokensPerBlock();
    auto const limit = static_cast<std::int64_t>(tokens.size()) - 1;
    result.block = static_cast<std::int64_t>(index);
    result.position = result.cachedTokens;
    if (!mEnableBlockReuse)
    {
        result.stop = MatchStop::kReuseDisabled;
    }
    else if (result.cachedTokens >= (mEnablePartialReuse ? limit : limit / tokensPerBlock() * tokensPerBlock()))
    {
        result.stop = MatchStop::kComplete;
    }
    else if (mMatch.cutByWindows)
    {
        result.stop = MatchStop::kWindow;
    }
    else if (index >= mMatch.keys.size())
    {
        result.stop = MatchStop::kUnidentified;
        result.position = mMatch.media.firstUnidentified().value_or(begin);
    }
    else if (isBeingComputed(index, scope))
    {
        result.stop = MatchStop::kNotCommitted;
    }
    else if (index < mMatch.keys.numWhole() && wasEvicted(mMatch.keys.hashOf(index)))
    {
        result.stop = MatchStop::kEvicted;
        result.evictedMs = mIdle.since(mEvictedAt[rememberedAt(mMatch.keys.hashOf(index))]);
    }
    else
    {
        explainDifference(tokens, scope, otherSalts, result);
    }
    return result;
}

//! Whether a live sequence has the wanted block in its table and has not committed it.
bool KVCacheManager::isBeingComputed(std::size_t index, ReuseScope const& scope) const
{
    if (index >= mMatch.keys.numWhole())
    {
        return false;
    }
    return std::any_of(mSequences.begin(), mSequences.end(),
        [&](auto const& entry)
        {
            auto const& live = entry.second;
            if (!live.root || index >= live.blocks.size() || static_cast<std::size_t>(live.numFindable) > index
                || static_cast<std::int64_t>(index) >= live.shareableBlocks
                || (static_cast<std::int64_t>(index) + 1) * tokensPerBlock() > live.numTokens)
            {
                return false;
            }
            // Blocks before the findable ones' end are shared; those after it are compared one by one.
            for (std::size_t block = 0; block <= index; ++block)
            {
                auto const same = block < mMatch.blocks.size() && block < static_cast<std::size_t>(live.numFindable)
                                      ? live.blocks[block] == mMatch.blocks[block]
                                      : mStore.hasKey(live.blocks[block], mMatch.keys[block]);
                if (!same)
                {
                    return false;
                }
            }
            return mTree.scopeOf(*live.root) == scope;
        });
}

void KVCacheManager::explainDifference(
    ArrayView<TokenId> tokens, ReuseScope const& scope, bool otherSalts, MatchExplanation& result)
{
    auto const index = mMatch.blocks.size();
    auto const root = mTree.findRoot(scope, mMatch.rootHash);
    auto const parent = index > 0 ? std::optional<NodeId>{mMatch.blocks[index - 1]} : root;
    auto const key = mMatch.keys[index];
    auto const begin = static_cast<std::int64_t>(index) * tokensPerBlock();
    auto const wanted =
        std::min(key.tokens.size(), static_cast<std::size_t>(static_cast<std::int64_t>(tokens.size()) - 1 - begin));
    auto const nearest = parent ? mTree.findNearest(*parent, {key.tokens.slice(0, wanted), key.media}) : PartialMatch{};

    auto const own = begin + nearest.numTokens;
    auto const roots = mTree.roots();
    for (std::size_t other = 0; other < std::min(roots.size(), kMaxScopes); ++other)
    {
        if (!otherSalts && mTree.scopeOf(roots[other]).cacheSalt != scope.cacheSalt)
        {
            continue;
        }
        if ((!root || roots[other] != *root) && matchesBelow(roots[other], index))
        {
            result.stop = compare(scope, mTree.scopeOf(roots[other]));
            result.position = 0;
            return;
        }
    }
    result.position = own;
    if (nearest.block == kNoBlock)
    {
        result.stop = MatchStop::kUnknown;
        return;
    }
    if (static_cast<std::size_t>(nearest.numTokens) >= wanted)
    {
        result.stop = MatchStop::kComplete; // what there is would do, but only whole blocks are matched
        return;
    }
    auto const found = mStore.key(nearest.block, mSpans);
    if (static_cast<std::size_t>(nearest.numTokens) >= found.tokens.size())
    {
        result.stop = MatchStop::kUnknown; // an incomplete block, and all of it is shared
        return;
    }
    result.stop = compare(meaningOf(key, nearest.numTokens), meaningOf(found, nearest.numTokens), nearest.numTokens);
}

//! Whether the blocks of the prompt up to and with \p index are found under another root.
bool KVCacheManager::matchesBelow(NodeId root, std::size_t index)
{
    if (index >= mMatch.keys.numWhole())
    {
        return false;
    }
    auto parent = root;
    for (std::size_t block = 0; block <= index; ++block)
    {
        auto const key = mMatch.keys[block];
        auto const found = mTree.find(parent, key, mTree.hashOf(parent, key));
        if (found == kNoBlock)
        {
            return false;
        }
        parent = found;
    }
    return true;
}

} // namespace tensorrt_llm::batch_manager
