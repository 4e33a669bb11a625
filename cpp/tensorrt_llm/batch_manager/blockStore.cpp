// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/blockStore.h"

#include <algorithm>
#include <string>

namespace tensorrt_llm::batch_manager
{

BlockStore::BlockStore(BlockId numBlocks, std::int32_t tokensPerBlock, BlockId numOnHost)
    : mTokensPerBlock{static_cast<std::size_t>(tokensPerBlock)}
    , mPrefetchedLines{std::min((mTokensPerBlock + kTokensPerLine - 1) / kTokensPerLine, kMaxPrefetchedLines)}
    , mRecords{static_cast<std::size_t>(numBlocks)}
    , mTokens{static_cast<std::size_t>(numBlocks) * mTokensPerBlock}
    , mFirstSpans{static_cast<std::size_t>(numBlocks)}
{
    for (BlockId block = 0; block < numBlocks; ++block)
    {
        auto& record = (*this)[block];
        record.firstChild = kNoBlock;
        record.nextSibling = kNoBlock;
        record.previousSibling = kNoBlock;
        record.links = {kNoBlock, kNoBlock};
        record.moreSpans = -1;
        record.slot = block;
        record.onHost = block >= numBlocks - numOnHost;
    }
}

void BlockStore::setMedia(BlockId block, ArrayView<MediaSpan> spans)
{
    auto& record = (*this)[block];
    if (record.moreSpans >= 0)
    {
        dropMoreSpans(record);
    }
    record.numSpans = static_cast<std::uint16_t>(spans.size());
    if (!spans.empty())
    {
        mFirstSpans[static_cast<std::size_t>(block)] = spans[0];
    }
    for (auto index = spans.size(); index > 1; --index)
    {
        auto place = mFreeSpans;
        if (place < 0)
        {
            place = static_cast<std::int32_t>(mMoreSpans.size());
            mMoreSpans.emplace_back();
        }
        else
        {
            mFreeSpans = mMoreSpans[static_cast<std::size_t>(place)].next;
        }
        mMoreSpans[static_cast<std::size_t>(place)] = {spans[index - 1], record.moreSpans};
        record.moreSpans = place;
    }
}

void BlockStore::dropMoreSpans(BlockRecord& record)
{
    auto last = static_cast<std::size_t>(record.moreSpans);
    while (mMoreSpans[last].next >= 0)
    {
        last = static_cast<std::size_t>(mMoreSpans[last].next);
    }
    mMoreSpans[last].next = mFreeSpans;
    mFreeSpans = record.moreSpans;
    record.moreSpans = -1;
}

std::size_t BlockStore::numTokens(BlockId block) const
{
    auto const* const first = tokens(block);
    auto const* const end = first + mTokensPerBlock;
    return end[-1] == kNoToken ? static_cast<std::size_t>(std::find(first, end, kNoToken) - first) : mTokensPerBlock;
}

void BlockStore::cutTokens(BlockId block, std::size_t numTokens, std::vector<MediaSpan>& scratch)
{
    std::fill(tokens(block) + numTokens, tokens(block) + mTokensPerBlock, kNoToken);
    auto const end = static_cast<std::int32_t>(numTokens);
    scratch.clear();
    forEachSpan(block,
        [&](MediaSpan span)
        {
            span.length = std::min(span.length, end - span.blockOffset);
            if (span.length > 0)
            {
                scratch.push_back(span);
            }
        });
    setMedia(block, scratch);
}

BlockKeyView BlockStore::key(BlockId block, std::vector<MediaSpan>& scratch) const
{
    ArrayView<TokenId> const all{tokens(block), numTokens(block)};
    auto const numSpans = (*this)[block].numSpans;
    if (numSpans <= 1)
    {
        return {all, {&mFirstSpans[static_cast<std::size_t>(block)], numSpans}};
    }
    scratch.clear();
    forEachSpan(block, [&](MediaSpan const& span) { scratch.push_back(span); });
    return {all, scratch};
}

bool BlockStore::hasSpans(BlockId block, ArrayView<MediaSpan> spans) const
{
    std::size_t index = 0;
    bool equal = true;
    forEachSpan(block, [&](MediaSpan const& span) { equal = equal && span == spans[index++]; });
    return equal;
}

std::int32_t BlockStore::commonTokens(BlockId block, BlockKeyView const& key) const
{
    auto const* const own = tokens(block);
    auto const size = std::min(key.tokens.size(), numTokens(block));
    auto common = static_cast<std::int32_t>(std::mismatch(own, own + size, key.tokens.begin()).first - own);
    std::size_t index = 0;
    std::int32_t cut = common; // where the spans begin to differ
    auto const differAt = [&](std::int32_t position)
    {
        cut = std::min(cut, position);
    };
    forEachSpan(block,
        [&](MediaSpan const& span)
        {
            if (index >= key.media.size())
            {
                differAt(span.blockOffset);
                return;
            }
            auto const& other = key.media[index++];
            if (span.blockOffset != other.blockOffset)
            {
                differAt(std::min(span.blockOffset, other.blockOffset));
            }
            else if (span.rowOffset != other.rowOffset || span.digest != other.digest)
            {
                differAt(span.blockOffset);
            }
            else if (span.length != other.length)
            {
                differAt(span.blockOffset + std::min(span.length, other.length));
            }
        });
    if (index < key.media.size())
    {
        differAt(key.media[index].blockOffset);
    }
    return cut;
}

void BlockStore::checkIntegrity() const
{
    std::vector<bool> seen(mMoreSpans.size(), false);
    std::size_t numSeen = 0;
    auto const visit = [&](std::int32_t place)
    {
        if (seen.at(static_cast<std::size_t>(place)))
        {
            throw InternalStateError("media span " + std::to_string(place) + " is in two chains");
        }
        seen[static_cast<std::size_t>(place)] = true;
        ++numSeen;
    };
    for (BlockId block = 0; block < numBlocks(); ++block)
    {
        std::size_t numSpans = (*this)[block].numSpans > 0 ? 1 : 0;
        for (auto more = (*this)[block].moreSpans; more >= 0; more = mMoreSpans[static_cast<std::size_t>(more)].next)
        {
            visit(more);
            ++numSpans;
        }
        if (numSpans != (*this)[block].numSpans)
        {
            throw InternalStateError("block " + std::to_string(block) + ": " + std::to_string(numSpans)
                                     + " media spans, expected " + std::to_string((*this)[block].numSpans));
        }
    }
    for (auto place = mFreeSpans; place >= 0; place = mMoreSpans[static_cast<std::size_t>(place)].next)
    {
        visit(place);
    }
    if (numSeen != mMoreSpans.size())
    {
        throw InternalStateError(
            "media spans: " + std::to_string(numSeen) + " reachable, expected " + std::to_string(mMoreSpans.size()));
    }
}

} // namespace tensorrt_llm::batch_manager
