// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/kvCacheEvents.h"

#include <algorithm>
#include <cstring>

namespace tensorrt_llm::batch_manager
{

namespace
{

//! Entries gathered before they are named without being asked: what waits has to be bounded too.
constexpr std::size_t kMaxGathered = 4096;

//! Writes whole numbers in little endian, whatever the machine's order.
class Writer
{
public:
    void number(std::uint64_t value, std::size_t bytes)
    {
        std::uint8_t text[8];
        for (std::size_t index = 0; index < bytes; ++index)
        {
            text[index] = static_cast<std::uint8_t>(value >> (8 * index));
        }
        mHash.update(text, bytes);
    }

    void bytes(void const* data, std::size_t size)
    {
        mHash.update(data, size);
    }

    void text(std::string const& value)
    {
        number(value.size(), 8);
        bytes(value.data(), value.size());
    }

    void tokens(ArrayView<TokenId> values)
    {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        bytes(values.data(), values.size() * sizeof(TokenId));
#else
        for (auto const value : values)
        {
            number(static_cast<std::uint32_t>(value), 4);
        }
#endif
    }

    BlockName finish()
    {
        return mHash.finish();
    }

private:
    Sha256 mHash;
};

constexpr std::uint8_t kFormatVersion = 1;

} // namespace

BlockName nameRoot(ReuseScope const& scope)
{
    Writer writer;
    writer.bytes("KVR", 3);
    writer.number(kFormatVersion, 1);
    writer.number(scope.cacheSalt ? 1 : 0, 1);
    writer.text(scope.cacheSalt.value_or(std::string{}));
    writer.number(scope.adapterId ? 1 : 0, 1);
    writer.number(static_cast<std::uint64_t>(scope.adapterId.value_or(0)), 8);
    writer.number(static_cast<std::uint64_t>(scope.adapterVersion), 8);
    writer.text(scope.adapterMode);
    return writer.finish();
}

BlockName nameBlock(BlockName const& parent, BlockKeyView const& key)
{
    Writer writer;
    writer.bytes("KVB", 3);
    writer.number(kFormatVersion, 1);
    writer.bytes(parent.data(), parent.size());
    writer.number(key.tokens.size(), 4);
    writer.number(key.media.size(), 4);
    writer.tokens(key.tokens);
    for (auto const& span : key.media)
    {
        writer.bytes(span.digest.data(), span.digest.size());
        writer.number(static_cast<std::uint64_t>(span.rowOffset), 8);
        writer.number(static_cast<std::uint32_t>(span.blockOffset), 4);
        writer.number(static_cast<std::uint32_t>(span.length), 4);
    }
    return writer.finish();
}

KvCacheEventLog::KvCacheEventLog(
    std::size_t maxEvents, BlockStore const& store, RadixBlockTree const& tree, BlockId numDevice)
    : mMaxEvents{maxEvents}
    , mStore{store}
    , mTree{tree}
    , mNames{isEnabled() ? static_cast<std::size_t>(store.numBlocks()) : 0}
    , mPending{isEnabled() ? static_cast<std::size_t>(store.numBlocks()) : 0}
{
    if (isEnabled())
    {
        append(KvCacheEventKind::kCreated).numBlocksPerLevel = {numDevice, store.numBlocks() - numDevice};
    }
}

void KvCacheEventLog::note(Entry const& entry)
{
    if (mEntries.size() >= kMaxGathered)
    {
        flush();
    }
    mEntries.push_back(entry);
}

void KvCacheEventLog::stored(BlockId block)
{
    if (isEnabled())
    {
        note({KvCacheEventKind::kStored, block, {}, false, 0, 0});
        mPending[static_cast<std::size_t>(block)] = static_cast<std::uint32_t>(mEntries.size());
    }
}

void KvCacheEventLog::removed(BlockId block)
{
    if (!isEnabled())
    {
        return;
    }
    if (auto& pending = mPending[static_cast<std::size_t>(block)]; pending != 0)
    {
        mEntries[pending - 1].block = kNoBlock;
        pending = 0;
        return;
    }
    note({KvCacheEventKind::kRemoved, block, mNames[static_cast<std::size_t>(block)], false, 0, 0});
}

void KvCacheEventLog::levelChanged(BlockId block, std::int32_t before, std::int32_t after)
{
    if (isEnabled() && !isPending(block))
    {
        note({KvCacheEventKind::kUpdated, block, mNames[static_cast<std::size_t>(block)], true, before, after});
    }
}

void KvCacheEventLog::priorityChanged(BlockId block, std::int32_t before, std::int32_t after)
{
    if (isEnabled() && before != after && !isPending(block))
    {
        note({KvCacheEventKind::kUpdated, block, mNames[static_cast<std::size_t>(block)], false, before, after});
    }
}

void KvCacheEventLog::noteUuids(MediaRunsView const& media)
{
    for (std::size_t item = 0; isEnabled() && item < media.uuids.size(); ++item)
    {
        if (media.uuids[item] && mUuids.emplace(media.digests[item], *media.uuids[item]).second)
        {
            mUuidOrder.push_back(media.digests[item]);
            if (mUuidOrder.size() > static_cast<std::size_t>(mStore.numBlocks()))
            {
                mUuids.erase(mUuidOrder.front());
                mUuidOrder.pop_front();
            }
        }
    }
}

void KvCacheEventLog::flush()
{
    mLastStored = kNoBlock;
    for (auto const& entry : mEntries)
    {
        if (entry.kind == KvCacheEventKind::kStored)
        {
            if (entry.block != kNoBlock)
            {
                flushStored(entry.block);
            }
            continue;
        }
        mLastStored = kNoBlock;
        if (entry.kind == KvCacheEventKind::kRemoved && !mEvents.empty()
            && mEvents.back().kind == KvCacheEventKind::kRemoved)
        {
            mEvents.back().names.push_back(entry.name);
            continue;
        }
        auto& event = append(entry.kind);
        event.names.push_back(entry.name);
        if (entry.kind == KvCacheEventKind::kUpdated)
        {
            (entry.isLevel ? event.level : event.priority).emplace(entry.before, entry.after);
        }
    }
    mEntries.clear();
}

void KvCacheEventLog::flushStored(BlockId block)
{
    mPending[static_cast<std::size_t>(block)] = 0;
    auto const parent = mTree.parentOf(block);
    auto const parentName = parent < 0 ? nameRoot(mTree.scopeOf(parent)) : mNames[static_cast<std::size_t>(parent)];
    auto& name = mNames[static_cast<std::size_t>(block)];
    name = nameBlock(parentName, mStore.key(block, mSpans));
    if (mLastStored == kNoBlock || parent != mLastStored)
    {
        auto& event = append(KvCacheEventKind::kStored);
        event.parent = parent < 0 ? std::nullopt : std::optional<BlockName>{parentName};
        auto root = parent;
        while (root >= 0)
        {
            root = mTree.parentOf(root);
        }
        event.cacheSalt = mTree.scopeOf(root).cacheSalt;
    }
    describe(block, mEvents.back());
    mLastStored = block;
}

void KvCacheEventLog::describe(BlockId block, KvCacheEvent& event)
{
    auto const& record = mStore[block];
    auto const key = mStore.key(block, mSpans);
    event.stored.push_back(
        {mNames[static_cast<std::size_t>(block)], record.onHost ? 1 : 0, record.priority, key.media.size()});
    event.tokens.insert(event.tokens.end(), key.tokens.begin(), key.tokens.end());
    for (auto const& span : key.media)
    {
        auto const known = mUuids.find(span.digest);
        event.media.push_back(span);
        event.uuids.push_back(known == mUuids.end() ? std::nullopt : std::optional<std::string>{known->second});
    }
}

void KvCacheEvent::reset(std::int64_t newId, KvCacheEventKind newKind)
{
    id = newId;
    kind = newKind;
    numBlocksPerLevel.clear();
    parent.reset();
    cacheSalt.reset();
    stored.clear();
    tokens.clear();
    media.clear();
    uuids.clear();
    names.clear();
    level.reset();
    priority.reset();
}

KvCacheEvent& KvCacheEventLog::append(KvCacheEventKind kind)
{
    KvCacheEvent event;
    if (mEvents.size() == mMaxEvents)
    {
        event = std::move(mEvents.front());
        mEvents.pop_front();
        ++mNumDropped;
    }
    event.reset(mNextId++, kind);
    return mEvents.emplace_back(std::move(event));
}

std::vector<KvCacheEvent> KvCacheEventLog::take(std::size_t most)
{
    std::vector<KvCacheEvent> taken;
    while (!mEvents.empty() && taken.size() < most)
    {
        taken.push_back(std::move(mEvents.front()));
        mEvents.pop_front();
    }
    return taken;
}

} // namespace tensorrt_llm::batch_manager
