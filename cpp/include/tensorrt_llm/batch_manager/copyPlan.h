// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file copyPlan.h
//! The copies of KV that the manager's decisions ask for, and which of them are still under way.
//!
//! The manager copies nothing. It writes down copies in the order of its decisions; the engine takes what has gathered
//! (`take`), runs it in that order, and says when it is done (`done`). Contract with who runs them:
//!
//! - plans run in the order of their tickets and entries in the order of the plan, as on one stream;
//! - a step that writes blocks of a sequence runs after the plans taken before it: a block may be the source of a copy
//!   and have a new owner already;
//! - beside that they may run at any time. What a copy reads or writes and no sequence has is held by the plan until
//!   `done`, so it is not handed out to anybody who does not know of the copy.
//!
//! One thread at a time.

#pragma once

#include "tensorrt_llm/batch_manager/common.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace tensorrt_llm::batch_manager
{

//! Names a plan that was taken; they count from 1. 0 stands for nothing to wait for.
using Ticket = std::int64_t;

enum class CopyKind : std::uint8_t
{
    kPartial, //!< the head of a findable block, device to device
    kFork,    //!< the tail that a forked sequence goes on writing, device to device
    kOffload, //!< a whole block, device to host
    kOnboard, //!< a whole block or its head, host to device
};

//! Block ids are places in the pool of their side: device blocks and host blocks both count from 0.
struct CopyEntry
{
    CopyKind kind;
    BlockId source;
    BlockId destination;
    std::int32_t numTokens; //!< from the start of the block
    std::int32_t pool{0};   //!< 0 for the primary pool, otherwise the number of a window pool, counted from 1
};

struct CopyPlan
{
    Ticket ticket{0};
    std::vector<CopyEntry> entries;
};

//! Gathers copies and keeps what each of them holds.
class CopyLedger
{
public:
    //! Adds a copy to the plan that will be taken next. \param held what this copy holds of the entry's pool: blocks of
    //! the primary pool, slots of a window pool, or kNoBlock; \param alsoHeld likewise.
    void add(CopyEntry const& entry, BlockId held, BlockId alsoHeld = kNoBlock)
    {
        mOpen.push_back(entry);
        mHeld.push_back({mNext, entry.pool, held, alsoHeld});
    }

    //! The ticket that the copies added now will have.
    [[nodiscard]] Ticket next() const
    {
        return mNext;
    }

    //! Whether the copies of \p ticket are done.
    [[nodiscard]] bool isDone(Ticket ticket) const
    {
        return ticket <= mDone;
    }

    //! The copies added since the last call; ticket 0 if there are none.
    [[nodiscard]] CopyPlan take()
    {
        if (mOpen.empty())
        {
            return {};
        }
        CopyPlan plan{mNext, std::move(mOpen)};
        mOpen.clear();
        ++mNext;
        return plan;
    }

    //! Says that all plans up to \p ticket have run, and calls \p letGo with the pool and each block that they
    //! held there, in order.
    //! \throws InvalidArgumentError if that plan was not taken, or was done before.
    template <typename LetGo>
    void done(Ticket ticket, LetGo const& letGo)
    {
        if (ticket <= mDone || ticket >= mNext)
        {
            throw InvalidArgumentError("copies done up to ticket " + std::to_string(ticket) + ", expected "
                                       + std::to_string(mDone + 1) + " to " + std::to_string(mNext - 1));
        }
        mDone = ticket;
        for (; !mHeld.empty() && mHeld.front().ticket <= ticket; mHeld.pop_front())
        {
            visit(mHeld.front(), letGo);
        }
    }

    //! Copies added and not done.
    [[nodiscard]] std::size_t numPending() const
    {
        return mHeld.size();
    }

    //! Calls \p use with the pool and each block that a copy holds there.
    template <typename Use>
    void forEachHeld(Use const& use) const
    {
        for (auto const& hold : mHeld)
        {
            visit(hold, use);
        }
    }

private:
    struct Hold
    {
        Ticket ticket;
        std::int32_t pool;
        BlockId block;
        BlockId otherBlock;
    };

    template <typename Use>
    static void visit(Hold const& hold, Use const& use)
    {
        for (auto const block : {hold.block, hold.otherBlock})
        {
            if (block != kNoBlock)
            {
                use(hold.pool, block);
            }
        }
    }

    std::vector<CopyEntry> mOpen;
    std::deque<Hold> mHeld;
    Ticket mNext{1};
    Ticket mDone{0};
};

} // namespace tensorrt_llm::batch_manager
