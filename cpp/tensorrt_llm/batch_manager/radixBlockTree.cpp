// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/radixBlockTree.h"

#include <algorithm>
#include <string>

namespace tensorrt_llm::batch_manager
{

namespace
{

constexpr std::uint64_t kTagMask = 0xffffffff00000000ULL;

std::uint64_t makeSlot(BlockHash const& hash, BlockId block)
{
    return (hash.high & kTagMask) | (static_cast<std::uint64_t>(block) + 1);
}

BlockId blockOf(std::uint64_t slot)
{
    return static_cast<BlockId>(slot & ~kTagMask) - 1;
}

//! At least twice the blocks, so that a probe ends soon.
std::size_t tableSize(BlockId numBlocks)
{
    std::size_t size = 2;
    while (size < 2 * static_cast<std::size_t>(numBlocks))
    {
        size *= 2;
    }
    return size;
}

void expectEqual(std::string const& what, std::int64_t found, std::int64_t expected)
{
    if (found != expected)
    {
        throw InternalStateError(what + ": " + std::to_string(found) + ", expected " + std::to_string(expected));
    }
}

} // namespace

RadixBlockTree::RadixBlockTree(BlockId numBlocks, std::int32_t tokensPerBlock, HashFunction hash)
    : mTokensPerBlock{tokensPerBlock}
    , mHasher{hash}
    , mNodes(static_cast<std::size_t>(numBlocks))
    , mTokens(static_cast<std::size_t>(numBlocks) * static_cast<std::size_t>(tokensPerBlock))
    , mMedia(static_cast<std::size_t>(numBlocks))
    , mTable(tableSize(numBlocks), 0)
    , mMask{mTable.size() - 1}
{
}

NodeId RadixBlockTree::acquireRoot(ReuseScope const& scope)
{
    auto const hash = mHasher.hashScope(scope);
    if (auto const root = findRoot(scope, hash))
    {
        ++mRoots[static_cast<std::size_t>(~*root)].users;
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
    mRoots[static_cast<std::size_t>(index)] = {scope, hash, 0, 1};
    mRootsByHash.emplace(hash.low, index);
    mFreeRoots.pop_back();
    return ~index;
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

std::optional<NodeId> RadixBlockTree::findRoot(ReuseScope const& scope)
{
    return findRoot(scope, mHasher.hashScope(scope));
}

std::optional<NodeId> RadixBlockTree::findRoot(ReuseScope const& scope, BlockHash const& hash) const
{
    auto const [first, last] = mRootsByHash.equal_range(hash.low);
    auto const found = std::find_if(
        first, last, [&](auto const& entry) { return mRoots[static_cast<std::size_t>(entry.second)].scope == scope; });
    return found == last ? std::nullopt : std::optional<NodeId>{~found->second};
}

void RadixBlockTree::dropRootIfUnused(NodeId id)
{
    auto const index = ~id;
    auto const& root = mRoots[static_cast<std::size_t>(index)];
    if (root.users != 0 || root.children != 0)
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

BlockId RadixBlockTree::find(NodeId parent, BlockKeyView const& key, BlockHash const& hash) const
{
    for (auto position = home(hash); mTable[position] != 0; position = (position + 1) & mMask)
    {
        auto const slot = mTable[position];
        if (((slot ^ hash.high) & kTagMask) != 0)
        {
            continue;
        }
        auto const block = blockOf(slot);
        if (node(block).hash == hash && node(block).parent == parent && keyOf(block) == key)
        {
            return block;
        }
    }
    return kNoBlock;
}

void RadixBlockTree::insert(BlockId block, NodeId parent, BlockKeyView const& key, BlockHash const& hash)
{
    expectEqual(
        "tokens of block " + std::to_string(block), static_cast<std::int64_t>(key.tokens.size()), mTokensPerBlock);
    if (contains(block) || (parent >= 0 && !contains(parent)))
    {
        throw InternalStateError("block " + std::to_string(block) + " below " + std::to_string(parent)
                                 + ": the block must be outside the tree and its parent inside");
    }
    mMedia[static_cast<std::size_t>(block)].assign(key.media.begin(), key.media.end());
    std::copy(key.tokens.begin(), key.tokens.end(),
        mTokens.begin() + static_cast<std::ptrdiff_t>(block) * static_cast<std::ptrdiff_t>(mTokensPerBlock));
    node(block) = {hash, parent, 0, true};
    tableInsert(block, hash);
    ++childrenOf(parent);
    ++mSize;
}

void RadixBlockTree::erase(BlockId block)
{
    if (!contains(block) || !isLeaf(block))
    {
        throw InternalStateError("block " + std::to_string(block) + " with " + std::to_string(node(block).children)
                                 + " children, expected a leaf of the tree");
    }
    auto const parent = node(block).parent;
    tableErase(block, node(block).hash);
    mMedia[static_cast<std::size_t>(block)].clear();
    node(block) = {};
    --childrenOf(parent);
    --mSize;
    if (parent < 0)
    {
        dropRootIfUnused(parent);
    }
}

void RadixBlockTree::clear()
{
    std::fill(mNodes.begin(), mNodes.end(), Node{});
    std::fill(mTable.begin(), mTable.end(), Slot{0});
    for (auto& media : mMedia)
    {
        media.clear();
    }
    mRoots.clear();
    mFreeRoots.clear();
    mRootsByHash.clear();
    mSize = 0;
}

BlockKeyView RadixBlockTree::keyOf(BlockId block) const
{
    auto const index = static_cast<std::size_t>(block);
    auto const size = static_cast<std::size_t>(mTokensPerBlock);
    return {{mTokens.data() + index * size, size}, mMedia[index]};
}

BlockHash const& RadixBlockTree::hashOfNode(NodeId id) const
{
    return id < 0 ? mRoots[static_cast<std::size_t>(~id)].hash : node(id).hash;
}

std::int32_t& RadixBlockTree::childrenOf(NodeId id)
{
    return id < 0 ? mRoots[static_cast<std::size_t>(~id)].children : node(id).children;
}

std::size_t RadixBlockTree::home(BlockHash const& hash) const
{
    return static_cast<std::size_t>(hash.low) & mMask;
}

void RadixBlockTree::tableInsert(BlockId block, BlockHash const& hash)
{
    auto position = home(hash);
    while (mTable[position] != 0)
    {
        position = (position + 1) & mMask;
    }
    mTable[position] = makeSlot(hash, block);
}

void RadixBlockTree::tableErase(BlockId block, BlockHash const& hash)
{
    auto const slot = makeSlot(hash, block);
    auto hole = home(hash);
    while (mTable[hole] != slot)
    {
        hole = (hole + 1) & mMask;
    }
    // Entries behind the hole move up if their home does not lie between the hole and them, so no tombstone is needed.
    for (auto position = (hole + 1) & mMask; mTable[position] != 0; position = (position + 1) & mMask)
    {
        auto const entryHome = home(node(blockOf(mTable[position])).hash);
        if (((position - entryHome) & mMask) >= ((position - hole) & mMask))
        {
            mTable[hole] = mTable[position];
            hole = position;
        }
    }
    mTable[hole] = 0;
}

void RadixBlockTree::checkIntegrity() const
{
    std::vector<std::int32_t> children(mNodes.size(), 0);
    std::vector<std::int32_t> rootChildren(mRoots.size(), 0);
    BlockId present = 0;
    for (BlockId block = 0; block < static_cast<BlockId>(mNodes.size()); ++block)
    {
        if (!contains(block))
        {
            expectEqual("children of absent block " + std::to_string(block), node(block).children, 0);
            continue;
        }
        ++present;
        auto const parent = parentOf(block);
        expectEqual("block found for the key of block " + std::to_string(block),
            find(parent, keyOf(block), node(block).hash), block);
        ++(parent < 0 ? rootChildren.at(static_cast<std::size_t>(~parent))
                      : children.at(static_cast<std::size_t>(parent)));
    }
    expectEqual("blocks in the tree", present, mSize);
    expectEqual("table entries",
        static_cast<std::int64_t>(mTable.size()) - std::count(mTable.begin(), mTable.end(), Slot{0}), mSize);
    for (std::size_t block = 0; block < mNodes.size(); ++block)
    {
        expectEqual("children of block " + std::to_string(block), mNodes[block].children, children[block]);
        expectEqual(
            "presence of parent block " + std::to_string(block), mNodes[block].present || children[block] == 0, 1);
    }
    for (std::size_t root = 0; root < mRoots.size(); ++root)
    {
        expectEqual("children of root " + std::to_string(root), mRoots[root].children, rootChildren[root]);
    }
    expectEqual("roots by hash", static_cast<std::int64_t>(mRootsByHash.size() + mFreeRoots.size()),
        static_cast<std::int64_t>(mRoots.size()));
}

} // namespace tensorrt_llm::batch_manager
