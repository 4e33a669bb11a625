// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file eventFollower.h
//! Somebody outside who knows a manager by its events only, and finds out whether they add up.

#pragma once

#include "tensorrt_llm/batch_manager/blockKey.h"
#include "tensorrt_llm/batch_manager/kvCacheEvents.h"

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tensorrt_llm::batch_manager::testing
{

inline void expect(std::string const& what, std::int64_t found, std::int64_t expected)
{
    if (found != expected)
    {
        throw std::runtime_error(what + ": " + std::to_string(found) + ", expected " + std::to_string(expected));
    }
}

class EventFollower
{
public:
    //! \throws std::runtime_error if an event contradicts those before it.
    void follow(std::vector<KvCacheEvent> const& events)
    {
        for (auto const& event : events)
        {
            expect("event number", event.id, mNextEvent++);
            followStored(event);
            followNames(event);
        }
    }

    [[nodiscard]] std::int64_t numFindable() const
    {
        return static_cast<std::int64_t>(mFindable.size());
    }

    //! Whole blocks of a prompt that are there, as many as may be matched.
    [[nodiscard]] std::int64_t findableBlocks(std::vector<TokenId> const& tokens, MediaRuns const& media,
        ReuseScope const& scope, std::int32_t tokensPerBlock) const
    {
        auto const size = static_cast<std::size_t>(tokensPerBlock);
        MediaLayout const layout{media, static_cast<std::int64_t>(tokens.size())};
        PromptKeys keys;
        keys.build(tokens, size, (tokens.size() - 1) / size, layout);
        auto name = nameRoot(scope);
        std::int64_t found = 0;
        auto const unknown = layout.firstUnidentified().value_or(static_cast<std::int64_t>(tokens.size()));
        while (static_cast<std::size_t>(found) < keys.size() && (found + 1) * tokensPerBlock <= unknown)
        {
            name = nameBlock(name, keys[static_cast<std::size_t>(found)]);
            if (mFindable.count(name) == 0)
            {
                break;
            }
            ++found;
        }
        return found;
    }

private:
    void followStored(KvCacheEvent const& event)
    {
        auto parent = event.parent;
        std::size_t firstToken = 0;
        std::size_t firstSpan = 0;
        for (auto const& block : event.stored)
        {
            BlockKeyView const key{ArrayView<TokenId>{event.tokens}.slice(firstToken, block.numTokens),
                ArrayView<MediaSpan>{event.media}.slice(firstSpan, block.numSpans)};
            firstToken += block.numTokens;
            firstSpan += block.numSpans;
            if (parent && nameBlock(*parent, key) != block.name)
            {
                throw std::runtime_error("a block's name is not that of its tokens and media");
            }
            if (parent && mFindable.count(*parent) == 0)
            {
                throw std::runtime_error("a block was stored below one that is not there");
            }
            if (!mFindable.emplace(block.name, block.cacheLevel).second)
            {
                throw std::runtime_error("a block was stored twice");
            }
            parent = block.name;
        }
        expect("tokens of an event", static_cast<std::int64_t>(event.tokens.size()),
            static_cast<std::int64_t>(firstToken));
    }

    void followNames(KvCacheEvent const& event)
    {
        for (auto const& name : event.names)
        {
            auto const found = mFindable.find(name);
            if (found == mFindable.end())
            {
                throw std::runtime_error("an event names a block that is not there");
            }
            if (event.kind == KvCacheEventKind::kRemoved)
            {
                mFindable.erase(found);
            }
            else if (event.level)
            {
                expect("level before a change", found->second, event.level->first);
                found->second = event.level->second;
            }
        }
    }

    std::map<BlockName, std::int32_t> mFindable; //!< the level of each block, by its name
    std::int64_t mNextEvent{0};
};

} // namespace tensorrt_llm::batch_manager::testing
