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

//! The media of a prompt as the caller describes it: items, and the runs of tokens that stand for their rows.
struct MediaRuns
{
    std::vector<MediaDigest> digests;       //!< one an item; meaningless where not identified
    std::vector<std::uint8_t> identified;   //!< one an item: 1 if its digest is its identity, 0 if it has none
    std::vector<std::int32_t> runItems;     //!< one a run: index of its item
    std::vector<std::int64_t> runPositions; //!< one a run: index in the prompt of its first token
    std::vector<std::int64_t> runLengths;   //!< one a run: tokens
    std::vector<std::int64_t> itemRows;     //!< one an item: rows, which its runs' lengths sum to
};

//! MediaRuns, checked against a prompt once and laid out for cutting into blocks.
class MediaLayout
{
public:
    //! A prompt without media.
    MediaLayout() = default;

    //! Checks all rules together: arrays agree in size; runs positive, ordered, apart and inside the prompt; items in
    //! range, each with runs whose lengths sum to its rows.
    //! \throws InvalidMediaRunsError naming the run or item, with both numbers.
    MediaLayout(MediaRuns const& media, std::int64_t promptLength);

    //! Position of the first token whose item has no identity, or nothing if every item has one.
    [[nodiscard]] std::optional<std::int64_t> firstUnidentified() const
    {
        return mFirstUnidentified;
    }

    //! Writes to \p spans what lies in tokens [begin, end). \p cursor speeds up walking blocks in order: 0 at first,
    //! then what the previous call returned. Requires that begin does not go backwards for a cursor.
    //! \return the cursor for the block that starts at \p end.
    std::size_t cut(std::int64_t begin, std::int64_t end, std::size_t cursor, std::vector<MediaSpan>& spans) const;

private:
    struct Run
    {
        MediaDigest digest;
        std::int64_t position;
        std::int64_t length;
        std::int64_t rowOffset;
    };

    std::vector<Run> mRuns;
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

//! Hashes scopes and chained block keys with one HashFunction.
class BlockKeyHasher
{
public:
    explicit BlockKeyHasher(HashFunction function = &xxh3Hash)
        : mFunction{function}
    {
    }

    [[nodiscard]] BlockHash hashScope(ReuseScope const& scope);
    [[nodiscard]] BlockHash hashBlock(BlockHash const& parent, BlockKeyView const& key);

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

} // namespace tensorrt_llm::batch_manager
