// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file blockKey.h
//! What decides the content of a KV block, as values.
//!
//! A block's key is (parent, tokens, media spans); the parent of a first block is the root of its ReuseScope. Two
//! blocks are the same block only if every part is equal. A 128-bit hash over the parts narrows the search and decides
//! nothing. Values here hold no pointers into a manager; every function is a pure function of its arguments, except
//! that a BlockKeyHasher keeps a scratch buffer and so serves one thread at a time.

#pragma once

#include "tensorrt_llm/batch_manager/common.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tensorrt_llm::batch_manager
{

//! Everything outside tokens and media that separates one cache from another. Compared in full, never shortened.
struct ReuseScope
{
    ReuseScope() = default;

    //! \throws InvalidArgumentError if \p cacheSalt is given but empty: it would look like a tenant and be none.
    ReuseScope(std::optional<std::string> cacheSalt, std::optional<std::int64_t> adapterId,
        std::int64_t adapterVersion = 0, std::string adapterMode = {});

    std::optional<std::string> cacheSalt;
    std::optional<std::int64_t> adapterId;
    std::int64_t adapterVersion{0};
    //! The adapter that a model family selects from the modalities present, for example "speech" or "vision".
    std::string adapterMode;

    bool operator==(ReuseScope const& other) const;
    bool operator!=(ReuseScope const& other) const;
};

using MediaDigest = std::array<std::uint8_t, 32>;

//! The part of one placeholder run that lies inside one block.
struct MediaSpan
{
    MediaDigest digest;
    std::int64_t rowOffset;   //!< row inside the item that the span's first token stands for
    std::int32_t blockOffset; //!< position of the span's first token inside the block
    std::int32_t length;      //!< tokens

    bool operator==(MediaSpan const& other) const;
};

//! MediaRuns where somebody else owns the arrays.
struct MediaRunsView
{
    ArrayView<MediaDigest> digests;
    ArrayView<std::uint8_t> identified;
    ArrayView<std::int32_t> runItems;
    ArrayView<std::int64_t> runPositions;
    ArrayView<std::int64_t> runLengths;
    ArrayView<std::int64_t> itemRows;
    ArrayView<std::optional<std::string>> uuids;
};

//! \throws InvalidMediaRunsError if the arrays of items, or those of runs, differ in size.
void checkSizes(MediaRunsView const& media);

//! The media of a prompt as the caller describes it: items, and the runs of tokens that stand for their rows.
struct MediaRuns
{
    [[nodiscard]] MediaRunsView view() const
    {
        return {digests, identified, runItems, runPositions, runLengths, itemRows, uuids};
    }

    std::vector<MediaDigest> digests;              //!< one an item; meaningless where not identified
    std::vector<std::uint8_t> identified;          //!< one an item: 1 if its digest is its identity, 0 if it has none
    std::vector<std::int32_t> runItems;            //!< one a run: index of its item
    std::vector<std::int64_t> runPositions;        //!< one a run: index in the prompt of its first token
    std::vector<std::int64_t> runLengths;          //!< one a run: tokens
    std::vector<std::int64_t> itemRows;            //!< one an item: rows, which its runs' lengths sum to
    std::vector<std::optional<std::string>> uuids; //!< one an item, or none at all: the caller's names, for events only
};

//! MediaRuns, checked against a prompt once, ready to be cut into blocks.
class MediaLayout
{
public:
    //! A prompt without media.
    MediaLayout() = default;

    //! Checks all rules together: arrays agree in size; runs positive, ordered, apart and inside the prompt; items in
    //! range, each with runs whose lengths sum to its rows.
    //! \throws InvalidMediaRunsError naming the run or item, with both numbers.
    MediaLayout(MediaRunsView const& media, std::int64_t promptLength)
    {
        assign(media, promptLength);
    }

    MediaLayout(MediaRuns const& media, std::int64_t promptLength)
        : MediaLayout{media.view(), promptLength}
    {
    }

    //! Becomes the layout of another prompt, keeping the memory. \throws as the constructor; it is then empty.
    void assign(MediaRunsView const& media, std::int64_t promptLength);

    [[nodiscard]] bool empty() const
    {
        return mRuns.empty();
    }

    //! Position of the first token whose item has no identity, or nothing if every item has one.
    [[nodiscard]] std::optional<std::int64_t> firstUnidentified() const
    {
        return mFirstUnidentified;
    }

    //! Cuts the runs at the borders of blocks and calls \p use(block, span) for each part in tokens [0, end), in order.
    template <typename Use>
    void forEachSpan(std::int64_t tokensPerBlock, std::int64_t end, Use const& use) const
    {
        for (auto const& run : mRuns)
        {
            auto const runEnd = std::min(run.position + run.length, end);
            for (auto from = run.position; from < runEnd;)
            {
                auto const block = from / tokensPerBlock;
                auto const to = std::min(runEnd, (block + 1) * tokensPerBlock);
                use(static_cast<std::size_t>(block), MediaSpan{run.digest, run.rowOffset + (from - run.position),
                                                         static_cast<std::int32_t>(from - block * tokensPerBlock),
                                                         static_cast<std::int32_t>(to - from)});
                from = to;
            }
        }
    }

private:
    struct Run
    {
        MediaDigest digest;
        std::int64_t position;
        std::int64_t length;
        std::int64_t rowOffset;
    };

    void assignChecked(MediaRunsView const& media, std::int64_t promptLength);

    std::vector<Run> mRuns;
    std::vector<std::int64_t> mRowsSeen; //!< scratch of assign, one an item
    std::optional<std::int64_t> mFirstUnidentified;
};

//! A block's own part of its key; the parent stands beside it. Views stay with their owner.
struct BlockKeyView
{
    ArrayView<TokenId> tokens;
    ArrayView<MediaSpan> media;

    bool operator==(BlockKeyView const& other) const;
};

struct BlockHash
{
    std::uint64_t low;
    std::uint64_t high;

    bool operator==(BlockHash const& other) const
    {
        return low == other.low && high == other.high;
    }
};

//! Hashes \p size bytes. The seam where a test puts a hash that always collides.
using HashFunction = BlockHash (*)(void const* data, std::size_t size);

//! XXH3, 128 bits.
BlockHash xxh3Hash(void const* data, std::size_t size);

class PromptKeys;

//! Hashes scopes and chained block keys, with XXH3 unless given another function.
//!
//! With XXH3 the tokens of a block are hashed apart from its parent and media and then mixed with them, so that the
//! hashes of a long prompt do not wait for each other. Another function sees all parts of a key in one piece.
class BlockKeyHasher
{
public:
    explicit BlockKeyHasher(HashFunction function = &xxh3Hash)
        : mFunction{function}
    {
    }

    [[nodiscard]] BlockHash hashScope(ReuseScope const& scope);
    [[nodiscard]] BlockHash hashBlock(BlockHash const& parent, BlockKeyView const& key);

    //! Writes to \p hashes those of the whole blocks \p first to \p end - 1, which begin below a node of hash \p
    //! parent.
    void hashChain(BlockHash const& parent, PromptKeys const& keys, std::size_t first, std::size_t end,
        std::vector<BlockHash>& hashes);

    //! A hash of a first token below a parent, for an index of children.
    [[nodiscard]] std::uint64_t hashFirstToken(BlockHash const& parent, TokenId token);

private:
    void put(void const* data, std::size_t size);

    template <typename T>
    void putValue(T const& value)
    {
        put(&value, sizeof(value));
    }

    void putText(std::string const& text);

    HashFunction mFunction;
    std::vector<std::uint8_t> mScratch;
};

//! The keys of a prompt's blocks, and the hashes of those of the whole ones for which they are asked. Keeps its memory
//! for the next prompt.
class PromptKeys
{
public:
    //! \param tokens the prompt; a view, which must outlive the use of the keys.
    //! \param numBlocks keys wanted, from the first block on; the last may be of less than a whole block.
    void build(ArrayView<TokenId> tokens, std::size_t tokensPerBlock, std::size_t numBlocks, MediaLayout const& media);

    //! Works out the hashes of blocks \p first to \p end - 1, whole ones, below a node of hash \p parent.
    void hash(std::size_t first, std::size_t end, BlockHash const& parent, BlockKeyHasher& hasher)
    {
        hasher.hashChain(parent, *this, first, end, mHashes);
    }

    //! Keys of no block.
    void clear();

    //! Keys there are.
    [[nodiscard]] std::size_t size() const
    {
        return mFirstSpans.empty() ? 0 : mFirstSpans.size() - 1;
    }

    [[nodiscard]] BlockKeyView operator[](std::size_t block) const
    {
        auto const begin = block * mTokensPerBlock;
        auto const firstSpan = mFirstSpans[block];
        return {mTokens.slice(begin, std::min(mTokensPerBlock, mTokens.size() - begin)),
            ArrayView<MediaSpan>{mSpans}.slice(firstSpan, mFirstSpans[block + 1] - firstSpan)};
    }

    //! The same for one of the numWhole first.
    [[nodiscard]] BlockKeyView whole(std::size_t block) const
    {
        auto const firstSpan = mFirstSpans[block];
        return {{mTokens.data() + block * mTokensPerBlock, mTokensPerBlock},
            {mSpans.data() + firstSpan, mFirstSpans[block + 1] - firstSpan}};
    }

    //! Keys of whole blocks: all but at most one.
    [[nodiscard]] std::size_t numWhole() const
    {
        return mNumWhole;
    }

    //! The hash of a whole block for which `hash` was called.
    [[nodiscard]] BlockHash const& hashOf(std::size_t block) const
    {
        return mHashes[block];
    }

    [[nodiscard]] bool hasMedia() const
    {
        return !mSpans.empty();
    }

private:
    void cutMedia(std::size_t numBlocks, MediaLayout const& media);

    ArrayView<TokenId> mTokens;
    std::size_t mTokensPerBlock{1};
    std::vector<MediaSpan> mSpans;
    std::vector<std::size_t> mFirstSpans; //!< where each block's begin, and the end
    std::size_t mNumWhole{0};
    std::vector<BlockHash> mHashes; //!< one a whole block at least, some known
};

} // namespace tensorrt_llm::batch_manager
