// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file sequenceTable.h
//! The live sequences by id. What an ended sequence had in memory serves the next one, so after a warm-up neither
//! inserting nor erasing allocates. One thread at a time.

#pragma once

#include "tensorrt_llm/batch_manager/blockStore.h"
#include "tensorrt_llm/batch_manager/common.h"
#include "tensorrt_llm/batch_manager/copyPlan.h"
#include "tensorrt_llm/batch_manager/retention.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tensorrt_llm::batch_manager
{

//! The slots that a sequence has in one window pool.
struct WindowTable
{
    std::vector<BlockId> slots; //!< of its blocks, in order; kNoBlock before the window
    std::int64_t first{0};      //!< the first block in the window
    BlockId numPromised{0};     //!< slots promised, taken or not
};

//! What the manager knows of a live sequence. Its tokens stand in its blocks.
struct Sequence
{
    std::vector<BlockId> blocks;
    std::vector<WindowTable> windows; //!< one a window pool
    std::optional<NodeId> root;       //!< none if nothing of it may be found
    std::int64_t promptLength{0};
    std::int64_t numTokens{0}; //!< prompt and generated so far
    std::int64_t maxTokens{0}; //!< prompt and new tokens
    std::int64_t numSlots{0};  //!< tokens whose KV will ever be written
    std::int64_t numWritten{0};
    std::int64_t shareableBlocks{0}; //!< blocks before the first token that must not be shared
    BlockId numHashed{0};            //!< leading blocks whose hash stands in their record
    BlockId numFindable{0};          //!< leading blocks that are in the tree
    BlockId numReserved{0};          //!< promised and not yet taken
    Ticket ticket{0};                //!< the last plan that copies from or to its blocks, or onboarded them
    std::optional<RetentionConfig> retention;
    bool keep{true};     //!< whether its findable blocks stay so after it
    bool unnamed{false}; //!< its last token has a place and no id yet
    std::uint64_t batchStamp{0};
};

class SequenceTable
{
    using Table = std::unordered_map<SequenceId, Sequence>;

public:
    //! A sequence outside the table.
    using Node = Table::node_type;

    //! A fresh sequence, with room for tables of \p numBlocks in the primary pool and in each of \p numWindows window
    //! pools. Requires that \p id is not live.
    Sequence& insert(SequenceId id, std::size_t numBlocks, std::size_t numWindows = 0)
    {
        if (mSpare.empty())
        {
            Table single;
            single.try_emplace(id);
            mSpare.push_back(single.extract(single.begin()));
        }
        auto& spare = mSpare.back();
        spare.key() = id;
        auto blocks = std::move(spare.mapped().blocks);
        auto windows = std::move(spare.mapped().windows);
        blocks.clear();
        blocks.reserve(numBlocks);
        windows.resize(numWindows);
        for (auto& table : windows)
        {
            table.slots.clear();
            table.slots.reserve(numBlocks);
            table.first = 0;
            table.numPromised = 0;
        }
        spare.mapped() = Sequence{};
        spare.mapped().blocks = std::move(blocks);
        spare.mapped().windows = std::move(windows);
        auto& inserted = mLive.insert(std::move(spare)).position->second;
        mSpare.pop_back();
        return inserted;
    }

    //! Requires that \p id is live.
    void erase(SequenceId id)
    {
        recycle(extract(id));
    }

    //! Takes a sequence out whose blocks are still needed; its id may be used again. Requires that \p id is live.
    [[nodiscard]] Node extract(SequenceId id)
    {
        return mLive.extract(id);
    }

    //! Gives back the memory of a sequence taken out.
    void recycle(Node node)
    {
        mSpare.push_back(std::move(node));
    }

    //! The sequence, or null if it is not live.
    [[nodiscard]] Sequence* find(SequenceId id)
    {
        auto const found = mLive.find(id);
        return found == mLive.end() ? nullptr : &found->second;
    }

    [[nodiscard]] Sequence const* find(SequenceId id) const
    {
        auto const found = mLive.find(id);
        return found == mLive.end() ? nullptr : &found->second;
    }

    [[nodiscard]] std::size_t size() const
    {
        return mLive.size();
    }

    [[nodiscard]] auto begin()
    {
        return mLive.begin();
    }

    [[nodiscard]] auto end()
    {
        return mLive.end();
    }

    [[nodiscard]] auto begin() const
    {
        return mLive.begin();
    }

    [[nodiscard]] auto end() const
    {
        return mLive.end();
    }

private:
    Table mLive;
    std::vector<Node> mSpare;
};

} // namespace tensorrt_llm::batch_manager
