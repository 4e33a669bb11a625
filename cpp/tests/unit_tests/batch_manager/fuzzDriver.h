// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file fuzzDriver.h
//! An engine of a few lines around a manager, driven by a source of choices: random numbers in the tests, the bytes of
//! an input under libFuzzer. A wrong answer throws std::runtime_error.

#pragma once

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "eventFollower.h"
#include "fuzzRequests.h"
#include "operationCounts.h"
#include "testHelpers.h"
#include "windowHelpers.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tensorrt_llm::batch_manager::testing
{

class FuzzDriver
{
public:
    explicit FuzzDriver(KvCacheManagerConfig const& config)
        : mConfig{config}
        , mManager{config}
        , mDevice(static_cast<std::size_t>(config.numBlocks * config.tokensPerBlock), 0)
        , mHost(static_cast<std::size_t>(config.hostBlocks * config.tokensPerBlock), 0)
    {
        for (auto const& pool : config.windowPools)
        {
            mWindows.emplace_back(static_cast<std::size_t>(pool.numBlocks * config.tokensPerBlock), 0);
        }
    }

    template <typename Source>
    void step(Source& source)
    {
        auto const choice = source.below(100);
        if (mLive.empty() || choice < 24)
        {
            add(source);
        }
        else
        {
            auto chosen = mLive.begin();
            std::advance(chosen, source.below(static_cast<std::uint32_t>(mLive.size())));
            operate(source, choice, chosen->first);
        }
        if (source.below(4) == 0)
        {
            takePlan();
        }
        if (source.below(6) == 0)
        {
            runOnePlan();
        }
        if (source.below(6) == 0)
        {
            tellDone(source);
        }
#ifndef TRTLLM_CHECK_INVARIANTS // otherwise every call has done it
        mManager.checkIntegrity();
#endif
        if (source.below(3) == 0)
        {
            compare();
        }
    }

    //! Ends everything and checks that the pool is whole again.
    void finish()
    {
        compare();
        while (!mLive.empty())
        {
            mManager.freeSequence(mLive.begin()->first);
            mLive.erase(mLive.begin());
        }
        takePlan();
        runPlans();
        if (mRun > mDone)
        {
            mManager.copiesDone(mDone = mRun);
        }
        mManager.checkIntegrity();
        auto const stats = mManager.stats();
        expect("blocks in use at the end", stats.usedNumBlocks, 0);
        expect("promises at the end", stats.reservedNumBlocks, 0);
        expect("copies at the end", stats.pendingCopies, 0);
        for (auto const& pool : stats.windowPools)
        {
            expect("window slots in use at the end", pool.maxNumBlocks - pool.freeNumBlocks, 0);
            expect("promised window slots at the end", pool.promisedNumBlocks, 0);
        }
    }

    [[nodiscard]] KVCacheManager const& manager() const
    {
        return mManager;
    }

    //! How often each operation was called.
    [[nodiscard]] OperationCounts const& counts() const
    {
        return mCounts;
    }

    [[nodiscard]] std::int64_t numCachedTokens() const
    {
        return mNumCachedTokens;
    }

    [[nodiscard]] std::int64_t numSharedTails() const
    {
        return mNumSharedTails;
    }

    [[nodiscard]] std::int64_t numExtended() const
    {
        return mNumExtended;
    }

    //! Values that were read from window pools and were right.
    [[nodiscard]] std::int64_t numWindowReads() const
    {
        return mNumWindowReads;
    }

    [[nodiscard]] std::int64_t numWindowCopies() const
    {
        return mNumWindowCopies;
    }

    //! Requests that a window pool could never hold.
    [[nodiscard]] std::int64_t numTooLarge() const
    {
        return mNumTooLarge;
    }

private:
    struct Live
    {
        std::vector<Value> history; //!< one a token: what its KV is made from
        std::int64_t promptLength;
        std::int64_t maxTokens;
        std::int64_t numSlots;
        std::int64_t numWritten;
        Value secret; //!< what an item without identity looked like, this time
    };

    template <typename Source>
    void add(Source& source)
    {
        auto const id = mNextId++;
        auto const length = 1 + source.below(22);
        std::vector<TokenId> tokens(length, 7);
        for (auto changes = source.below(3); changes > 0; --changes)
        {
            tokens[source.below(length)] = static_cast<TokenId>(7 + source.below(3));
        }
        ReuseScope scope;
        if (source.below(5) == 0)
        {
            scope.cacheSalt = "salt";
        }
        if (source.below(5) == 0)
        {
            scope.adapterMode = "vision";
        }
        Value const secret = 1000 + static_cast<Value>(id);
        std::vector<Value> meaning(tokens.begin(), tokens.end());
        auto const media = addMedia(source, length, secret, meaning);
        Live live{{}, length, 0, 0, 0, secret};
        auto history = mix(scope.cacheSalt ? 11 : 12, scope.adapterMode.size());
        for (auto const value : meaning)
        {
            live.history.push_back(history = mix(history, value));
        }
        auto const maxNewTokens = static_cast<std::int64_t>(source.below(9));
        live.maxTokens = length + maxNewTokens;
        live.numSlots = length + std::max<std::int64_t>(maxNewTokens, 1) - 1;
        auto const retention = makeRetention(source);
        SequenceRequest request{id, tokens, media.view(), &scope, maxNewTokens};
        request.retention = source.below(3) == 0 ? &retention : nullptr;
        if ((live.numSlots + mConfig.tokensPerBlock - 1) / mConfig.tokensPerBlock > mConfig.numBlocks)
        {
            return;
        }
        if (isTooLarge(request, live.numSlots))
        {
            return;
        }
        followEvents();
        auto const whole =
            mEvents.findableBlocks(tokens, media, scope, mConfig.tokensPerBlock) * mConfig.tokensPerBlock;
        mCounts.count("probe");
        auto const probed = mManager.probe(tokens, media.view(), scope);
        auto const least = haveWindowsEvicted() ? 0 : whole;
        if (probed < least || probed >= whole + mConfig.tokensPerBlock
            || (!mConfig.enablePartialReuse && (probed > whole || probed % mConfig.tokensPerBlock != 0)))
        {
            throw std::runtime_error("probed " + std::to_string(probed) + ", by the events " + std::to_string(whole));
        }
        mCounts.count("explain");
        auto const explained = mManager.explain(tokens, media.view(), scope);
        expect("cached tokens of the explanation", explained.cachedTokens, probed);
        if (explained.position < probed && explained.position != 0)
        {
            throw std::runtime_error(
                "explained token " + std::to_string(explained.position) + " of a match of " + std::to_string(probed));
        }
        mCounts.count("add");
        auto const got = mManager.addSequence(request);
        if (!got)
        {
            mCounts.count("add, refused");
            return;
        }
        auto const surely = haveWindowsEvicted() && probed % mConfig.tokensPerBlock != 0
                                ? 0
                                : probed / mConfig.tokensPerBlock * mConfig.tokensPerBlock;
        if (got->cachedTokens > probed || got->cachedTokens >= length || got->cachedTokens < surely)
        {
            throw std::runtime_error("cached tokens " + std::to_string(got->cachedTokens) + " of "
                                     + std::to_string(length) + ", probed " + std::to_string(probed));
        }
        live.numWritten = got->cachedTokens;
        if (source.below(2) == 0)
        {
            shareTail(id, live);
        }
        mNumCachedTokens += live.numWritten;
        mLive[id] = live;
    }

    //! Takes what other sequences have written of the next block. That its KV is the right one shows when it is read.
    void shareTail(SequenceId id, Live& live)
    {
        for (auto const& [other, source] : mLive)
        {
            mCounts.count("share tail");
            auto const shared = mManager.shareTail(other, id);
            if (shared < live.numWritten || shared >= live.promptLength
                || (shared > live.numWritten && shared > source.numWritten))
            {
                throw std::runtime_error("shared " + std::to_string(shared) + " tokens of "
                                         + std::to_string(source.numWritten) + ", had "
                                         + std::to_string(live.numWritten));
            }
            mNumSharedTails += shared > live.numWritten ? 1 : 0;
            live.numWritten = shared;
        }
    }

    //! extendSequence, where a window pool may be too small for it for ever.
    bool extended(SequenceId id, std::int64_t maxNewTokens)
    {
        try
        {
            return mManager.extendSequence(id, maxNewTokens);
        }
        catch (CapacityExceededError const&)
        {
            if (mConfig.windowPools.empty())
            {
                throw;
            }
            return false;
        }
    }

    //! Raises a promise by a few tokens.
    template <typename Source>
    void extend(Source& source, SequenceId id)
    {
        auto& live = mLive[id];
        auto const maxTokens = live.maxTokens + source.below(6);
        auto const numSlots = std::max(live.numSlots, maxTokens - 1);
        if (static_cast<std::int64_t>(live.history.size()) <= live.numSlots
            && (numSlots + mConfig.tokensPerBlock - 1) / mConfig.tokensPerBlock <= mConfig.numBlocks
            && extended(id, maxTokens - live.promptLength) && maxTokens > live.maxTokens)
        {
            live.maxTokens = maxTokens;
            live.numSlots = numSlots;
            mCounts.count("extend");
            ++mNumExtended;
        }
    }

    template <typename Source>
    void operate(Source& source, std::uint32_t choice, SequenceId id)
    {
        auto& live = mLive[id];
        auto const numTokens = static_cast<std::int64_t>(live.history.size());
        if (choice < 54)
        {
            auto const top = std::min(numTokens, live.numSlots);
            write(id, live.numWritten + source.below(static_cast<std::uint32_t>(top - live.numWritten + 1)));
        }
        else if (choice < 68)
        {
            if (source.below(4) == 0)
            {
                extend(source, id);
            }
            if (numTokens < live.maxTokens)
            {
                auto const token = static_cast<TokenId>(7 + source.below(2));
                mCounts.count("append");
                mManager.appendTokens(id, std::vector<TokenId>{token});
                live.history.push_back(mix(live.history.back(), static_cast<Value>(token)));
            }
        }
        else if (choice < 73)
        {
            auto const least = std::max(live.promptLength, live.numWritten);
            auto const target = least + source.below(static_cast<std::uint32_t>(numTokens - least + 1));
            mCounts.count("rewind");
            mManager.rewind(id, target);
            live.history.resize(static_cast<std::size_t>(target));
        }
        else if (choice < 78)
        {
            auto const child = mNextId++;
            mCounts.count("fork");
            if (auto const got = mManager.fork(id, child))
            {
                expect("written tokens of a fork", got->cachedTokens, live.numWritten);
                mLive[child] = live;
            }
        }
        else if (choice < 98)
        {
            auto const keep = source.below(5) != 0;
            mCounts.count(keep ? "free" : "free, not kept");
            mManager.freeSequence(id, keep);
            mLive.erase(id);
        }
        else if (choice < 99)
        {
            mCounts.count("refresh");
            mManager.refresh(mNow += source.below(12));
        }
        else if (source.below(4) == 0)
        {
            mCounts.count("reset");
            mManager.resetReuseState();
        }
    }

    [[nodiscard]] bool haveWindowsEvicted() const
    {
        auto const pools = mManager.stats().windowPools;
        return std::any_of(pools.begin(), pools.end(), [](auto const& pool) { return pool.evictedBlocks > 0; });
    }

    //! Whether the manager says that a window pool can never hold the request, and rightly so.
    bool isTooLarge(SequenceRequest const& request, std::int64_t numSlots)
    {
        bool surely = false;
        bool perhaps = false; // the manager may count one block more, since it does not look where windows begin
        for (auto const& pool : mConfig.windowPools)
        {
            auto const most = mostInWindow(pool.windowSize, numSlots, mConfig.maxStepTokens, mConfig.tokensPerBlock);
            surely = surely || most > pool.numBlocks;
            perhaps = perhaps || most + 1 > pool.numBlocks;
        }
        if (!perhaps)
        {
            return false;
        }
        auto const before = mManager.stats();
        try
        {
            if (mManager.addSequence(request))
            {
                mManager.freeSequence(request.id, false);
            }
            expect("requests too large that were let in", surely ? 1 : 0, 0);
            return true; // too near the bound to go on with: what was found may be gone
        }
        catch (CapacityExceededError const&)
        {
            ++mNumTooLarge;
        }
        expect("blocks in use after a refusal", mManager.stats().usedNumBlocks, before.usedNumBlocks);
        return true;
    }

    //! Attention of the token at \p position in every window pool: what it reads has to be what was written.
    void readWindows(SequenceId id, Live const& live, std::int64_t position)
    {
        for (std::size_t pool = 0; pool < mWindows.size(); ++pool)
        {
            auto const table = mManager.blockIds(id, static_cast<std::int32_t>(pool) + 1);
            auto const first = std::max<std::int64_t>(position - mConfig.windowPools[pool].windowSize + 1, 0);
            for (auto key = first; key < position; ++key)
            {
                auto const slot = table.at(static_cast<std::size_t>(key / mConfig.tokensPerBlock));
                if (slot == kNoBlock
                    || cell(mWindows[pool], slot, key % mConfig.tokensPerBlock)
                           != live.history[static_cast<std::size_t>(key)])
                {
                    throw std::runtime_error("wrong KV in window pool " + std::to_string(pool + 1) + ": sequence "
                                             + std::to_string(id) + ", token " + std::to_string(position)
                                             + " reads token " + std::to_string(key) + " in slot "
                                             + std::to_string(slot));
                }
                ++mNumWindowReads;
            }
        }
    }

    //! Blocks that no token to come attends to have been given back.
    void checkReleased(SequenceId id, Live const& live)
    {
        for (std::size_t pool = 0; pool < mWindows.size(); ++pool)
        {
            auto const table = mManager.blockIds(id, static_cast<std::int32_t>(pool) + 1);
            for (std::size_t block = 0; block < table.size(); ++block)
            {
                auto const last = (static_cast<std::int64_t>(block) + 1) * mConfig.tokensPerBlock - 1;
                if (last < live.numWritten - mConfig.windowPools[pool].windowSize + 1)
                {
                    expect("slot of a block out of the window", table[block], kNoBlock);
                }
            }
        }
    }

    //! A step of the engine: after all plans, it writes the sequence's next tokens and commits them.
    void write(SequenceId id, std::int64_t numWritten)
    {
        takePlan();
        runPlans();
        auto& live = mLive[id];
        if (!mWindows.empty() && mConfig.maxStepTokens > 0)
        {
            numWritten = std::min(numWritten, live.numWritten + mConfig.maxStepTokens);
        }
        for (auto position = live.numWritten; position < numWritten; ++position)
        {
            readWindows(id, live, position);
            for (std::size_t pool = 0; pool < mWindows.size(); ++pool)
            {
                auto const slots = mManager.blockIds(id, static_cast<std::int32_t>(pool) + 1);
                cell(mWindows[pool], slots[static_cast<std::size_t>(position / mConfig.tokensPerBlock)],
                    position % mConfig.tokensPerBlock) = live.history[static_cast<std::size_t>(position)];
            }
        }
        auto const table = mManager.blockIds(id);
        for (auto position = live.numWritten; position < numWritten; ++position)
        {
            cell(mDevice, table[static_cast<std::size_t>(position / mConfig.tokensPerBlock)],
                position % mConfig.tokensPerBlock) = live.history[static_cast<std::size_t>(position)];
        }
        mCounts.count("commit");
        mManager.commit(id, numWritten);
        live.numWritten = numWritten;
    }

    void compare()
    {
        followEvents();
        takePlan();
        runPlans();
        for (auto const& [id, live] : mLive)
        {
            readWindows(id, live, live.numWritten);
            checkReleased(id, live);
            auto const table = mManager.blockIds(id);
            for (std::int64_t position = 0; position < live.numWritten; ++position)
            {
                auto const found = cell(mDevice, table[static_cast<std::size_t>(position / mConfig.tokensPerBlock)],
                    position % mConfig.tokensPerBlock);
                if (found != live.history[static_cast<std::size_t>(position)])
                {
                    throw std::runtime_error("wrong KV: sequence " + std::to_string(id) + ", token "
                                             + std::to_string(position) + " of " + std::to_string(live.numWritten));
                }
            }
        }
    }

    void followEvents()
    {
        mCounts.count("flush and take events");
        mManager.flushEvents();
        mEvents.follow(mManager.takeEvents(1000000));
        auto const stats = mManager.stats();
        expect("findable blocks by the events", mEvents.numFindable(), stats.cachedNumBlocks);
        expect("dropped events", stats.droppedEvents, 0);
    }

    void takePlan()
    {
        mCounts.count("take plan");
        if (auto plan = mManager.takeCopyPlan(); plan.ticket != 0)
        {
            mPlans.push_back(std::move(plan));
        }
    }

    void runPlans()
    {
        while (!mPlans.empty())
        {
            runOnePlan();
        }
    }

    void runOnePlan()
    {
        if (mPlans.empty())
        {
            return;
        }
        for (auto const& entry : mPlans.front().entries)
        {
            auto& device = entry.pool == 0 ? mDevice : mWindows.at(static_cast<std::size_t>(entry.pool) - 1);
            auto& from = entry.kind == CopyKind::kOnboard ? mHost : device;
            auto& to = entry.kind == CopyKind::kOffload ? mHost : device;
            mNumWindowCopies += entry.pool == 0 ? 0 : 1;
            for (std::int32_t offset = 0; offset < entry.numTokens; ++offset)
            {
                cell(to, entry.destination, offset) = cell(from, entry.source, offset);
            }
        }
        mRun = mPlans.front().ticket;
        mPlans.pop_front();
    }

    template <typename Source>
    void tellDone(Source& source)
    {
        if (mRun > mDone)
        {
            mDone += 1 + source.below(static_cast<std::uint32_t>(mRun - mDone));
            mCounts.count("copies done");
            mManager.copiesDone(mDone);
        }
    }

    Value& cell(std::vector<Value>& pool, BlockId block, std::int64_t offset)
    {
        return pool.at(static_cast<std::size_t>(block * mConfig.tokensPerBlock + offset));
    }

    KvCacheManagerConfig mConfig;
    KVCacheManager mManager;
    std::vector<Value> mDevice;
    std::vector<Value> mHost;
    std::vector<std::vector<Value>> mWindows;
    std::map<SequenceId, Live> mLive;
    std::deque<CopyPlan> mPlans;
    EventFollower mEvents;
    Ticket mRun{0};
    Ticket mDone{0};
    SequenceId mNextId{0};
    std::int64_t mNow{0};
    std::int64_t mNumCachedTokens{0};
    std::int64_t mNumSharedTails{0};
    std::int64_t mNumExtended{0};
    std::int64_t mNumWindowReads{0};
    std::int64_t mNumWindowCopies{0};
    std::int64_t mNumTooLarge{0};
    OperationCounts mCounts;
};

} // namespace tensorrt_llm::batch_manager::testing
