// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/radixBlockTree.h"

#include "checks.h"

#include <algorithm>
#include <string>

namespace tensorrt_llm::batch_manager
{

RadixBlockTree::RadixBlockTree(BlockStore& store, HashFunction hash)
    : mStore{store}
    , mHasher{hash}
    , mTable{store.numBlocks()}
    , mFirstTokens{store.numBlocks()}
{
}

NodeId RadixBlockTree::acquireRoot(ReuseScope const& scope, BlockHash const& hash)
{
    if (auto const root = findRoot(scope, hash))
    {
        shareRoot(*root);
        return *root;
    }
    if (mFreeRoots.empty())
    {
        mRoots.emplace_back();
        if (mFreeRoots.capacity() < mRoots.size())
        {
            mFreeRoots.reserve(2 * mRoots.size()); // so that giving a root back cannot fail
        }
        mFreeRoots.push_back(static_cast<std::int32_t>(mRoots.size()) - 1);
    }
    auto const index = mFreeRoots.back();
    mRoots[static_cast<std::size_t>(index)] = {scope, hash, kNoBlock, 0, 1};
    mRootsByHash.emplace(hash.low, index);
    mFreeRoots.pop_back();
    return ~index;
}

void RadixBlockTree::shareRoot(NodeId root)
{
    ++mRoots[static_cast<std::size_t>(~root)].users;
}

void RadixBlockTree::releaseRoot(NodeId root)
{
    auto& users = mRoots[static_cast<std::size_t>(~root)].users;
    if (users == 0)
    {
        throw InternalStateError("root " + std::to_string(~root) + " released at 0 users");
    }
    --users;
    dropRootIfUnused(root);
}

std::optional<NodeId> RadixBlockTree::findRoot(ReuseScope const& scope, BlockHash const& hash) const
{
    auto const [first, last] = mRootsByHash.equal_range(hash.low);
    auto const found = std::find_if(
        first, last, [&](auto const& entry) { return mRoots[static_cast<std::size_t>(entry.second)].scope == scope; });
    return found == last ? std::nullopt : std::optional<NodeId>{~found->second};
}

std::vector<NodeId> RadixBlockTree::roots() const
{
    std::vector<NodeId> found;
    for (auto const& [hash, index] : mRootsByHash)
    {
        found.push_back(~index);
    }
    return found;
}

void RadixBlockTree::dropRootIfUnused(NodeId id)
{
    auto const index = ~id;
    auto const& root = mRoots[static_cast<std::size_t>(index)];
    if (root.users != 0 || root.numChildren != 0)
    {
        return;
    }
    auto const [first, last] = mRootsByHash.equal_range(root.hash.low);
    mRootsByHash.erase(std::find_if(first, last, [&](auto const& entry) { return entry.second == index; }));
    mFreeRoots.push_back(index);
}

BlockHash RadixBlockTree::hashOf(NodeId parent, BlockKeyView const& key)
{
    return mHasher.hashBlock(hashOfNode(parent), key);
}

void RadixBlockTree::prefetch(PromptKeys const& keys, std::size_t first, std::size_t end) const
{
    for (auto key = first; key < end; ++key)
    {
        mTable.prefetch(keys.hashOf(key).low);
    }
    for (auto key = first; key < end; ++key)
    {
        if (auto const block = mTable.peek(keys.hashOf(key).low); block != kNoBlock)
        {
            mStore.prefetchRecord(block);
            mStore.prefetchKey(block, keys.hasMedia());
        }
    }
}

BlockId RadixBlockTree::findAmongSiblings(NodeId parent, BlockKeyView const& key, BlockHash const& hash) const
{
    return mTable.find(hash.low,
        [&](BlockId block)
        {
            auto const& record = mStore[block];
            return record.hash == hash && record.parent == parent && mStore.hasKey(block, key);
        });
}

bool RadixBlockTree::hasTail(NodeId parent, BlockKeyView const& key, BlockHash const& hash) const
{
    auto const isEqual = [&](BlockId block)
    {
        return mStore[block].parent == parent && mStore[block].hash == hash
               && mStore.numTokens(block) == key.tokens.size() && mStore[block].numSpans == key.media.size()
               && static_cast<std::size_t>(mStore.commonTokens(block, key)) == key.tokens.size();
    };
    auto const child = firstChildOf(parent);
    return findNeedsHash(parent) ? mTable.find(hash.low, isEqual) != kNoBlock : child != kNoBlock && isEqual(child);
}

PartialMatch RadixBlockTree::findPartial(NodeId parent, BlockKeyView const& key)
{
    PartialMatch best;
    auto const numChildren = numChildrenOf(parent);
    if (key.tokens.empty() || numChildren == 0)
    {
        return best;
    }
    auto const token = key.tokens[0];
    auto candidate = numChildren == 1 ? firstChildOf(parent) : findGroup(parent, token, groupHash(parent, token));
    for (int looked = 0; candidate != kNoBlock && looked < kMaxPartialCandidates; ++looked)
    {
        if (firstTokenOf(candidate) != token)
        {
            break;
        }
        auto const common = mStore.commonTokens(candidate, key);
        if (common > best.numTokens)
        {
            best = {candidate, common};
        }
        candidate = mStore[candidate].nextSibling;
    }
    return best;
}

PartialMatch RadixBlockTree::findNearest(NodeId parent, BlockKeyView const& key)
{
    auto const best = findPartial(parent, key);
    if (best.block != kNoBlock || numChildrenOf(parent) == 0)
    {
        return best;
    }
    auto const token = key.tokens[0];
    auto const sameToken = numChildrenOf(parent) == 1 ? kNoBlock : findGroup(parent, token, groupHash(parent, token));
    return {sameToken == kNoBlock ? firstChildOf(parent) : sameToken, 0};
}

BlockId RadixBlockTree::findGroup(NodeId parent, TokenId token, std::uint64_t hash) const
{
    return mFirstTokens.find(
        hash, [&](BlockId block) { return mStore[block].parent == parent && firstTokenOf(block) == token; });
}

void RadixBlockTree::index(BlockId block, std::uint64_t hash)
{
    mFirstTokens.insert(hash, block);
    mStore[block].indexed = true;
    ++mNumIndexed;
}

void RadixBlockTree::enter(BlockId block)
{
    mTable.insert(mStore[block].hash.low, block);
    mStore[block].hashed = true;
    ++mNumHashed;
}

void RadixBlockTree::linkChild(BlockId block, NodeId parent)
{
    auto& record = mStore[block];
    auto& firstChild = firstChildRef(parent);
    auto following = firstChild;
    if (following != kNoBlock)
    {
        auto const token = firstTokenOf(block);
        auto const hash = groupHash(parent, token);
        if (numChildrenRef(parent) == 1 && !mStore[following].indexed)
        {
            index(following, groupHash(parent, firstTokenOf(following)));
        }
        if (numChildrenRef(parent) == 1 && !mStore[following].hashed)
        {
            enter(following);
        }
        enter(block);
        if (auto const head = findGroup(parent, token, hash); head != kNoBlock)
        {
            mFirstTokens.replace(hash, head, block);
            mStore[head].indexed = false;
            record.indexed = true;
            following = head;
        }
        else
        {
            index(block, hash);
        }
    }
    record.nextSibling = following;
    record.previousSibling = following == kNoBlock ? kNoBlock : mStore[following].previousSibling;
    (record.previousSibling == kNoBlock ? firstChild : mStore[record.previousSibling].nextSibling) = block;
    if (following != kNoBlock)
    {
        mStore[following].previousSibling = block;
    }
    ++numChildrenRef(parent);
}

void RadixBlockTree::unlinkChild(BlockId block)
{
    auto& record = mStore[block];
    auto const parent = record.parent;
    auto const following = record.nextSibling;
    if (record.indexed)
    {
        auto const token = firstTokenOf(block);
        auto const hash = groupHash(parent, token);
        if (following != kNoBlock && firstTokenOf(following) == token)
        {
            mFirstTokens.replace(hash, block, following);
            mStore[following].indexed = true;
        }
        else
        {
            mFirstTokens.erase(hash, block);
            --mNumIndexed;
        }
        record.indexed = false;
    }
    (record.previousSibling == kNoBlock ? firstChildRef(parent) : mStore[record.previousSibling].nextSibling) =
        following;
    if (following != kNoBlock)
    {
        mStore[following].previousSibling = record.previousSibling;
    }
    record.nextSibling = kNoBlock;
    record.previousSibling = kNoBlock;
    --numChildrenRef(parent);
}

void RadixBlockTree::insert(BlockId block, NodeId parent)
{
    if (contains(block) || (parent >= 0 && !contains(parent)))
    {
        throw InternalStateError("block " + std::to_string(block) + " below " + std::to_string(parent)
                                 + ": the block must be outside the tree and its parent inside");
    }
    auto& record = mStore[block];
    record.parent = parent;
    record.present = true;
    linkChild(block, parent);
    ++mSize;
}

void RadixBlockTree::erase(BlockId block)
{
    if (!contains(block) || !isLeaf(block))
    {
        throw InternalStateError("block " + std::to_string(block) + " with " + std::to_string(mStore[block].numChildren)
                                 + " children, expected a leaf of the tree");
    }
    auto const parent = parentOf(block);
    if (mStore[block].hashed)
    {
        mTable.erase(mStore[block].hash.low, block);
        mStore[block].hashed = false;
        --mNumHashed;
    }
    unlinkChild(block);
    mStore[block].present = false;
    --mSize;
    if (parent < 0)
    {
        dropRootIfUnused(parent);
    }
}

void RadixBlockTree::clear()
{
    for (BlockId block = 0; block < mStore.numBlocks(); ++block)
    {
        auto& record = mStore[block];
        record.present = false;
        record.indexed = false;
        record.hashed = false;
        record.firstChild = kNoBlock;
        record.nextSibling = kNoBlock;
        record.previousSibling = kNoBlock;
        record.numChildren = 0;
    }
    mTable.clear();
    mFirstTokens.clear();
    mRoots.clear();
    mFreeRoots.clear();
    mRootsByHash.clear();
    mSize = 0;
    mNumHashed = 0;
    mNumIndexed = 0;
}

BlockHash const& RadixBlockTree::hashOfNode(NodeId node) const
{
    return node < 0 ? mRoots[static_cast<std::size_t>(~node)].hash : mStore[node].hash;
}

BlockId& RadixBlockTree::firstChildRef(NodeId node)
{
    return node < 0 ? mRoots[static_cast<std::size_t>(~node)].firstChild : mStore[node].firstChild;
}

std::int32_t& RadixBlockTree::numChildrenRef(NodeId node)
{
    return node < 0 ? mRoots[static_cast<std::size_t>(~node)].numChildren : mStore[node].numChildren;
}

void RadixBlockTree::checkChildren(NodeId parent, BlockId firstChild, std::int32_t numChildren) const
{
    std::int32_t counted = 0;
    auto previous = kNoBlock;
    for (auto child = firstChild; child != kNoBlock; child = mStore[child].nextSibling)
    {
        auto const name = "block " + std::to_string(child);
        expectEqual("parent of " + name, mStore[child].parent, parent);
        expectEqual("presence of " + name, contains(child), 1);
        expectEqual("sibling before " + name, mStore[child].previousSibling, previous);
        auto const startsGroup = previous == kNoBlock || firstTokenOf(previous) != firstTokenOf(child);
        expectEqual("table entry of " + name, mStore[child].hashed, numChildren > 1 || mStore[child].hashed);
        if (numChildren > 1 || mStore[child].indexed)
        {
            expectEqual("index entry of " + name, mStore[child].indexed, startsGroup);
        }
        previous = child;
        if (++counted > numChildren)
        {
            break;
        }
    }
    expectEqual("children of node " + std::to_string(parent), counted, numChildren);
}

void RadixBlockTree::checkIntegrity() const
{
    mStore.checkIntegrity();
    BlockId present = 0;
    BlockId hashed = 0;
    BlockId indexed = 0;
    std::vector<MediaSpan> spans;
    for (BlockId block = 0; block < mStore.numBlocks(); ++block)
    {
        auto const& record = mStore[block];
        checkChildren(block, record.firstChild, record.numChildren);
        hashed += record.hashed ? 1 : 0;
        indexed += record.indexed ? 1 : 0;
        if (!contains(block))
        {
            expectEqual("children of absent block " + std::to_string(block), record.numChildren, 0);
            continue;
        }
        ++present;
        auto const isWhole = mStore.numTokens(block) == static_cast<std::size_t>(mStore.tokensPerBlock());
        expectEqual("block found for the key of block " + std::to_string(block),
            find(record.parent, mStore.key(block, spans), record.hash), isWhole ? block : kNoBlock);
        expectEqual("children of incomplete block " + std::to_string(block), isWhole ? 0 : record.numChildren, 0);
        expectEqual("parent of block " + std::to_string(block) + " in the tree",
            record.parent < 0 ? static_cast<std::size_t>(~record.parent) < mRoots.size() : contains(record.parent), 1);
    }
    std::vector<bool> used(mRoots.size(), true);
    for (auto const root : mFreeRoots)
    {
        used.at(static_cast<std::size_t>(root)) = false;
    }
    for (std::size_t root = 0; root < mRoots.size(); ++root)
    {
        if (used[root])
        {
            checkChildren(~static_cast<NodeId>(root), mRoots[root].firstChild, mRoots[root].numChildren);
        }
    }
    expectEqual("blocks in the tree", present, mSize);
    expectEqual("blocks in the table", hashed, mNumHashed);
    expectEqual("table entries", mTable.count(), mNumHashed);
    expectEqual("blocks in the index of first tokens", indexed, mNumIndexed);
    expectEqual("index entries", mFirstTokens.count(), mNumIndexed);
    expectEqual("roots by hash", static_cast<std::int64_t>(mRootsByHash.size() + mFreeRoots.size()),
        static_cast<std::int64_t>(mRoots.size()));
}

} // namespace tensorrt_llm::batch_manager
