// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManager.h
//! The KV cache manager: which blocks a sequence has, which of them it got from the cache, what is findable after it.
//!
//! Pure bookkeeping over ids, tokens, digests and counts; it never touches a tensor.
//!
//! Life of a sequence: addSequence -> (appendTokens | growBatch, nameBatch | commit)* -> freeSequence.
//! Life of a block (lists and who moves it: evictionPolicy.h):
//!
//!     free ──addSequence, appendTokens──▶ held, private ──commit──▶ held, findable ◀──match── cached
//!      ▲                                      │ freeSequence             └──freeSequence──▶ cached
//!      └──────────────────────────────────────┴──────────── evict, resetReuseState ◀────────────┘
//!
//! Invariants, checked after every operation when built with TRTLLM_CHECK_INVARIANTS:
//! - free + cached + held = pool; a block is on the list of its state; its count is the number of tables that have it
//!   and of copies under way that hold it;
//! - a block is findable only after commit said that its KV is written, and only below a findable parent;
//! - a sequence that holds a findable block holds its parent, so cached blocks are given up from the leaves;
//! - the blocks promised to live sequences and not yet taken never exceed free + cached.
//!
//! Layers whose tokens see only a window have pools of their own, beside the primary pool that the layers with full
//! attention use (windowPool.h). The blocks of the primary pool are also the keys and the tree of all pools: a model
//! that has window layers only gives the primary pool no layers, and then it costs no KV memory. A sequence has in each
//! window pool the blocks that tokens to come still attend to and those that the next step writes; the others are given
//! back at commit. A prompt matches as far as every pool still has what the next token attends to.
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
#include "tensorrt_llm/batch_manager/copyPlan.h"
#include "tensorrt_llm/batch_manager/evictionPolicy.h"
#include "tensorrt_llm/batch_manager/idleClock.h"
#include "tensorrt_llm/batch_manager/kvCacheEvents.h"
#include "tensorrt_llm/batch_manager/radixBlockTree.h"
#include "tensorrt_llm/batch_manager/retention.h"
#include "tensorrt_llm/batch_manager/sequenceTable.h"
#include "tensorrt_llm/batch_manager/windowPool.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tensorrt_llm::batch_manager
{

//! What a sequence got when it was added.
struct SequenceAllocation
{
    //! Tokens of the prompt whose KV is there already, or will be when the copies of `ticket` have run.
    std::int64_t cachedTokens{0};
    BlockId numBlocks{0}; //!< blocks in its table: those for the prompt
    Ticket ticket{0};     //!< of the plan that has to run before its first step, 0 if none
};

//! A sequence to add. Views and pointers are read during the call only.
struct SequenceRequest
{
    SequenceId id{0};
    ArrayView<TokenId> tokens;
    MediaRunsView media;
    ReuseScope const* scope{nullptr}; //!< required
    std::int64_t maxNewTokens{0};
    RetentionConfig const* retention{nullptr}; //!< none: what it finds stays as it is, the rest has the default
};

struct KvCacheManagerConfig
{
    BlockId numBlocks{0};           //!< of the pool, at least 1
    std::int32_t tokensPerBlock{0}; //!< a power of two, 2 to 32768
    bool enableBlockReuse{true};    //!< if false nothing is ever matched or findable; all else is equal
    HashFunction hash{&xxh3Hash};
    std::size_t eventBufferMaxSize{0}; //!< events kept for takeEvents; 0: none are made
    bool enablePartialReuse{false};    //!< also match the leading part of a block; copies have to be run then
    bool copyOnPartialReuse{true};     //!< copy that part where the block is of use to others; else only take over
    BlockId hostBlocks{0};             //!< of the host pool; copies have to be run if there are any
    std::int32_t secondaryOffloadMinPriority{kDefaultPriority}; //!< blocks of less are dropped, not offloaded
    std::vector<WindowPoolConfig> windowPools{}; //!< numbered from 1 in tables and copies; 0 is the primary pool
    std::int64_t maxStepTokens{0}; //!< with window pools: the most tokens between two commits; 0: no bound
};

struct KvCacheStats
{
    BlockId maxNumBlocks;
    BlockId freeNumBlocks;     //!< not held by a sequence: empty or cached
    BlockId usedNumBlocks;     //!< held by at least one sequence
    BlockId cachedNumBlocks;   //!< findable, held or not
    BlockId reservedNumBlocks; //!< promised to live sequences and not yet taken
    std::int32_t tokensPerBlock;
    std::int64_t allocTotalBlocks;    //!< since start: entries put into block tables, new or reused
    std::int64_t allocNewBlocks;      //!< since start: of these, blocks taken to be written
    std::int64_t reusedBlocks;        //!< since start: prompt blocks found in the cache
    std::int64_t missedBlocks;        //!< since start: prompt blocks that had to be taken new
    std::int64_t evictedBlocks;       //!< since start: findable blocks given up to make room
    std::int64_t evictedOnDevice;     //!< of these, on the device, for the content of others
    std::int64_t evictedOnHost;       //!< of these, on the host, for blocks that moved there
    std::int64_t evictedWithParent;   //!< of these, on the host, because what they continue was given up
    std::int64_t flushedBlocks;       //!< since start: findable blocks dropped by resetReuseState
    DurationCounts evictedIdle;       //!< how long each evicted block had lain unused
    DurationCounts reusedIdle;        //!< how long each block had lain unused that was found, in whole or in part
    std::int64_t partialReusedBlocks; //!< since start: of the missed, those of which a leading part was found
    std::int64_t offloadedBlocks;     //!< since start: blocks moved to the host pool
    std::int64_t onboardedBlocks;     //!< since start: blocks moved back
    BlockId hostMaxNumBlocks;
    BlockId hostFreeNumBlocks;                //!< empty or cached, and not in a copy
    BlockId hostCachedNumBlocks;              //!< of the cached, those on the host
    std::int64_t pendingCopies;               //!< written down and not said to be done
    std::int64_t droppedEvents;               //!< since start: events that the buffer had no room for
    std::vector<WindowPoolStats> windowPools; //!< all above is of the primary pool, copies excepted

    //! reused / (reused + missed), 0 where there is neither.
    [[nodiscard]] double cacheHitRate() const;
};

//! Why a match stops.
enum class MatchStop : std::uint8_t
{
    kComplete,      //!< it does not: all that may be matched is
    kReuseDisabled, //!< nothing is ever matched
    kUnidentified,  //!< an item of the prompt has no identity
    kNotCommitted,  //!< a live sequence computes the wanted block and has not committed it
    kWindow,        //!< the wanted block is there, but a window pool has given up its share
    kEvicted,       //!< the wanted block was there and was given up (told by its hash, so almost certain)
    kSalt,          //!< it is there under another cache salt
    kAdapter,       //!< ... another adapter or version of it
    kAdapterMode,   //!< ... another adapter mode
    kTokens,        //!< the nearest block has another token id
    kMediaIdentity, //!< ... another item, or an item against text
    kMediaOffset,   //!< ... another row of the same item
    kMediaRuns,     //!< ... the same rows in runs that are split elsewhere
    kUnknown,       //!< there is nothing near
};

//! The name that tools show, in snake case.
[[nodiscard]] char const* nameOf(MatchStop stop);

struct MatchExplanation
{
    std::int64_t cachedTokens{0}; //!< what probe says
    MatchStop stop{MatchStop::kUnknown};
    std::int64_t block{0};                 //!< index in the prompt of the block at which it stops
    std::int64_t position{0};              //!< index in the prompt of the first token that is not shared
    std::optional<std::int64_t> evictedMs; //!< with kEvicted: how long ago, in milliseconds
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
    //!         InvalidMediaRunsError; CapacityExceededError if the need exceeds the whole pool, or a window pool.
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

    //! The cached tokens that addSequence would report for the same arguments now. Takes nothing. Where pools are so
    //! short of room that a partial match can be neither taken over nor copied, addSequence may report fewer.
    //! \throws InvalidArgumentError, InvalidMediaRunsError
    [[nodiscard]] std::int64_t probe(ArrayView<TokenId> tokens, MediaRunsView const& media, ReuseScope const& scope);

    [[nodiscard]] std::int64_t probe(ArrayView<TokenId> tokens, MediaRuns const* media, ReuseScope const& scope)
    {
        return probe(tokens, media == nullptr ? MediaRunsView{} : media->view(), scope);
    }

    //! How long a match is and why it stops there. For tools: it may look at every sequence and scope.
    //! \param otherSalts whether it may tell that more is found under another salt.
    //! \throws InvalidArgumentError, InvalidMediaRunsError
    [[nodiscard]] MatchExplanation explain(
        ArrayView<TokenId> tokens, MediaRunsView const& media, ReuseScope const& scope, bool otherSalts = true);

    //! Adds generated tokens, and from the promise the blocks that their KV needs.
    //! \throws UnknownSequenceError; CapacityExceededError past maxNewTokens.
    void appendTokens(SequenceId id, ArrayView<TokenId> tokens);

    //! appendTokens with one token for each of several sequences.
    //! \throws as appendTokens; InvalidArgumentError if sizes differ or an id comes twice.
    void appendBatch(ArrayView<SequenceId> ids, ArrayView<TokenId> tokens);

    //! appendBatch with tokens whose ids are not known yet, so that the step that writes their KV can be laid out while
    //! the one that chooses them runs. Until nameBatch a sequence takes no more tokens, and what is not named cannot be
    //! committed: no key ever holds a token that was not chosen.
    //! \throws as appendBatch; InvalidArgumentError if the last token of one has no id yet.
    void growBatch(ArrayView<SequenceId> ids);

    //! Gives the tokens of growBatch their ids.
    //! \throws UnknownSequenceError; InvalidArgumentError if sizes differ, an id comes twice, or the last token of one
    //! has an id.
    void nameBatch(ArrayView<SequenceId> ids, ArrayView<TokenId> tokens);

    //! Says that the KV of the first \p numWritten tokens is written. Every block that this fills becomes findable;
    //! where an equal block is findable already, the sequence's own copy is given back and its table has the other one.
    //! Slots of window pools that no token to come attends to are given back, those for the next step are taken.
    //! \return whether the table changed so.
    //! \throws UnknownSequenceError; InvalidArgumentError if numWritten goes backwards, past the tokens that have
    //! slots, or, with window pools, further than maxStepTokens at once.
    bool commit(SequenceId id, std::int64_t numWritten);

    //! commit for several sequences, in order.
    //! \param changed room for one flag a sequence, as commit gives it, or null.
    //! \throws as commit; InvalidArgumentError if sizes differ or an id comes twice.
    void commitBatch(ArrayView<SequenceId> ids, ArrayView<std::int64_t> numWritten, bool* changed = nullptr);

    //! A new sequence that goes on from where \p source is, with the same limits. Written whole blocks are shared; the
    //! block that is written next is copied, as the plan says, so each writes its own.
    //! \return nothing, and changes nothing, if the pool cannot promise that now.
    //! \throws UnknownSequenceError; InvalidArgumentError if \p id is live, or the source's last token has no id yet.
    std::optional<SequenceAllocation> fork(SequenceId source, SequenceId id);

    //! Raises a promise: \p maxNewTokens new tokens in all may come after the prompt. Nothing changes if they may
    //! already.
    //! \return false, and changes nothing, if the pool cannot promise that now.
    //! \throws UnknownSequenceError; CapacityExceededError if the need exceeds the whole pool; InvalidArgumentError for
    //! a negative or too large number, or if the last promised token was appended, for that one has no slot.
    bool extendSequence(SequenceId id, std::int64_t maxNewTokens);

    //! For a sequence just added: takes over what \p source, which begins with the same blocks, has written of the
    //! block that \p id writes next, as far as the keys are equal and up to the last token of the prompt. It is copied,
    //! as the plan says. Without partial reuse by copying, or with window pools, nothing happens.
    //! \return the tokens of \p id whose KV is there now, or will be when the copies have run.
    //! \throws UnknownSequenceError
    std::int64_t shareTail(SequenceId source, SequenceId id);

    //! Takes back the last tokens, down to \p numTokens in all: a rejected speculative tail. What is committed stays.
    //! \throws UnknownSequenceError; InvalidArgumentError below the prompt or what is committed, or above what is
    //! known.
    void rewind(SequenceId id, std::int64_t numTokens);

    //! Ends a sequence at any moment. Its findable blocks stay so while no one else needs the room, the deepest being
    //! the first to go; the others become free, and its promise ends. With partial reuse the written head of its last,
    //! incomplete block becomes findable too, for partial matches. While a copy from or to its blocks is under way
    //! they stay held. \param keep if false, what nobody else holds or builds on is not findable any more.
    //! \throws UnknownSequenceError
    void freeSequence(SequenceId id, bool keep = true);

    //! freeSequence for several, in order. \throws as freeSequence; InvalidArgumentError if an id comes twice.
    void freeBatch(ArrayView<SequenceId> ids, bool keep = true);

    //! The copies that the calls since the last one ask for; see copyPlan.h for what who runs them must keep.
    [[nodiscard]] CopyPlan takeCopyPlan();

    //! Says that all plans up to \p ticket have run. \throws InvalidArgumentError if it was not taken, or done before.
    void copiesDone(Ticket ticket);

    //! Ends the open event and lets takeEvents give out what has gathered. Once a step, or before takeEvents.
    void flushEvents();

    //! Names and moves out at most \p most of the oldest flushed events; see kvCacheEvents.h.
    [[nodiscard]] std::vector<KvCacheEvent> takeEvents(std::size_t most);

    //! takeEvents as lines of JSON.
    [[nodiscard]] std::vector<std::string> takeEventLines(std::size_t most);

    //! Tells the time, in milliseconds of any clock that does not go back: priorities whose duration is over fall back
    //! to the default. O(log n) a block that falls back; one that rises by it takes its idle ancestors along.
    void refresh(std::int64_t nowMs);

    //! Drops every findable block. What live sequences hold stays theirs but can no longer be found, nor can anything
    //! that they compute later, since it builds on what is being dropped. \return cached blocks that became free.
    BlockId resetReuseState();

    //! The sequence's table in token order. In a window pool it is as long as in the primary one, kNoBlock standing
    //! before the window and behind what the next step may write.
    //! \param pool 0 for the primary pool, otherwise a window pool, counted from 1.
    //! \throws UnknownSequenceError; InvalidArgumentError if there is no such pool.
    [[nodiscard]] std::vector<BlockId> blockIds(SequenceId id, std::int32_t pool = 0) const;

    //! \throws as blockIds.
    [[nodiscard]] BlockTables blockTables(ArrayView<SequenceId> ids, std::int32_t pool = 0) const;

    [[nodiscard]] KvCacheStats stats() const;

    //! The state of each place of the primary pool, those of the host pool last, as runs of a count and a letter:
    //! f is free, c cached, h held and findable, p held and private ("3h1p60f").
    [[nodiscard]] std::string blockMap() const;

    //! Recounts everything, in time proportional to pool and tables. \throws InternalStateError with both numbers.
    void checkIntegrity() const;

    [[nodiscard]] BlockId numBlocks() const
    {
        return mNumDeviceBlocks;
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
        BlockId numToTake{0};        //!< of the blocks, those that are idle, or on the host: each takes a device block
        BlockId numOnHost{0};        //!< of the blocks
        PartialMatch partial;        //!< what continues them, if anything
        bool partialIsWhole{false};  //!< it is the prompt's own last block, of which the last token is computed again
        std::size_t numInWindows{0}; //!< with window pools: of the blocks, those usable if the partial match is not
        bool cutByWindows{false};    //!< blocks or the partial match were there, and window pools lack their share
    };

    //! What to do with the block of a partial match.
    enum class PartialUse : std::uint8_t
    {
        kNone,
        kTakeOver,
        kCopy,
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
    void checkNamed(SequenceId id, Sequence const& sequence) const;
    void checkCommit(SequenceId id, Sequence const& sequence, std::int64_t numWritten) const;
    void checkBatch(ArrayView<SequenceId> ids);
    void checkAfterOperation() const;
    void checkPool(std::int32_t pool) const;
    void writeTable(Sequence const& sequence, std::int32_t pool, BlockId* table) const;

    // Admission (kvCacheManagerAdmission.cpp).
    void checkMaxNewTokens(SequenceId id, std::int64_t promptLength, std::int64_t maxNewTokens) const;
    void checkNeed(SequenceId id, std::int64_t numSlots) const;
    [[nodiscard]] Need checkRequest(SequenceRequest const& request);
    [[nodiscard]] std::int64_t shareableBlocks(MediaLayout const& media) const;
    void match(ArrayView<TokenId> tokens, ReuseScope const& scope); //!< of the layout in mMatch
    [[nodiscard]] NodeId matchBlocks(NodeId root, std::size_t limit);
    void matchPartial(NodeId parent, std::int64_t length);
    [[nodiscard]] PartialUse partialUse(BlockId numNeeded, std::int64_t numSlots) const;
    [[nodiscard]] std::optional<PartialUse> settleMatch(Need const& need);
    void takeMatched(Sequence& added, PartialUse use);
    void reusePartial(Sequence& added, PartialUse use);
    std::optional<SequenceAllocation> admit(SequenceRequest const& request, Need const& need);
    void writePrompt(Sequence const& sequence);
    void retain(Sequence const& sequence, std::size_t index);

    // Lifetime (kvCacheManagerLifetime.cpp).
    void append(Sequence& sequence, ArrayView<TokenId> tokens);
    bool commit(Sequence& sequence, std::int64_t numWritten);
    bool makeFindable(Sequence& sequence, std::size_t index);
    void free(SequenceId id, bool keep);
    void release(Sequence& ending);
    void keepTail(Sequence const& ending);
    void copyKeys(Sequence const& source, Sequence const& target, std::size_t first);

    // Blocks (kvCacheManagerBlocks.cpp).
    [[nodiscard]] BlockId available() const;

    void hold(BlockId block)
    {
        if (mStore[block].references.acquire() == 1)
        {
            mPolicy.claim(block);
            mRetention.stop(block);
            mIdle.stop(block);
        }
    }

    void letGo(BlockId block)
    {
        if (mStore[block].references.release() == 0)
        {
            becomeIdle(block);
        }
    }

    void becomeIdle(BlockId block);
    void resetRetention(BlockId block);
    [[nodiscard]] BlockId takeBlock();
    void prefetchNext() const;
    void takeBlocks(Sequence& sequence, std::size_t numBlocks);
    void eraseFromTree(BlockId block);
    void evict(BlockId block, std::int64_t& cause);
    void countReuse(BlockId block);
    [[nodiscard]] BlockId takeHostBlock();
    void swapSlots(BlockId one, BlockId other);
    void onboard(BlockId block);
    void addCopy(CopyKind kind, BlockId source, BlockId destination, std::int32_t numTokens, BlockId held);
    void setRetention(BlockId block, BlockRetention const& retention);
    void fallBack(BlockId block);
    void liftAbove(BlockId block);

    [[nodiscard]] BlockId placeOf(BlockId block) const
    {
        auto const& record = mStore[block];
        return record.onHost ? record.slot - mNumDeviceBlocks : record.slot;
    }

    // Window pools (kvCacheManagerWindows.cpp). Called only if there are any.
    void checkWindowNeed(SequenceId id, std::int64_t numSlots) const;
    void limitToWindows();
    [[nodiscard]] std::size_t usableBlocks();
    void cutMatch(std::size_t numBlocks);
    [[nodiscard]] bool extendWindows(Sequence& sequence, std::int64_t numSlots);
    [[nodiscard]] bool windowsCanPromise(std::int64_t numWritten, std::int64_t numSlots, BlockId numPins) const;
    void holdWindows(Sequence& added, ArrayView<BlockId> shared);
    void takeOverWindows(Sequence& added, BlockId block);
    void copyWindows(Sequence& added, CopyKind kind, BlockId source, std::int32_t numTokens);
    void fitWindows(Sequence& sequence);
    void mergeWindows(Sequence& sequence, std::size_t index, BlockId existing);
    void lendWindows(BlockId tail, BlockId existing);
    void settleEnding(Sequence& ending);
    void releaseWindows(Sequence& ending);
    void dropWindows(BlockId block);
    void resetWindows();
    void checkWindows() const;

    // Explanations (kvCacheManagerExplain.cpp).
    [[nodiscard]] bool isBeingComputed(std::size_t index, ReuseScope const& scope) const;
    void explainDifference(
        ArrayView<TokenId> tokens, ReuseScope const& scope, bool otherSalts, MatchExplanation& result);
    [[nodiscard]] bool matchesBelow(NodeId root, std::size_t index);

    [[nodiscard]] std::size_t rememberedAt(BlockHash const& hash) const
    {
        return hash.low & (mEvictedHashes.size() - 1);
    }

    [[nodiscard]] bool wasEvicted(BlockHash const& hash) const
    {
        return mEvictedHashes[rememberedAt(hash)] == hash.high;
    }

    // Checks (kvCacheManagerIntegrity.cpp).
    void checkSequences() const;
    void checkBlocks() const;

    bool mEnableBlockReuse;
    bool mEnablePartialReuse;
    bool mCopyOnPartialReuse;
    bool mHasWindows; //!< all that window pools cost where there are none is to look at this
    std::int32_t mOffloadMinPriority;
    BlockId mNumDeviceBlocks;
    BlockStore mStore; //!< the device's blocks, then the host's
    RadixBlockTree mTree;
    EvictionPolicy mPolicy;
    KvCacheEventLog mEvents;
    LazyArray<std::uint64_t> mEvictedHashes; //!< upper halves, by lower half: what was evicted lately
    LazyArray<IdleClock::Stamp> mEvictedAt;  //!< when, in the same places
    RetentionClock mRetention;
    IdleClock mIdle;
    CopyLedger mCopies;
    std::vector<WindowPool> mWindows;
    SequenceTable mSequences;
    std::vector<SequenceTable::Node> mEnding; //!< ended, and held until a copy is done
    BlockId mNumReserved{0};
    std::uint64_t mBatchStamp{0};
    std::int64_t mReusedBlocks{0};
    std::int64_t mMissedBlocks{0};
    std::int64_t mAllocNewBlocks{0};
    std::int64_t mEvictedOnDevice{0};
    std::int64_t mEvictedOnHost{0};
    std::int64_t mEvictedWithParent{0};
    std::int64_t mFlushedBlocks{0};
    DurationCounts mEvictedIdle;
    DurationCounts mReusedIdle;
    std::int64_t mPartialReusedBlocks{0};
    std::int64_t mOffloadedBlocks{0};
    std::int64_t mOnboardedBlocks{0};

    // Scratch, so that calls take no memory of their own.
    Match mMatch;
    std::vector<MediaSpan> mSpans;
    std::vector<SequenceId> mIds;
    std::vector<std::size_t> mAttachedFrom; //!< one a window pool
};

} // namespace tensorrt_llm::batch_manager
