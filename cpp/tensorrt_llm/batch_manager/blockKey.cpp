// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/blockKey.h"

#include <algorithm>
#include <cstring>
#include <utility>

// The whole hash becomes part of this file: nothing to link, and fixed sizes are optimised.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tensorrt_llm::batch_manager
{

namespace
{

[[noreturn]] void failRun(std::size_t run, std::string const& what)
{
    throw InvalidMediaRunsError("media run " + std::to_string(run) + ": " + what);
}

void checkSizes(MediaRuns const& media)
{
    auto const numItems = media.digests.size();
    auto const numRuns = media.runItems.size();
    auto const check = [](char const* name, std::size_t size, char const* of, std::size_t expected)
    {
        if (size != expected)
        {
            throw InvalidMediaRunsError(std::string{"media runs: "} + name + " has " + std::to_string(size)
                                        + " entries, " + of + " has " + std::to_string(expected));
        }
    };
    check("identified", media.identified.size(), "digests", numItems);
    check("item_rows", media.itemRows.size(), "digests", numItems);
    check("run_positions", media.runPositions.size(), "run_items", numRuns);
    check("run_lengths", media.runLengths.size(), "run_items", numRuns);
}

void checkRun(MediaRuns const& media, std::size_t run, std::int64_t previousEnd, std::int64_t promptLength)
{
    auto const item = media.runItems[run];
    auto const position = media.runPositions[run];
    auto const length = media.runLengths[run];
    if (item < 0 || static_cast<std::size_t>(item) >= media.digests.size())
    {
        failRun(run, "item " + std::to_string(item) + " of " + std::to_string(media.digests.size()));
    }
    if (position < 0 || length <= 0)
    {
        failRun(run, "position " + std::to_string(position) + " and length " + std::to_string(length)
                         + ", expected at least 0 and 1");
    }
    if (position < previousEnd)
    {
        failRun(run, "starts at " + std::to_string(position) + ", before the end of the previous run at "
                         + std::to_string(previousEnd));
    }
    if (position > promptLength || length > promptLength - position)
    {
        failRun(run, std::to_string(length) + " tokens at " + std::to_string(position) + " pass the prompt's end at "
                         + std::to_string(promptLength));
    }
}

} // namespace

ReuseScope::ReuseScope(std::optional<std::string> cacheSalt_, std::optional<std::int64_t> adapterId_,
    std::int64_t adapterVersion_, std::string adapterMode_)
    : cacheSalt{std::move(cacheSalt_)}
    , adapterId{adapterId_}
    , adapterVersion{adapterVersion_}
    , adapterMode{std::move(adapterMode_)}
{
    if (cacheSalt && cacheSalt->empty())
    {
        throw InvalidArgumentError("cache_salt has length 0, expected at least 1 or no salt");
    }
}

bool ReuseScope::operator==(ReuseScope const& other) const
{
    return cacheSalt == other.cacheSalt && adapterId == other.adapterId && adapterVersion == other.adapterVersion
           && adapterMode == other.adapterMode;
}

bool ReuseScope::operator!=(ReuseScope const& other) const
{
    return !(*this == other);
}

bool MediaSpan::operator==(MediaSpan const& other) const
{
    return digest == other.digest && rowOffset == other.rowOffset && blockOffset == other.blockOffset
           && length == other.length;
}

MediaLayout::MediaLayout(MediaRuns const& media, std::int64_t promptLength)
{
    checkSizes(media);
    mRuns.reserve(media.runItems.size());
    std::vector<std::int64_t> rowsSeen(media.digests.size(), 0);
    std::int64_t previousEnd = 0;
    for (std::size_t run = 0; run < media.runItems.size(); ++run)
    {
        checkRun(media, run, previousEnd, promptLength);
        auto const item = static_cast<std::size_t>(media.runItems[run]);
        auto const position = media.runPositions[run];
        auto const length = media.runLengths[run];
        if (media.identified[item] == 0 && !mFirstUnidentified)
        {
            mFirstUnidentified = position;
        }
        mRuns.push_back({media.digests[item], position, length, rowsSeen[item]});
        rowsSeen[item] += length;
        previousEnd = position + length;
    }
    for (std::size_t item = 0; item < rowsSeen.size(); ++item)
    {
        if (rowsSeen[item] == 0 || rowsSeen[item] != media.itemRows[item])
        {
            throw InvalidMediaRunsError("media item " + std::to_string(item) + ": runs cover "
                                        + std::to_string(rowsSeen[item]) + " rows, the item has "
                                        + std::to_string(media.itemRows[item]));
        }
    }
}

std::size_t MediaLayout::cut(
    std::int64_t begin, std::int64_t end, std::size_t cursor, std::vector<MediaSpan>& spans) const
{
    spans.clear();
    while (cursor < mRuns.size() && mRuns[cursor].position + mRuns[cursor].length <= begin)
    {
        ++cursor;
    }
    for (std::size_t index = cursor; index < mRuns.size() && mRuns[index].position < end; ++index)
    {
        auto const& run = mRuns[index];
        auto const from = std::max(begin, run.position);
        auto const to = std::min(end, run.position + run.length);
        spans.push_back({run.digest, run.rowOffset + (from - run.position), static_cast<std::int32_t>(from - begin),
            static_cast<std::int32_t>(to - from)});
        cursor = index;
    }
    return cursor;
}

bool BlockKeyView::operator==(BlockKeyView const& other) const
{
    return tokens.size() == other.tokens.size()
           && std::memcmp(tokens.data(), other.tokens.data(), tokens.size() * sizeof(TokenId)) == 0
           && std::equal(media.begin(), media.end(), other.media.begin(), other.media.end());
}

BlockHash xxh3Hash(void const* data, std::size_t size)
{
    auto const hash = XXH3_128bits(data, size);
    return {hash.low64, hash.high64};
}

void BlockKeyHasher::put(void const* data, std::size_t size)
{
    auto const* bytes = static_cast<std::uint8_t const*>(data);
    mScratch.insert(mScratch.end(), bytes, bytes + size);
}

void BlockKeyHasher::putText(std::string const& text)
{
    putValue(text.size());
    put(text.data(), text.size());
}

BlockHash BlockKeyHasher::hashScope(ReuseScope const& scope)
{
    mScratch.clear();
    putValue(scope.cacheSalt.has_value());
    putText(scope.cacheSalt.value_or(std::string{}));
    putValue(scope.adapterId.has_value());
    putValue(scope.adapterId.value_or(0));
    putValue(scope.adapterVersion);
    putText(scope.adapterMode);
    return mFunction(mScratch.data(), mScratch.size());
}

BlockHash BlockKeyHasher::hashBlock(BlockHash const& parent, BlockKeyView const& key)
{
    static_assert(sizeof(MediaSpan) == 48, "spans are hashed as bytes, so they must have no padding");
    mScratch.clear();
    putValue(parent);
    put(key.tokens.data(), key.tokens.size() * sizeof(TokenId));
    put(key.media.data(), key.media.size() * sizeof(MediaSpan));
    return mFunction(mScratch.data(), mScratch.size());
}

} // namespace tensorrt_llm::batch_manager
