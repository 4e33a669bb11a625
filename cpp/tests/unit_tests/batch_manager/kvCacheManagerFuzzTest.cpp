// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerFuzzTest.cpp
//! Random operations on the manager and on a slow, obvious model of it, compared after each.
//!
//! The model writes a block's whole history as text (scope, then every token with the item and row it stands for) and
//! knows nothing of hashes, trees, tables or links.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "operationCounts.h"
#include "testHelpers.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

constexpr BlockId kBlocks = 14;
constexpr std::int32_t kTokensPerBlock = 4;

struct Prompt
{
    std::vector<TokenId> tokens;
    MediaRuns media;
    ReuseScope scope;
    std::vector<std::string> meaning; //!< one a token; "?" where it has no identity
};

class Model
{
public:
    //! Cached tokens, or -1 if it does not fit now, or -2 if it never can.
    std::int64_t add(SequenceId id, Prompt const& prompt, std::int64_t maxNewTokens)
    {
        auto const slots =
            static_cast<std::int64_t>(prompt.tokens.size()) + std::max<std::int64_t>(maxNewTokens, 1) - 1;
        if (blocksFor(slots) > kBlocks)
        {
            return -2;
        }
        Live live{prompt.meaning, prompt.scope, {}, blocksFor(slots), true};
        auto const paths = pathsOf(live, prompt.tokens.size() - 1);
        std::size_t numMatched = 0;
        while (numMatched < paths.size() && mFindable.count(paths[numMatched]) != 0)
        {
            ++numMatched;
        }
        live.blocks.assign(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(numMatched));
        auto const idle = static_cast<std::int64_t>(std::count_if(
            live.blocks.begin(), live.blocks.end(), [&](auto const& path) { return mFindable[path].holders == 0; }));
        if (live.totalBlocks - static_cast<std::int64_t>(numMatched) + idle > kBlocks - used() - reserved())
        {
            return -1;
        }
        for (auto const& path : live.blocks)
        {
            ++mFindable[path].holders;
        }
        auto& added = mLive[id] = live;
        grow(added);
        return static_cast<std::int64_t>(numMatched) * kTokensPerBlock;
    }

    void append(SequenceId id, TokenId token)
    {
        auto& live = mLive[id];
        live.meaning.push_back(std::to_string(token));
        grow(live);
    }

    void commit(SequenceId id, std::int64_t numWritten)
    {
        auto& live = mLive[id];
        if (!live.shareable)
        {
            return;
        }
        auto const paths = pathsOf(live, static_cast<std::size_t>(numWritten));
        for (std::size_t index = 0; index < paths.size(); ++index)
        {
            if (live.blocks[index].empty())
            {
                live.blocks[index] = paths[index];
                ++mFindable[paths[index]].holders;
            }
        }
    }

    void free(SequenceId id)
    {
        auto const& blocks = mLive[id].blocks;
        for (auto block = blocks.rbegin(); block != blocks.rend(); ++block)
        {
            if (auto const dropped = mDropped.find(*block); dropped != mDropped.end())
            {
                if (--dropped->second == 0)
                {
                    mDropped.erase(dropped);
                }
            }
            else if (!block->empty() && --mFindable[*block].holders == 0)
            {
                mFindable[*block].released = ++mClock;
            }
        }
        mLive.erase(id);
    }

    std::int64_t reset()
    {
        auto const idle = numIdle();
        // Two tables that share a block go on sharing it, under a name that no prompt has.
        auto const prefix = "dropped " + std::to_string(++mClock) + " ";
        for (auto& [id, live] : mLive)
        {
            live.shareable = false;
            for (auto& block : live.blocks)
            {
                if (mFindable.count(block) != 0)
                {
                    block.insert(0, prefix);
                    ++mDropped[block];
                }
            }
        }
        mFindable.clear();
        return idle;
    }

    void compare(KVCacheManager const& manager) const
    {
        auto const stats = manager.stats();
        BOOST_REQUIRE(stats.usedNumBlocks == used());
        BOOST_REQUIRE(stats.freeNumBlocks == kBlocks - used());
        BOOST_REQUIRE(stats.cachedNumBlocks == static_cast<BlockId>(mFindable.size()));
        BOOST_REQUIRE(stats.reservedNumBlocks == reserved());
        BOOST_REQUIRE(stats.evictedBlocks == mEvicted);
        std::map<std::string, BlockId> idOf;
        std::map<BlockId, std::string> pathOf;
        for (auto const& [id, live] : mLive)
        {
            auto const& blocks = manager.blockIds(id);
            BOOST_REQUIRE(blocks.size() == live.blocks.size());
            for (std::size_t index = 0; index < blocks.size(); ++index)
            {
                // One findable path is one block, and a private block is nobody else's.
                auto const name =
                    live.blocks[index].empty() ? std::to_string(id) + "#" + std::to_string(index) : live.blocks[index];
                BOOST_REQUIRE(idOf.emplace(name, blocks[index]).first->second == blocks[index]);
                BOOST_REQUIRE(pathOf.emplace(blocks[index], name).first->second == name);
            }
        }
    }

private:
    struct Live
    {
        std::vector<std::string> meaning;
        ReuseScope scope;
        std::vector<std::string> blocks; //!< a shared block's name, its path while findable; empty if private
        std::int64_t totalBlocks;
        bool shareable;
    };

    struct Entry
    {
        int holders{0};
        std::int64_t released{0};
    };

    static std::int64_t blocksFor(std::int64_t tokens)
    {
        return (tokens + kTokensPerBlock - 1) / kTokensPerBlock;
    }

    //! The paths of the whole blocks in the first \p numTokens tokens, up to the first token without identity.
    static std::vector<std::string> pathsOf(Live const& live, std::size_t numTokens)
    {
        std::vector<std::string> paths;
        auto path = live.scope.cacheSalt.value_or("-") + "|" + live.scope.adapterMode;
        for (std::size_t index = 0; index < numTokens && live.meaning[index] != "?"; ++index)
        {
            path += "," + live.meaning[index];
            if ((index + 1) % kTokensPerBlock == 0)
            {
                paths.push_back(path);
            }
        }
        return paths;
    }

    //! Takes the blocks that the known tokens need, giving up the findable block released longest ago for each that the
    //! pool has no empty block for.
    void grow(Live& live)
    {
        auto const target = std::min(blocksFor(static_cast<std::int64_t>(live.meaning.size())), live.totalBlocks);
        while (static_cast<std::int64_t>(live.blocks.size()) < target)
        {
            if (used() + numIdle() == kBlocks)
            {
                auto victim = mFindable.end();
                for (auto entry = mFindable.begin(); entry != mFindable.end(); ++entry)
                {
                    if (entry->second.holders == 0
                        && (victim == mFindable.end() || entry->second.released < victim->second.released))
                    {
                        victim = entry;
                    }
                }
                mFindable.erase(victim);
                ++mEvicted;
            }
            live.blocks.emplace_back();
        }
    }

    [[nodiscard]] std::int64_t numIdle() const
    {
        return std::count_if(
            mFindable.begin(), mFindable.end(), [](auto const& entry) { return entry.second.holders == 0; });
    }

    [[nodiscard]] std::int64_t used() const
    {
        auto held = static_cast<std::int64_t>(mFindable.size() + mDropped.size()) - numIdle();
        for (auto const& [id, live] : mLive)
        {
            held += std::count(live.blocks.begin(), live.blocks.end(), std::string{});
        }
        return held;
    }

    [[nodiscard]] std::int64_t reserved() const
    {
        std::int64_t sum = 0;
        for (auto const& [id, live] : mLive)
        {
            sum += live.totalBlocks - static_cast<std::int64_t>(live.blocks.size());
        }
        return sum;
    }

    std::map<SequenceId, Live> mLive;
    std::map<std::string, Entry> mFindable;
    std::map<std::string, int> mDropped; //!< holders of blocks that a reset made unfindable
    std::int64_t mClock{0};
    std::int64_t mEvicted{0};
};

Prompt randomPrompt(std::mt19937& random)
{
    Prompt prompt;
    auto const length = 1 + random() % 22;
    prompt.tokens.assign(length, 7);
    prompt.meaning.assign(length, "7");
    if (random() % 4 == 0)
    {
        prompt.scope.cacheSalt = "salt";
    }
    if (random() % 4 == 0)
    {
        prompt.scope.adapterMode = "vision";
    }
    std::vector<Run> runs;
    for (std::size_t position = random() % 8; position < length; position += 1 + random() % 6)
    {
        auto const size = std::min<std::size_t>(1 + random() % 6, length - position);
        runs.push_back({static_cast<std::int32_t>(runs.size()), static_cast<std::int64_t>(position),
            static_cast<std::int64_t>(size)});
        position += size;
    }
    prompt.media = mediaOf(runs);
    for (std::size_t item = 0; item < runs.size(); ++item)
    {
        auto const value = static_cast<std::uint8_t>(random() % 2);
        prompt.media.digests[item] = digest(value);
        auto const known = random() % 8 != 0;
        prompt.media.identified[item] = known ? 1 : 0;
        for (std::int64_t row = 0; row < runs[item].length; ++row)
        {
            prompt.meaning[static_cast<std::size_t>(runs[item].position + row)] =
                known ? "7:" + std::to_string(value) + "@" + std::to_string(row) : "?";
        }
    }
    if (length > 2 && random() % 3 == 0)
    {
        auto const changed = random() % length;
        prompt.tokens[changed] = 8;
        if (prompt.meaning[changed] != "?")
        {
            prompt.meaning[changed][0] = '8';
        }
    }
    return prompt;
}

struct Driven
{
    std::int64_t numTokens;
    std::int64_t maxTokens;
    std::int64_t numSlots;
    std::int64_t numWritten;
};

void fuzz(HashFunction hash, unsigned seed, int steps)
{
    BOOST_TEST_MESSAGE("seed " << seed);
    std::mt19937 random{seed};
    KVCacheManager manager{kBlocks, kTokensPerBlock, true, hash};
    Model model;
    OperationCounts counts;
    std::map<SequenceId, Driven> live;
    std::int64_t numReused = 0;
    std::int64_t numRefused = 0;
    for (SequenceId step = 0; step < steps; ++step)
    {
        auto const choice = random() % 100;
        if (live.empty() || choice < 30)
        {
            auto const prompt = randomPrompt(random);
            auto const maxNewTokens = static_cast<std::int64_t>(random() % 9);
            auto const length = static_cast<std::int64_t>(prompt.tokens.size());
            auto const expected = model.add(step, prompt, maxNewTokens);
            counts.count("add");
            if (expected == -2)
            {
                counts.count("add, too large");
                BOOST_CHECK_THROW(manager.addSequence(step, prompt.tokens, &prompt.media, prompt.scope, maxNewTokens),
                    CapacityExceededError);
            }
            else
            {
                counts.count("probe");
                auto const probed = manager.probe(prompt.tokens, &prompt.media, prompt.scope);
                auto const got = manager.addSequence(step, prompt.tokens, &prompt.media, prompt.scope, maxNewTokens);
                BOOST_REQUIRE((got ? got->cachedTokens : -1) == expected);
                numRefused += got ? 0 : 1;
                if (!got)
                {
                    counts.count("add, refused");
                }
                else
                {
                    BOOST_REQUIRE(probed == expected);
                    numReused += expected;
                    live[step] = {
                        length, length + maxNewTokens, length + std::max<std::int64_t>(maxNewTokens, 1) - 1, expected};
                }
            }
        }
        else
        {
            auto chosen = live.begin();
            std::advance(chosen, random() % live.size());
            auto& [id, driven] = *chosen;
            if (choice < 65)
            {
                auto const top = std::min(driven.numTokens, driven.numSlots);
                driven.numWritten += static_cast<std::int64_t>(random() % 1000) % (top - driven.numWritten + 1);
                counts.count("commit");
                manager.commit(id, driven.numWritten);
                model.commit(id, driven.numWritten);
            }
            else if (choice < 80)
            {
                if (driven.numTokens < driven.maxTokens)
                {
                    auto const token = static_cast<TokenId>(7 + random() % 2);
                    counts.count("append");
                    manager.appendTokens(id, std::vector<TokenId>{token});
                    model.append(id, token);
                    ++driven.numTokens;
                }
            }
            else if (choice < 99)
            {
                counts.count("free");
                manager.freeSequence(id);
                model.free(id);
                live.erase(chosen);
            }
            else
            {
                counts.count("reset");
                BOOST_REQUIRE(manager.resetReuseState() == model.reset());
            }
        }
        manager.checkIntegrity();
        model.compare(manager);
    }
    BOOST_TEST_MESSAGE("seed " << seed << ", " << counts.text());
    // The run meant something: blocks were reused and given up, and the pool was full at times.
    BOOST_TEST(numReused > 0);
    BOOST_TEST(numRefused > 0);
    BOOST_TEST(manager.stats().evictedBlocks > 0);
}

} // namespace

BOOST_AUTO_TEST_CASE(randomOperationsMatchTheModel)
{
    for (unsigned seed = 1; seed <= 4; ++seed)
    {
        fuzz(&xxh3Hash, seed, numFuzzSteps(4000));
    }
}

BOOST_AUTO_TEST_CASE(collisionsChangeNothing)
{
    fuzz(&crowdedHash, 11, numFuzzSteps(4000));
    fuzz(&constantHash, 12, numFuzzSteps(4000));
}
