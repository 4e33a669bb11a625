// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerWindowsModelTest.cpp
//! Random prompts on a manager with a window pool and on a slow, obvious model of it, compared after each operation.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "windowHelpers.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

//! A slow model of one window pool under text prompts of one scope, with room for everything in the primary pool: each
//! block is the text before its end, and whether a slot holds it is looked up by that text.
class Model
{
public:
    Model(std::int64_t window, std::int64_t slots, std::int64_t step)
        : mWindow{window}
        , mSlots{slots}
        , mStep{step}
    {
    }

    struct Live
    {
        std::string text; //!< a letter a token
        std::int64_t written{0};
        std::map<std::int64_t, std::string> held; //!< by block: the name of what its slot holds
        std::int64_t promised{0};
    };

    [[nodiscard]] std::int64_t match(std::string const& text) const
    {
        for (auto blocks = (static_cast<std::int64_t>(text.size()) - 1) / kSize; blocks > 0; --blocks)
        {
            bool usable = true;
            for (std::int64_t block = 0; block < blocks; ++block)
            {
                auto const name = prefix(text, block);
                auto const seen = (block + 1) * kSize - 1 >= blocks * kSize - mWindow + 1;
                usable = usable && mFindable.count(name) != 0 && (!seen || mHolders.count(name) != 0);
            }
            if (usable)
            {
                return blocks * kSize;
            }
        }
        return 0;
    }

    bool add(SequenceId id, std::string const& text)
    {
        Live live{text, match(text), {}, 0};
        live.promised = most(live);
        if (promised() + live.promised > mSlots)
        {
            return false;
        }
        for (auto const block : needed(live))
        {
            if (block < live.written / kSize)
            {
                live.held[block] = prefix(text, block);
                acquire(live.held[block]);
            }
        }
        auto& added = this->live[id] = live;
        take(id, added);
        return true;
    }

    void commit(SequenceId id, std::int64_t written)
    {
        auto& live = this->live[id];
        for (auto block = live.written / kSize; block < written / kSize; ++block)
        {
            // The one name that all can find takes the place of the sequence's own.
            auto const name = prefix(live.text, block);
            auto const own = live.held.at(block);
            mFindable.insert(name);
            if (mHolders.count(name) != 0)
            {
                release(own);
                acquire(name);
            }
            else
            {
                mHolders[name] = mHolders.at(own);
                mHolders.erase(own);
            }
            live.held[block] = name;
        }
        live.written = written;
        auto const still = needed(live);
        while (!live.held.empty() && still.count(live.held.begin()->first) == 0)
        {
            release(live.held.begin()->second);
            live.held.erase(live.held.begin());
        }
        live.promised = most(live);
        take(id, live);
    }

    void free(SequenceId id)
    {
        auto& held = live[id].held;
        for (auto entry = held.rbegin(); entry != held.rend(); ++entry)
        {
            release(entry->second);
        }
        live.erase(id);
    }

    void compare(KVCacheManager const& manager) const
    {
        auto const stats = poolOf(manager);
        BOOST_REQUIRE(stats.promisedNumBlocks == promised());
        BOOST_REQUIRE(stats.cachedNumBlocks == static_cast<BlockId>(mIdle.size()));
        BOOST_REQUIRE(stats.freeNumBlocks == mSlots - static_cast<BlockId>(mHolders.size() - mIdle.size()));
        BOOST_REQUIRE(stats.evictedBlocks == evicted);
        std::map<std::string, BlockId> slotOf;
        std::map<BlockId, std::string> nameOf;
        for (auto const& [id, sequence] : live)
        {
            auto const table = manager.blockIds(id, 1);
            for (std::int64_t block = 0; block < static_cast<std::int64_t>(table.size()); ++block)
            {
                auto const slot = table[static_cast<std::size_t>(block)];
                auto const held = sequence.held.find(block);
                BOOST_REQUIRE((slot != kNoBlock) == (held != sequence.held.end()));
                if (slot != kNoBlock)
                {
                    BOOST_REQUIRE(slotOf.emplace(held->second, slot).first->second == slot);
                    BOOST_REQUIRE(nameOf.emplace(slot, held->second).first->second == held->second);
                }
            }
        }
    }

    std::map<SequenceId, Live> live;
    std::int64_t evicted{0};

private:
    static std::string prefix(std::string const& text, std::int64_t block)
    {
        return text.substr(0, static_cast<std::size_t>((block + 1) * kSize));
    }

    //! The blocks of the tokens that the next one sees and of those that the next step writes.
    [[nodiscard]] std::set<std::int64_t> needed(Live const& live) const
    {
        std::set<std::int64_t> blocks;
        auto const end = std::min(live.written + mStep, static_cast<std::int64_t>(live.text.size()));
        for (auto token = std::max<std::int64_t>(live.written - mWindow + 1, 0); token < end; ++token)
        {
            blocks.insert(token / kSize);
        }
        return blocks;
    }

    //! As the manager promises: the rest of the sequence, or a window and a step wherever they begin.
    [[nodiscard]] std::int64_t most(Live const& live) const
    {
        auto const end = static_cast<std::int64_t>(live.text.size());
        std::set<std::int64_t> rest;
        for (auto token = std::max<std::int64_t>(live.written - mWindow + 1, 0); token < end; ++token)
        {
            rest.insert(token / kSize);
        }
        std::size_t run = 0;
        for (std::int64_t begin = 0; begin < kSize; ++begin)
        {
            std::set<std::int64_t> blocks;
            for (auto token = begin; token < begin + mWindow - 1 + mStep; ++token)
            {
                blocks.insert(token / kSize);
            }
            run = std::max(run, blocks.size());
        }
        return static_cast<std::int64_t>(std::min(rest.size(), run));
    }

    [[nodiscard]] std::int64_t promised() const
    {
        std::int64_t sum = 0;
        for (auto const& [id, sequence] : live)
        {
            sum += sequence.promised;
        }
        return sum;
    }

    void acquire(std::string const& name)
    {
        ++mHolders.at(name);
        mIdle.erase(std::remove(mIdle.begin(), mIdle.end(), name), mIdle.end());
    }

    void release(std::string const& name)
    {
        if (--mHolders.at(name) > 0)
        {
            return;
        }
        if (mFindable.count(name) != 0)
        {
            mIdle.push_back(name);
        }
        else
        {
            mHolders.erase(name);
        }
    }

    void take(SequenceId id, Live& live)
    {
        for (auto const block : needed(live))
        {
            if (live.held.count(block) != 0)
            {
                continue;
            }
            if (static_cast<std::int64_t>(mHolders.size()) == mSlots)
            {
                mHolders.erase(mIdle.at(0));
                mIdle.erase(mIdle.begin());
                ++evicted;
            }
            auto const name = "own " + std::to_string(id) + " " + std::to_string(block);
            live.held[block] = name;
            mHolders[name] = 1;
        }
    }

    std::int64_t mWindow;
    std::int64_t mSlots;
    std::int64_t mStep;
    std::set<std::string> mFindable;
    std::map<std::string, int> mHolders; //!< of what has a slot; 0 if it is idle
    std::vector<std::string> mIdle;      //!< the first to go first
};

} // namespace

BOOST_AUTO_TEST_CASE(randomPromptsAgreeWithAModel)
{
    constexpr unsigned kSeeds = 20;
    constexpr unsigned kOperations = 200;
    std::int64_t numShared = 0;
    std::int64_t numCut = 0;
    std::int64_t numRefused = 0;
    std::int64_t numEvicted = 0;
    for (unsigned seed = 1; seed <= kSeeds; ++seed)
    {
        std::mt19937 random{seed};
        auto const below = [&](std::int64_t bound)
        {
            return static_cast<std::int64_t>(random() % bound);
        };
        auto const window = 2 + below(10);
        auto const step = 1 + below(7);
        auto const slots = 8 + below(9);
        Model model{window, slots, step};
        KVCacheManager manager{config({{window, static_cast<BlockId>(slots)}}, step, 400)};
        SequenceId next = 0;
        BOOST_TEST_CONTEXT("seed " << seed << ", window " << window << ", step " << step << ", slots " << slots)
        {
            for (unsigned operation = 0; operation < kOperations; ++operation)
            {
                if (model.live.empty() || below(4) == 0)
                {
                    std::string text(static_cast<std::size_t>(1 + below(40)), 'a');
                    if (below(3) != 0)
                    {
                        text[static_cast<std::size_t>(below(static_cast<std::int64_t>(text.size())))] = 'b';
                    }
                    std::vector<TokenId> const tokens(text.begin(), text.end());
                    ReuseScope const scope;
                    auto const expected = model.match(text);
                    BOOST_REQUIRE(manager.probe(tokens, nullptr, scope) == expected);
                    auto const stop = nameOf(manager.explain(tokens, MediaRunsView{}, scope).stop);
                    numShared += expected > 0 ? 1 : 0;
                    numCut += std::string{stop} == "window" ? 1 : 0;
                    auto const got = manager.addSequence(next, tokens, nullptr, scope, 1);
                    BOOST_REQUIRE(got.has_value() == model.add(next, text));
                    numRefused += got ? 0 : 1;
                    next += got ? 1 : 0;
                }
                else
                {
                    auto chosen = model.live.begin();
                    std::advance(chosen, below(static_cast<std::int64_t>(model.live.size())));
                    auto const id = chosen->first;
                    auto const& live = chosen->second;
                    auto const length = static_cast<std::int64_t>(live.text.size());
                    if (below(8) == 0 || live.written == length)
                    {
                        manager.freeSequence(id);
                        model.free(id);
                    }
                    else
                    {
                        auto const written = std::min(live.written + 1 + below(step), length);
                        manager.commit(id, written);
                        model.commit(id, written);
                    }
                }
                model.compare(manager);
            }
        }
        numEvicted += model.evicted;
    }
    BOOST_TEST_MESSAGE(kSeeds * kOperations << " operations: " << numShared << " matches, " << numCut
                                            << " cut by a window, " << numRefused << " refused, " << numEvicted
                                            << " slots evicted");
    BOOST_TEST(numShared > 100);
    BOOST_TEST(numCut > 100);
    BOOST_TEST(numRefused > 100);
    BOOST_TEST(numEvicted > 100);
}
