// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file blockStore.h
//! What is known of each block, in arrays taken once: a record of one cache line, its tokens, its media spans.
//!
//! Three parties share a record, each writing its own fields: the tree (place and hash), the eviction policy (list,
//! state, level) and the manager (holders, slot, priority). They lie together because every operation on a block needs
//! most of them, and a second cache line would cost more than all the work done on the first.
//!
//! A held block's key is written here token by token as it becomes known; the tree only links what is complete. So no
//! token is stored twice. Metadata comes to 64 bytes a record and 48 for a media span (touched only by blocks that have
//! one), plus tables outside this file.

#pragma once

#include "tensorrt_llm/batch_manager/blockKey.h"
#include "tensorrt_llm/batch_manager/common.h"
#include "tensorrt_llm/batch_manager/lazyArray.h"
#include "tensorrt_llm/batch_manager/linkedList.h"
#include "tensorrt_llm/batch_manager/refCount.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tensorrt_llm::batch_manager
{

//! A node that can be a parent: a block id if not negative, otherwise the bitwise complement of a root's index.
using NodeId = std::int32_t;

enum class BlockState : std::uint8_t
{
    kFree,
    kCached,
    kHeld,
};

struct BlockRecord
{
    // Written by the tree.
    BlockHash hash; //!< chained; valid in the tree, and of a held block once the manager computed it
    NodeId parent;
    BlockId firstChild;
    BlockId nextSibling;
    BlockId previousSibling;
    std::int32_t numChildren;
    // Written by the eviction policy.
    ListLinks links;
    // Written by the manager.
    RefCount references;
    // Written by the store.
    std::int32_t moreSpans; //!< the second span in the overflow pool, or -1
    std::uint16_t numSpans;
    // Written by the manager.
    std::uint8_t priority; //!< as asked for
    std::uint8_t level;    //!< where it is listed: its priority, or that of a descendant if higher
    BlockId slot;          //!< place in the pools: device slots first, then host slots
    // Written by the policy, the tree and the manager, in this order.
    BlockState state;
    bool present;     //!< in the tree
    bool indexed : 1; //!< in the tree's table of first tokens
    bool hashed : 1;  //!< in the tree's table of keys
    bool onHost;      //!< its slot is one of the host pool
};

static_assert(sizeof(BlockRecord) == 64, "a record is one cache line");

class BlockStore
{
public:
    //! \param numBlocks in all, at least 1. \param tokensPerBlock at least 1. \param numOnHost the last of the blocks,
    //! whose slots are those of the host pool.
    BlockStore(BlockId numBlocks, std::int32_t tokensPerBlock, BlockId numOnHost = 0);

    [[nodiscard]] BlockId numBlocks() const
    {
        return static_cast<BlockId>(mRecords.size());
    }

    [[nodiscard]] std::int32_t tokensPerBlock() const
    {
        return static_cast<std::int32_t>(mTokensPerBlock);
    }

    BlockRecord& operator[](BlockId block)
    {
        return mRecords[static_cast<std::size_t>(block)];
    }

    BlockRecord const& operator[](BlockId block) const
    {
        return mRecords[static_cast<std::size_t>(block)];
    }

    //! tokensPerBlock values; those not yet written are of an earlier use.
    [[nodiscard]] TokenId* tokens(BlockId block)
    {
        return mTokens.data() + static_cast<std::size_t>(block) * mTokensPerBlock;
    }

    [[nodiscard]] TokenId const* tokens(BlockId block) const
    {
        return mTokens.data() + static_cast<std::size_t>(block) * mTokensPerBlock;
    }

    //! Tokens of the block's key: tokensPerBlock, or fewer after cutTokens.
    [[nodiscard]] std::size_t numTokens(BlockId block) const;

    //! Makes the block's key, media included, end after \p numTokens, less than tokensPerBlock. Such a block matches in
    //! part only. \p scratch lends room.
    void cutTokens(BlockId block, std::size_t numTokens, std::vector<MediaSpan>& scratch);

    //! Writes the first tokens and all media spans of a block.
    void setKey(BlockId block, BlockKeyView const& key)
    {
        std::copy(key.tokens.begin(), key.tokens.end(), tokens(block));
        setMedia(block, key.media);
    }

    void setMedia(BlockId block, ArrayView<MediaSpan> spans);

    //! The block's key. \p scratch lends room where the block has more than one span; the view ends with either.
    [[nodiscard]] BlockKeyView key(BlockId block, std::vector<MediaSpan>& scratch) const;

    //! Whether the block's key equals \p key, which is of a whole block. Never so for an incomplete block.
    [[nodiscard]] bool hasKey(BlockId block, BlockKeyView const& key) const
    {
        auto const numSpans = (*this)[block].numSpans;
        auto const* const own = tokens(block);
        return numSpans == key.media.size() && own[mTokensPerBlock - 1] != kNoToken
               && std::memcmp(own, key.tokens.data(), mTokensPerBlock * sizeof(TokenId)) == 0
               && (numSpans == 0 || hasSpans(block, key.media));
    }

    //! The most leading tokens, up to key.tokens.size(), over which the block's key and \p key are equal, spans cut at
    //! that length included.
    [[nodiscard]] std::int32_t commonTokens(BlockId block, BlockKeyView const& key) const;

    //! Calls \p use with each span of the block in order.
    template <typename Use>
    void forEachSpan(BlockId block, Use const& use) const
    {
        auto const& record = (*this)[block];
        if (record.numSpans > 0)
        {
            use(mFirstSpans[static_cast<std::size_t>(block)]);
        }
        for (auto more = record.moreSpans; more >= 0; more = mMoreSpans[static_cast<std::size_t>(more)].next)
        {
            use(mMoreSpans[static_cast<std::size_t>(more)].span);
        }
    }

    void prefetchRecord(BlockId block) const
    {
        __builtin_prefetch(&mRecords[static_cast<std::size_t>(block)]);
    }

    void prefetchKey(BlockId block, bool withMedia) const
    {
        auto const* const first = tokens(block);
        for (std::size_t line = 0; line < mPrefetchedLines; ++line)
        {
            __builtin_prefetch(first + line * kTokensPerLine);
        }
        if (withMedia)
        {
            __builtin_prefetch(&mFirstSpans[static_cast<std::size_t>(block)]);
        }
    }

    //! Walks the span pool. \throws InternalStateError if a span is lost or shared.
    void checkIntegrity() const;

private:
    struct MoreSpans
    {
        MediaSpan span;
        std::int32_t next;
    };

    [[nodiscard]] bool hasSpans(BlockId block, ArrayView<MediaSpan> spans) const;
    void dropMoreSpans(BlockRecord& record);

    static constexpr std::size_t kTokensPerLine = 64 / sizeof(TokenId);
    static constexpr std::size_t kMaxPrefetchedLines = 4;

    std::size_t mTokensPerBlock;
    std::size_t mPrefetchedLines;
    LazyArray<BlockRecord> mRecords;
    LazyArray<TokenId> mTokens;
    LazyArray<MediaSpan> mFirstSpans; //!< most blocks have one span or none
    std::vector<MoreSpans> mMoreSpans;
    std::int32_t mFreeSpans{-1};
};

} // namespace tensorrt_llm::batch_manager
