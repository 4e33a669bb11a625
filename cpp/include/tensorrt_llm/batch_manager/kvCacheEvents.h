// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheEvents.h
//! What happened to findable blocks, for routers and tools outside this process.
//!
//! Outside, a block is named by a SHA-256 chained over all parts of its key (docs/kv-cache.md has the layout byte by
//! byte), so a name means the same in every process. Naming is the costly part and is put off until `take`, so it costs
//! nothing while nobody listens: until then a note of the block's id stands for it, and a block that comes and goes
//! before anybody asked is never named and never mentioned.
//!
//! The buffer is bounded. When it is full the oldest event is dropped and counted, and its number stays missing. Of a
//! block whose `stored` was dropped nothing more is told. One thread at a time.

#pragma once

#include "tensorrt_llm/batch_manager/blockKey.h"
#include "tensorrt_llm/batch_manager/blockStore.h"
#include "tensorrt_llm/batch_manager/lazyArray.h"
#include "tensorrt_llm/batch_manager/radixBlockTree.h"
#include "tensorrt_llm/batch_manager/ringBuffer.h"
#include "tensorrt_llm/batch_manager/sha256.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tensorrt_llm::batch_manager
{

using BlockName = Sha256Digest;

//! The name of the node above a scope's first blocks.
[[nodiscard]] BlockName nameRoot(ReuseScope const& scope);

//! The name of the block with this key below a node of that name.
[[nodiscard]] BlockName nameBlock(BlockName const& parent, BlockKeyView const& key);

enum class KvCacheEventKind : std::uint8_t
{
    kCreated,
    kStored,
    kRemoved,
    kUpdated,
};

struct StoredBlock
{
    BlockName name;
    std::int32_t cacheLevel; //!< 0 device, 1 host
    std::int32_t priority;
    std::size_t numTokens; //!< of the event's tokens, those that are this block's
    std::size_t numSpans;  //!< of its media
};

//! What a kind of event does not have is empty. Tokens and media of all its blocks stand end to end, so that an event
//! of many blocks takes no more memory calls than one of few.
struct KvCacheEvent
{
    std::int64_t id{0}; //!< counts from 0
    KvCacheEventKind kind{KvCacheEventKind::kCreated};
    std::vector<std::int64_t> numBlocksPerLevel;                   //!< created
    std::optional<BlockName> parent;                               //!< stored; none below a root
    std::optional<std::string> cacheSalt;                          //!< stored
    std::vector<StoredBlock> stored;                               //!< stored: each below the one before
    std::vector<TokenId> tokens;                                   //!< stored
    std::vector<MediaSpan> media;                                  //!< stored
    std::vector<std::optional<std::string>> uuids;                 //!< stored: the caller's name of each span's item
    std::vector<BlockName> names;                                  //!< removed, any number; updated, one
    std::optional<std::pair<std::int32_t, std::int32_t>> level;    //!< updated: old and new
    std::optional<std::pair<std::int32_t, std::int32_t>> priority; //!< updated: old and new
};

//! One line of JSON in the shape of the upstream contract, names in hexadecimal.
[[nodiscard]] std::string toJson(KvCacheEvent const& event, std::int64_t windowSize);

class KvCacheEventLog
{
public:
    //! \param maxEvents events kept; with 0 nothing is recorded and nothing costs anything.
    KvCacheEventLog(std::size_t maxEvents, BlockStore const& store, RadixBlockTree const& tree, BlockId numDevice);

    [[nodiscard]] bool isEnabled() const
    {
        return mMaxEvents != 0;
    }

    //! The block was inserted into the tree.
    void stored(BlockId block);

    //! The block is about to leave the tree.
    void removed(BlockId block);

    //! Brings closer what removed will look at.
    void prefetch(BlockId block) const
    {
        if (isEnabled())
        {
            __builtin_prefetch(&mTold[static_cast<std::size_t>(block)]);
        }
    }

    void levelChanged(BlockId block, std::int32_t before, std::int32_t after);
    void priorityChanged(BlockId block, std::int32_t before, std::int32_t after);

    //! The caller's own names of items. Those of the last as many items as there are blocks are kept.
    void noteUuids(MediaRunsView const& media);

    //! Ends the open event and lets take give out what has gathered.
    void flush()
    {
        mFlushed = mEvents.end();
    }

    //! Takes out at most \p most of the oldest flushed events, naming their blocks.
    [[nodiscard]] std::vector<KvCacheEvent> take(std::size_t most);

    [[nodiscard]] std::int64_t numDropped() const
    {
        return mNumDropped;
    }

private:
    //! What outsiders know of a block.
    struct Told
    {
        std::uint32_t note; //!< if pending, the lower half of the serial number of its stored note
        bool pending;       //!< its stored event is in the buffer
        bool announced;     //!< its stored event was taken
        bool named;         //!< `name` is that of the block
        BlockName name;
    };

    //! One block's part of an event.
    struct Note
    {
        BlockId block;       //!< stored: kNoBlock once it was removed again
        std::uint64_t event; //!< serial number of its event
        BlockName name;      //!< removed and updated
    };

    //! An event without its blocks: the next `numNotes` notes.
    struct Header
    {
        KvCacheEventKind kind;
        bool isLevel;
        std::int32_t before;
        std::int32_t after;
        std::size_t numNotes;
        std::size_t numVoid; //!< of these, those removed again

        //! Whether there is anything left to tell.
        [[nodiscard]] bool isVoid() const
        {
            return numNotes == numVoid && kind != KvCacheEventKind::kCreated;
        }
    };

    [[nodiscard]] Told& toldOf(BlockId block)
    {
        return mTold[static_cast<std::size_t>(block)];
    }

    //! Whether the newest event is of \p kind and not flushed yet.
    [[nodiscard]] bool isOpen(KvCacheEventKind kind)
    {
        return mEvents.end() != mFlushed && mEvents.back().kind == kind;
    }

    void changed(BlockId block, bool isLevel, std::int32_t before, std::int32_t after);
    void open(Header const& header);
    void note(BlockId block, BlockName const& name);
    void popOldest();
    BlockName const& nameOf(BlockId block);
    [[nodiscard]] KvCacheEvent describeOldest();
    void describePlace(BlockId first, KvCacheEvent& event);
    void describe(BlockId block, KvCacheEvent& event);

    std::size_t mMaxEvents;
    BlockStore const& mStore;
    RadixBlockTree const& mTree;
    LazyArray<Told> mTold;
    RingBuffer<Header> mEvents;
    RingBuffer<Note> mNotes;
    std::uint64_t mFlushed{0}; //!< events before this one are flushed
    std::map<MediaDigest, std::string> mUuids;
    std::deque<MediaDigest> mUuidOrder;
    std::vector<MediaSpan> mSpans;
    std::vector<BlockId> mUnnamed;
    BlockId mNumDevice;
    BlockId mLastStored{kNoBlock}; //!< the last block of the newest event
    std::int64_t mNextId{0};
    std::int64_t mNumDropped{0};
};

} // namespace tensorrt_llm::batch_manager
