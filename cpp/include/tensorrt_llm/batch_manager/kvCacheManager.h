// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManager.h
//! The KV cache manager: which blocks a sequence has, which of them it got from the cache, what is findable after it.
//!
//! Pure bookkeeping over ids, tokens, digests and counts; it never touches a tensor.
//!
//! Life of a sequence: addSequence -> (appendTokens | commit)* -> freeSequence.
//! Life of a block (lists and who moves it: evictionPolicy.h):
//!
//!     free ──addSequence, appendTokens──▶ held, private ──commit──▶ held, findable ◀──match── cached
//!      ▲                                      │ freeSequence             └──freeSequence──▶ cached
//!      └──────────────────────────────────────┴──────────── evict, resetReuseState ◀────────────┘
//!
//! Invariants, checked after every operation when built with TRTLLM_CHECK_INVARIANTS:
//! - free + cached + held = pool; a block is on the list of its state; its count is the number of tables that have it;
//! - a block is findable only after commit said that its KV is written, and only below a findable parent;
//! - who holds a findable block holds its parent, so cached blocks are given up from the leaves;
//! - the blocks promised to live sequences and not yet taken never exceed free + cached.
//!
//! A call that throws has changed nothing, batches included (an InternalStateError excepted, after which the manager is
//! not to be used again).
//!
//! Threads: one at a time. No call needs Python or its lock, so callers may release it; two threads that share a
//! manager bring their own lock. Different managers share nothing.

#pragma once

#include "tensorrt_llm/batch_manager/blockKey.h"
#include "tensorrt_llm/batch_manager/blockStore.h"
#include "tensorrt_llm/batch_manager/common.h"
#include "tensorrt_llm/batch_manager/evictionPolicy.h"
#include "tensorrt_llm/batch_manager/radixBlockTree.h"
#include "tensorrt_llm/batch_manager/sequenceTable.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tensorrt_llm::batch_manager
{

//! What a sequence got when it was added.
struct SequenceAllocation
{
    std::int64_t
        cachedTokens;  //!< tokens of the prompt whose KV is there already: whole blocks, below the prompt length
    BlockId numBlocks; //!< blocks in its table: those for the prompt
};

//! A sequence to add. Views and pointers are read during the call only.
struct SequenceRequest
{
    SequenceId id{0};
    ArrayView<TokenId> tokens;
    MediaRunsView media;
    ReuseScope const* scope{nullptr}; //!< required
    std::int64_t maxNewTokens{0};
};

struct KvCacheManagerConfig
{
    BlockId numBlocks{0};           //!< of the pool, at least 1
    std::int32_t tokensPerBlock{0}; //!< a power of two, 2 to 32768
    bool enableBlockReuse{true};    //!< if false nothing is ever matched or findable; all else is equal
    HashFunction hash{&xxh3Hash};
};

struct KvCacheStats
{
    BlockId maxNumBlocks;
    BlockId freeNumBlocks;     //!< not held by a sequence: empty or cached
    BlockId usedNumBlocks;     //!< held by at least one sequence
    BlockId cachedNumBlocks;   //!< findable, held or not
    BlockId reservedNumBlocks; //!< promised to live sequences and not yet taken
    std::int32_t tokensPerBlock;
    std::int64_t allocTotalBlocks; //!< since start: entries put into block tables, new or reused
    std::int64_t allocNewBlocks;   //!< since start: of these, blocks taken to be written
    std::int64_t reusedBlocks;     //!< since start: prompt blocks found in the cache
    std::int64_t missedBlocks;     //!< since start: prompt blocks that had to be taken new
    std::int64_t evictedBlocks;    //!< since start: findable blocks given up to make room

    //! reused / (reused + missed), 0 where there is neither.
    [[nodiscard]] double cacheHitRate() const;
};

//! Block ids of several sequences, row by row, padded with kNoBlock to the longest.
struct BlockTables
{
    std::size_t numRows{0};
    std::size_t numColumns{0};
    std::vector<BlockId> blocks;
};

class KVCacheManager
{
public:
    //! \throws InvalidArgumentError
    explicit KVCacheManager(KvCacheManagerConfig const& config);

    KVCacheManager(
        BlockId numBlocks, std::int32_t tokensPerBlock, bool enableBlockReuse = true, HashFunction hash = &xxh3Hash)
        : KVCacheManager{KvCacheManagerConfig{numBlocks, tokensPerBlock, enableBlockReuse, hash}}
    {
    }

    KVCacheManager(KVCacheManager const&) = delete;
    KVCacheManager& operator=(KVCacheManager const&) = delete;
    KVCacheManager(KVCacheManager&&) = delete;
    KVCacheManager& operator=(KVCacheManager&&) = delete;
    ~KVCacheManager() = default;

    //! Matches the longest chain of findable blocks (at most promptLength - 1 tokens), takes blocks for the rest of the
    //! prompt, giving up cached ones as needed, and promises those for maxNewTokens more, so that what was admitted can
    //! finish. The last new token is never fed back, so p prompt and n >= 1 new tokens need p + n - 1 slots.
    //! \return nothing, and changes nothing, if the pool cannot promise that now.
    //! \throws InvalidArgumentError a live id, an empty prompt, a negative maxNewTokens;
    //!         InvalidMediaRunsError; CapacityExceededError if the need exceeds the whole pool.
    std::optional<SequenceAllocation> addSequence(SequenceRequest const& request);

    std::optional<SequenceAllocation> addSequence(SequenceId id, ArrayView<TokenId> tokens, MediaRuns const* media,
        ReuseScope const& scope, std::int64_t maxNewTokens)
    {
        return addSequence({id, tokens, media == nullptr ? MediaRunsView{} : media->view(), &scope, maxNewTokens});
    }

    //! addSequence for several, in order, each matching what those before it left findable.
    //! \param cachedTokens room for one number a request: its cached tokens, or -1 if the pool cannot promise it now.
    //! \throws as addSequence; InvalidArgumentError also if an id comes twice.
    void addSequenceBatch(ArrayView<SequenceRequest> requests, std::int64_t* cachedTokens);

    //! The cached tokens that addSequence would report for the same arguments now. Takes nothing.
    //! \throws InvalidArgumentError, InvalidMediaRunsError
    [[nodiscard]] std::int64_t probe(ArrayView<TokenId> tokens, MediaRunsView const& media, ReuseScope const& scope);

    [[nodiscard]] std::int64_t probe(ArrayView<TokenId> tokens, MediaRuns const* media, ReuseScope const& scope)
    {
        return probe(tokens, media == nullptr ? MediaRunsView{} : media->view(), scope);
    }

    //! Adds generated tokens, and from the promise the blocks that their KV needs.
    //! \throws UnknownSequenceError; CapacityExceededError past maxNewTokens.
    void appendTokens(SequenceId id, ArrayView<TokenId> tokens);

    //! appendTokens with one token for each of several sequences.
    //! \throws as appendTokens; InvalidArgumentError if sizes differ or an id comes twice.
    void appendBatch(ArrayView<SequenceId> ids, ArrayView<TokenId> tokens);

    //! Says that the KV of the first \p numWritten tokens is written. Every block that this fills becomes findable;
    //! where an equal block is findable already, the sequence's own copy is given back and its table has the other one.
    //! \return whether the table changed so.
    //! \throws UnknownSequenceError; InvalidArgumentError if numWritten goes backwards or past the tokens that have
    //! slots.
    bool commit(SequenceId id, std::int64_t numWritten);

    //! commit for several sequences, in order.
    //! \param changed room for one flag a sequence, as commit gives it, or null.
    //! \throws as commit; InvalidArgumentError if sizes differ or an id comes twice.
    void commitBatch(ArrayView<SequenceId> ids, ArrayView<std::int64_t> numWritten, bool* changed = nullptr);

    //! Ends a sequence at any moment. Its findable blocks stay so while no one else needs the room, the deepest being
    //! the first to go; the others become free, and its promise ends. \throws UnknownSequenceError
    void freeSequence(SequenceId id);

    //! freeSequence for several, in order. \throws as freeSequence; InvalidArgumentError if an id comes twice.
    void freeBatch(ArrayView<SequenceId> ids);

    //! Drops every findable block. What live sequences hold stays theirs but can no longer be found, nor can anything
    //! that they compute later, since it builds on what is being dropped. \return cached blocks that became free.
    BlockId resetReuseState();

    //! The sequence's table in token order. \throws UnknownSequenceError
    [[nodiscard]] std::vector<BlockId> const& blockIds(SequenceId id) const;

    //! \throws UnknownSequenceError
    [[nodiscard]] BlockTables blockTables(ArrayView<SequenceId> ids) const;

    [[nodiscard]] KvCacheStats stats() const;

    //! Recounts everything, in time proportional to pool and tables. \throws InternalStateError with both numbers.
    void checkIntegrity() const;

    [[nodiscard]] BlockId numBlocks() const
    {
        return mStore.numBlocks();
    }

    [[nodiscard]] std::int32_t tokensPerBlock() const
    {
        return mStore.tokensPerBlock();
    }

    [[nodiscard]] bool enableBlockReuse() const
    {
        return mEnableBlockReuse;
    }

    [[nodiscard]] std::size_t numSequences() const
    {
        return mSequences.size();
    }

private:
    //! A prompt looked up: the findable blocks it begins with, from its root on. One is kept as scratch.
    struct Match
    {
        MediaLayout media;
        PromptKeys keys; //!< of the prompt's blocks that may be found
        std::vector<BlockId> blocks;
        BlockHash rootHash{0, 0};
        std::int64_t shareableBlocks{0};
        BlockId numIdle{0}; //!< of the blocks, those that nobody holds now
    };

    struct Need
    {
        std::int64_t numSlots;
        BlockId numBlocks;
    };

    // Queries and checks (kvCacheManager.cpp).
    [[nodiscard]] Sequence& sequence(SequenceId id);
    [[nodiscard]] Sequence const& sequence(SequenceId id) const;
    [[nodiscard]] std::int64_t blocksFor(std::int64_t numTokens) const;
    void checkAppend(SequenceId id, Sequence const& sequence, std::size_t numTokens) const;
    void checkCommit(SequenceId id, Sequence const& sequence, std::int64_t numWritten) const;
    void checkBatch(ArrayView<SequenceId> ids);
    void checkAfterOperation() const;

    // Admission (kvCacheManagerAdmission.cpp).
    [[nodiscard]] Need checkRequest(SequenceRequest const& request);
    [[nodiscard]] std::int64_t shareableBlocks(MediaLayout const& media) const;
    void match(ArrayView<TokenId> tokens, ReuseScope const& scope); //!< of the layout in mMatch
    std::optional<SequenceAllocation> admit(SequenceRequest const& request, Need const& need);
    void writePrompt(Sequence const& sequence);

    // Lifetime (kvCacheManagerLifetime.cpp).
    void append(Sequence& sequence, ArrayView<TokenId> tokens);
    bool commit(Sequence& sequence, std::int64_t numWritten);
    bool makeFindable(Sequence& sequence, std::size_t index);
    void free(SequenceId id, Sequence& ending);

    // Blocks (kvCacheManagerBlocks.cpp).
    [[nodiscard]] BlockId available() const;
    void hold(BlockId block);
    void letGo(BlockId block);
    [[nodiscard]] BlockId takeBlock();
    void prefetchNext() const;
    void takeBlocks(Sequence& sequence, std::size_t numBlocks);
    void eraseFromTree(BlockId block);

    // Checks (kvCacheManagerIntegrity.cpp).
    void checkSequences() const;
    void checkBlocks() const;

    bool mEnableBlockReuse;
    BlockStore mStore;
    RadixBlockTree mTree;
    EvictionPolicy mPolicy;
    SequenceTable mSequences;
    BlockId mNumReserved{0};
    std::uint64_t mBatchStamp{0};
    std::int64_t mReusedBlocks{0};
    std::int64_t mMissedBlocks{0};
    std::int64_t mAllocNewBlocks{0};
    std::int64_t mEvictedBlocks{0};

    // Scratch, so that calls take no memory of their own.
    Match mMatch;
    std::vector<MediaSpan> mSpans;
    std::vector<SequenceId> mIds;
};

} // namespace tensorrt_llm::batch_manager
