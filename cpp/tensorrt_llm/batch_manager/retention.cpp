// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/retention.h"

#include <algorithm>
#include <string>

namespace tensorrt_llm::batch_manager
{

namespace
{

void checkRetention(std::string const& name, BlockRetention const& retention)
{
    if (retention.priority < 0 || retention.priority > kMaxPriority)
    {
        throw InvalidArgumentError(name + ": priority " + std::to_string(retention.priority) + ", expected 0 to "
                                   + std::to_string(kMaxPriority));
    }
    if (retention.durationMs && *retention.durationMs < 1)
    {
        throw InvalidArgumentError(
            name + ": duration of " + std::to_string(*retention.durationMs) + " ms, expected at least 1");
    }
}

} // namespace

void RetentionConfig::check() const
{
    std::int64_t previousEnd = 0;
    for (std::size_t index = 0; index < ranges.size(); ++index)
    {
        auto const& range = ranges[index];
        auto const name = "retention range " + std::to_string(index);
        checkRetention(name, range.retention);
        if (range.tokenStart < previousEnd)
        {
            throw InvalidArgumentError(name + ": starts at " + std::to_string(range.tokenStart) + ", expected at least "
                                       + std::to_string(previousEnd));
        }
        if (!range.tokenEnd && index + 1 != ranges.size())
        {
            throw InvalidArgumentError(
                name + ": has no end, but " + std::to_string(ranges.size() - index - 1) + " more follow");
        }
        if (range.tokenEnd && *range.tokenEnd <= range.tokenStart)
        {
            throw InvalidArgumentError(name + ": ends at " + std::to_string(*range.tokenEnd) + ", starts at "
                                       + std::to_string(range.tokenStart));
        }
        previousEnd = range.tokenEnd.value_or(range.tokenStart);
    }
    checkRetention("decode retention", decode);
}

BlockRetention RetentionConfig::of(std::int64_t position, std::int64_t promptLength) const
{
    if (position >= promptLength)
    {
        return decode;
    }
    for (auto const& range : ranges)
    {
        if (position >= range.tokenStart && (!range.tokenEnd || position < *range.tokenEnd))
        {
            return range.retention;
        }
    }
    return {};
}

void RetentionClock::schedule(BlockId block)
{
    auto const expiry = std::min(mNow, kMaxMilliseconds) + mDurations[static_cast<std::size_t>(block)];
    mExpiries[static_cast<std::size_t>(block)] = expiry;
    // A block used again and again leaves an entry each time; there are never more than two for each block of the pool.
    if (mEntries.size() > 2 * mExpiries.size())
    {
        mEntries.erase(
            std::remove_if(mEntries.begin(), mEntries.end(), [this](Entry const& entry) { return !isCurrent(entry); }),
            mEntries.end());
        std::make_heap(mEntries.begin(), mEntries.end(), &later);
    }
    mEntries.push_back({expiry, block});
    std::push_heap(mEntries.begin(), mEntries.end(), &later);
}

BlockId RetentionClock::popExpired()
{
    while (!mEntries.empty() && mEntries.front().expiry <= mNow)
    {
        auto const entry = mEntries.front();
        std::pop_heap(mEntries.begin(), mEntries.end(), &later);
        mEntries.pop_back();
        if (isCurrent(entry))
        {
            mExpiries[static_cast<std::size_t>(entry.block)] = 0;
            mDurations[static_cast<std::size_t>(entry.block)] = 0;
            return entry.block;
        }
    }
    return kNoBlock;
}

} // namespace tensorrt_llm::batch_manager
