// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/kvCacheEvents.h"

#include <algorithm>

namespace tensorrt_llm::batch_manager
{

namespace
{

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
    , mTold{isEnabled() ? static_cast<std::size_t>(store.numBlocks()) : 0}
    , mNumDevice{numDevice}
{
    if (isEnabled())
    {
        open({KvCacheEventKind::kCreated, false, 0, 0, 0, 0});
        flush();
    }
}

void KvCacheEventLog::open(Header const& header)
{
    if (mEvents.size() == mMaxEvents)
    {
        mNumDropped += mEvents.front().isVoid() ? 0 : 1;
        popOldest();
    }
    mEvents.push(header);
}

//! Takes the oldest event off the buffer. Its number is used up if there was anything to tell.
void KvCacheEventLog::popOldest()
{
    auto const oldest = mEvents.front();
    mNextId += oldest.isVoid() ? 0 : 1;
    for (std::size_t index = 0; index < oldest.numNotes; ++index)
    {
        auto const block = mNotes.front().block;
        if (oldest.kind == KvCacheEventKind::kStored && block != kNoBlock)
        {
            toldOf(block).pending = false;
        }
        mNotes.pop();
    }
    mEvents.pop();
    mFlushed = std::max(mFlushed, mEvents.begin());
}

//! Adds a block to the newest event.
void KvCacheEventLog::note(BlockId block, BlockName const& name)
{
    mNotes.push({block, mEvents.end() - 1, name});
    ++mEvents.back().numNotes;
}

void KvCacheEventLog::stored(BlockId block)
{
    if (!isEnabled())
    {
        return;
    }
    if (!isOpen(KvCacheEventKind::kStored) || mLastStored == kNoBlock || mTree.parentOf(block) != mLastStored)
    {
        open({KvCacheEventKind::kStored, false, 0, 0, 0, 0});
    }
    toldOf(block).note = static_cast<std::uint32_t>(mNotes.end());
    toldOf(block).pending = true;
    note(block, {});
    mLastStored = block;
}

void KvCacheEventLog::removed(BlockId block)
{
    if (!isEnabled())
    {
        return;
    }
    auto& told = toldOf(block);
    if (told.pending)
    {
        auto const first = mNotes.begin();
        auto& stored = mNotes[first + (told.note - static_cast<std::uint32_t>(first))];
        stored.block = kNoBlock;
        ++mEvents[stored.event].numVoid;
    }
    else if (told.announced)
    {
        if (!isOpen(KvCacheEventKind::kRemoved))
        {
            open({KvCacheEventKind::kRemoved, false, 0, 0, 0, 0});
        }
        note(block, told.name);
    }
    told.pending = false;
    told.announced = false;
    told.named = false;
    mLastStored = mLastStored == block ? kNoBlock : mLastStored;
}

void KvCacheEventLog::levelChanged(BlockId block, std::int32_t before, std::int32_t after)
{
    changed(block, true, before, after);
}

void KvCacheEventLog::priorityChanged(BlockId block, std::int32_t before, std::int32_t after)
{
    changed(block, false, before, after);
}

//! Of a block that nobody was told of yet nothing has to be said: its stored event will tell how it is then.
void KvCacheEventLog::changed(BlockId block, bool isLevel, std::int32_t before, std::int32_t after)
{
    if (isEnabled() && before != after && toldOf(block).announced)
    {
        open({KvCacheEventKind::kUpdated, isLevel, before, after, 0, 0});
        note(block, toldOf(block).name);
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

//! The name of a block in the tree. Those above it that have none yet get theirs too.
BlockName const& KvCacheEventLog::nameOf(BlockId block)
{
    mUnnamed.clear();
    NodeId node = block;
    for (; node >= 0 && !toldOf(node).named; node = mTree.parentOf(node))
    {
        mUnnamed.push_back(node);
    }
    for (; !mUnnamed.empty(); mUnnamed.pop_back())
    {
        auto& told = toldOf(mUnnamed.back());
        auto const parent = mTree.parentOf(mUnnamed.back());
        told.name = nameBlock(
            parent < 0 ? nameRoot(mTree.scopeOf(parent)) : toldOf(parent).name, mStore.key(mUnnamed.back(), mSpans));
        told.named = true;
    }
    return toldOf(block).name;
}

void KvCacheEventLog::describe(BlockId block, KvCacheEvent& event)
{
    auto const& record = mStore[block];
    auto const& name = nameOf(block);
    auto const key = mStore.key(block, mSpans);
    event.stored.push_back({name, record.onHost ? 1 : 0, record.priority, key.tokens.size(), key.media.size()});
    event.tokens.insert(event.tokens.end(), key.tokens.begin(), key.tokens.end());
    for (auto const& span : key.media)
    {
        auto const known = mUuids.find(span.digest);
        event.media.push_back(span);
        event.uuids.push_back(known == mUuids.end() ? std::nullopt : std::optional<std::string>{known->second});
    }
}

//! What lies above an event's first block.
void KvCacheEventLog::describePlace(BlockId first, KvCacheEvent& event)
{
    auto const parent = mTree.parentOf(first);
    event.parent = parent < 0 ? std::nullopt : std::optional<BlockName>{nameOf(parent)};
    auto root = parent;
    while (root >= 0)
    {
        root = mTree.parentOf(root);
    }
    event.cacheSalt = mTree.scopeOf(root).cacheSalt;
}

KvCacheEvent KvCacheEventLog::describeOldest()
{
    auto const& header = mEvents.front();
    KvCacheEvent event;
    event.id = mNextId;
    event.kind = header.kind;
    if (header.kind == KvCacheEventKind::kCreated)
    {
        event.numBlocksPerLevel = {mNumDevice, mStore.numBlocks() - mNumDevice};
    }
    if (header.kind == KvCacheEventKind::kUpdated)
    {
        (header.isLevel ? event.level : event.priority).emplace(header.before, header.after);
    }
    for (auto serial = mNotes.begin(); serial != mNotes.begin() + header.numNotes; ++serial)
    {
        auto const& noted = mNotes[serial];
        if (header.kind != KvCacheEventKind::kStored)
        {
            event.names.push_back(noted.name);
        }
        else if (noted.block != kNoBlock)
        {
            if (event.stored.empty())
            {
                describePlace(noted.block, event);
            }
            describe(noted.block, event);
            toldOf(noted.block).announced = true;
        }
    }
    return event;
}

std::vector<KvCacheEvent> KvCacheEventLog::take(std::size_t most)
{
    std::vector<KvCacheEvent> taken;
    while (mEvents.begin() != mFlushed && taken.size() < most)
    {
        if (!mEvents.front().isVoid())
        {
            taken.push_back(describeOldest());
        }
        popOldest();
    }
    return taken;
}

} // namespace tensorrt_llm::batch_manager
