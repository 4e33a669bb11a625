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

void checkRun(MediaRunsView const& media, std::size_t run, std::int64_t previousEnd, std::int64_t promptLength)
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

//! Odd, without pattern: the first digits of the fractional parts of the square roots of 2, 3, 5, 7, 11, 13, last bit
//! set.
constexpr std::uint64_t kOdd[6] = {0x6a09e667f3bcc909ULL, 0xbb67ae8584caa73bULL, 0x3c6ef372fe94f82bULL,
    0xa54ff53a5f1d36f1ULL, 0x510e527fade682d1ULL, 0x9b05688c2b3e6c1fULL};

constexpr std::uint64_t mixed(std::uint64_t value)
{
    value = (value ^ (value >> 32)) * kOdd[1];
    return value ^ (value >> 29);
}

//! Hashes \p size tokens a block. \tparam kSize the size where it is known: the hash is then straight code.
template <std::size_t kSize>
void hashTokens(TokenId const* tokens, std::size_t size, BlockHash* hash, BlockHash const* end)
{
    for (; hash != end; ++hash)
    {
        auto const own = XXH3_128bits(tokens, (kSize != 0 ? kSize : size) * sizeof(TokenId));
        hash->low = own.low64;
        hash->high = own.high64;
        tokens += size;
    }
}

BlockHash mediaHash(ArrayView<MediaSpan> spans, BlockHash const& tokens)
{
    static_assert(sizeof(MediaSpan) == 48, "a span has no padding, so its bytes are its value");
    if (spans.empty())
    {
        return tokens;
    }
    auto const hash = XXH3_128bits(spans.data(), spans.size() * sizeof(MediaSpan));
    return {mixed(tokens.low * kOdd[2] + hash.low64), mixed(tokens.high * kOdd[3] + hash.high64)};
}

//! One half of a block's hash from that of its parent and its own.
constexpr std::uint64_t chained(std::uint64_t parent, std::uint64_t own, std::uint64_t odd)
{
    return mixed(parent * odd + own);
}

} // namespace

void checkSizes(MediaRunsView const& media)
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
    check("uuids", media.uuids.empty() ? numItems : media.uuids.size(), "digests", numItems);
    check("run_positions", media.runPositions.size(), "run_items", numRuns);
    check("run_lengths", media.runLengths.size(), "run_items", numRuns);
}

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

void MediaLayout::assign(MediaRunsView const& media, std::int64_t promptLength)
{
    mRuns.clear();
    mFirstUnidentified.reset();
    try
    {
        assignChecked(media, promptLength);
    }
    catch (InvalidMediaRunsError const&)
    {
        mRuns.clear();
        mFirstUnidentified.reset();
        throw;
    }
}

void MediaLayout::assignChecked(MediaRunsView const& media, std::int64_t promptLength)
{
    checkSizes(media);
    mRowsSeen.assign(media.digests.size(), 0);
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
        mRuns.push_back({media.digests[item], position, length, mRowsSeen[item]});
        mRowsSeen[item] += length;
        previousEnd = position + length;
    }
    for (std::size_t item = 0; item < mRowsSeen.size(); ++item)
    {
        if (mRowsSeen[item] == 0 || mRowsSeen[item] != media.itemRows[item])
        {
            throw InvalidMediaRunsError("media item " + std::to_string(item) + ": runs cover "
                                        + std::to_string(mRowsSeen[item]) + " rows, the item has "
                                        + std::to_string(media.itemRows[item]));
        }
    }
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
    if (mFunction == &xxh3Hash)
    {
        auto const tokens = XXH3_128bits(key.tokens.data(), key.tokens.size() * sizeof(TokenId));
        auto const own = mediaHash(key.media, {tokens.low64, tokens.high64});
        return {chained(parent.low, own.low, kOdd[4]), chained(parent.high, own.high, kOdd[5])};
    }
    mScratch.clear();
    putValue(parent);
    put(key.tokens.data(), key.tokens.size() * sizeof(TokenId));
    put(key.media.data(), key.media.size() * sizeof(MediaSpan));
    return mFunction(mScratch.data(), mScratch.size());
}

void BlockKeyHasher::hashChain(
    BlockHash const& parent, PromptKeys const& keys, std::size_t first, std::size_t end, std::vector<BlockHash>& hashes)
{
    if (first >= end)
    {
        return;
    }
    if (mFunction != &xxh3Hash)
    {
        auto above = parent;
        for (auto block = first; block < end; ++block)
        {
            above = hashes[block] = hashBlock(above, keys[block]);
        }
        return;
    }
    // Two passes: the first has no step that waits for another. The halves are carried apart, because a struct that is
    // written in halves and read whole makes the processor wait for the store.
    auto const tokens = keys[first].tokens;
    auto* const begin = &hashes[first];
    auto* const behind = begin + (end - first);
    switch (tokens.size())
    {
    case 32:
        hashTokens<32>(tokens.data(), 32, begin, behind);
        break;
    case 64:
        hashTokens<64>(tokens.data(), 64, begin, behind);
        break;
    default:
        hashTokens<0>(tokens.data(), tokens.size(), begin, behind);
    }
    for (auto block = first; keys.hasMedia() && block < end; ++block)
    {
        if (auto const spans = keys[block].media; !spans.empty())
        {
            hashes[block] = mediaHash(spans, hashes[block]);
        }
    }
    auto low = parent.low;
    auto high = parent.high;
    for (auto* hash = begin; hash != behind; ++hash)
    {
        low = chained(low, hash->low, kOdd[4]);
        high = chained(high, hash->high, kOdd[5]);
        hash->low = low;
        hash->high = high;
    }
}

std::uint64_t BlockKeyHasher::hashFirstToken(BlockHash const& parent, TokenId token)
{
    if (mFunction == &xxh3Hash)
    {
        return mixed((parent.low ^ static_cast<std::uint64_t>(token)) * kOdd[0] + parent.high);
    }
    mScratch.clear();
    putValue(parent);
    putValue(token);
    return mFunction(mScratch.data(), mScratch.size()).low;
}

void PromptKeys::clear()
{
    mSpans.clear();
    mFirstSpans.clear();
    mNumWhole = 0;
}

void PromptKeys::build(
    ArrayView<TokenId> tokens, std::size_t tokensPerBlock, std::size_t numBlocks, MediaLayout const& media)
{
    clear();
    mTokens = tokens;
    mTokensPerBlock = tokensPerBlock;
    mFirstSpans.assign(numBlocks + 1, 0);
    if (!media.empty())
    {
        cutMedia(numBlocks, media);
    }
    mNumWhole = std::min(numBlocks, tokens.size() / tokensPerBlock);
    mHashes.resize(std::max(mHashes.size(), mNumWhole));
}

void PromptKeys::cutMedia(std::size_t numBlocks, MediaLayout const& media)
{
    media.forEachSpan(static_cast<std::int64_t>(mTokensPerBlock),
        static_cast<std::int64_t>(std::min(numBlocks * mTokensPerBlock, mTokens.size())),
        [this](std::size_t block, MediaSpan const& span)
        {
            mSpans.push_back(span);
            mFirstSpans[block + 1] = mSpans.size();
        });
    // A block without spans begins where the one before it ended.
    for (std::size_t block = 0; block < numBlocks; ++block)
    {
        mFirstSpans[block + 1] = std::max(mFirstSpans[block + 1], mFirstSpans[block]);
    }
}

} // namespace tensorrt_llm::batch_manager
