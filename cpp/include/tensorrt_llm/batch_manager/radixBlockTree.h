// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file radixBlockTree.h
//! Which block holds which key: a prefix tree over blocks.
//!
//! - A node is a block, named by its id; a child knows its parent node and its siblings, a parent its first child. A
//!   first block's parent is a root, one for each ReuseScope that somebody uses; roots are told apart by the whole
//!   scope.
//! - A block is in the tree or not (`contains`). `insert` needs its parent in the tree, `erase` needs a leaf, so no
//! node
//!   is ever there without its parent.
//! - A child with siblings is found through one open-addressing table of key hashes. An only child is compared at once:
//!   where prompts share a long prefix most blocks are only children, so most are found, put in and taken out without
//!   hashing anything and without a step into a table that fits no cache.
//! - Children that begin with the same token are neighbours among their siblings, the newest first, and the newest of
//!   them is entered in a second table under (parent, token), an only child again in none. So the children that may
//!   share a leading part with some tokens are found without looking at the others.
//! - find, insert and erase are O(1) for a block of a given size; findPartial looks at kMaxPartialCandidates children.
//! - One thread at a time. The tree knows neither holders nor lists; keys are in the store before they are inserted.

#pragma once

#include "tensorrt_llm/batch_manager/blockKey.h"
#include "tensorrt_llm/batch_manager/blockStore.h"
#include "tensorrt_llm/batch_manager/common.h"
#include "tensorrt_llm/batch_manager/slotTable.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tensorrt_llm::batch_manager
{

//! A child and how many of its leading tokens are meant.
struct PartialMatch
{
    BlockId block{kNoBlock};
    std::int32_t numTokens{0};
};

class RadixBlockTree
{
public:
    //! The children compared for a partial match: the newest of those that begin with the wanted token. A bound, so
    //! that a parent with a million such children costs no more than one with sixteen.
    static constexpr int kMaxPartialCandidates = 16;

    explicit RadixBlockTree(BlockStore& store, HashFunction hash = &xxh3Hash);

    //! The root of \p scope, made if there is none, with one more user. Give it back with releaseRoot.
    [[nodiscard]] NodeId acquireRoot(ReuseScope const& scope)
    {
        return acquireRoot(scope, hashOf(scope));
    }

    //! The same where hashOf(scope) is known.
    [[nodiscard]] NodeId acquireRoot(ReuseScope const& scope, BlockHash const& hash);

    void releaseRoot(NodeId root);

    //! One more user of a root in use.
    void shareRoot(NodeId root);

    //! The root of \p scope if there is one.
    [[nodiscard]] std::optional<NodeId> findRoot(ReuseScope const& scope)
    {
        return findRoot(scope, hashOf(scope));
    }

    //! The same where hashOf(scope) is known.
    [[nodiscard]] std::optional<NodeId> findRoot(ReuseScope const& scope, BlockHash const& hash) const;

    [[nodiscard]] ReuseScope const& scopeOf(NodeId root) const
    {
        return mRoots[static_cast<std::size_t>(~root)].scope;
    }

    //! The hash of the root that \p scope has or would have.
    [[nodiscard]] BlockHash hashOf(ReuseScope const& scope)
    {
        return mHasher.hashScope(scope);
    }

    //! The hash of \p key below \p parent, which must be a root in use or a block in the tree.
    [[nodiscard]] BlockHash hashOf(NodeId parent, BlockKeyView const& key);

    [[nodiscard]] BlockKeyHasher& hasher()
    {
        return mHasher;
    }

    [[nodiscard]] BlockHash const& hashOfNode(NodeId node) const;

    //! Brings closer what find will look at for keys \p first to \p end - 1, whose hashes are known.
    void prefetch(PromptKeys const& keys, std::size_t first, std::size_t end) const;

    //! Brings closer what erase will write for a block whose record is at hand.
    void prefetchErase(BlockId block) const
    {
        if (mStore[block].hashed)
        {
            mTable.prefetch(mStore[block].hash.low);
        }
    }

    //! Whether find needs the hash of a key below \p parent: not if there is one child or none.
    [[nodiscard]] bool findNeedsHash(NodeId parent) const
    {
        return numChildrenOf(parent) > 1;
    }

    //! The block below \p parent whose key equals \p key, or kNoBlock. \p hash is what hashOf gave for the same two; it
    //! is read only where findNeedsHash says so.
    [[nodiscard]] BlockId find(NodeId parent, BlockKeyView const& key, BlockHash const& hash) const
    {
        if (findNeedsHash(parent))
        {
            return findAmongSiblings(parent, key, hash);
        }
        auto const child = firstChildOf(parent);
        return child != kNoBlock && mStore.hasKey(child, key) ? child : kNoBlock;
    }

    //! Whether a child of \p parent has exactly the tokens and spans of \p key, of less than a block, and \p hash.
    [[nodiscard]] bool hasTail(NodeId parent, BlockKeyView const& key, BlockHash const& hash) const;

    //! The child of \p parent that shares the longest leading part with \p key, which may be shorter than a block.
    //! Nothing where not even the first token is shared.
    [[nodiscard]] PartialMatch findPartial(NodeId parent, BlockKeyView const& key);

    //! The same, but any child rather than nothing where none shares the first token. For tools.
    [[nodiscard]] PartialMatch findNearest(NodeId parent, BlockKeyView const& key);

    //! Puts \p block below \p parent; its key and hash are in the store. Requires that find gives kNoBlock for it.
    //! \throws InternalStateError if the block is in the tree or the parent is not.
    void insert(BlockId block, NodeId parent);

    //! Takes out a leaf. \throws InternalStateError if the block is not in the tree or has children.
    void erase(BlockId block);

    //! Takes out every block and every root; root ids given before are void.
    void clear();

    [[nodiscard]] bool contains(BlockId block) const
    {
        return mStore[block].present;
    }

    [[nodiscard]] bool isLeaf(BlockId block) const
    {
        return mStore[block].numChildren == 0;
    }

    [[nodiscard]] NodeId parentOf(BlockId block) const
    {
        return mStore[block].parent;
    }

    [[nodiscard]] BlockId firstChildOf(NodeId node) const
    {
        return node < 0 ? mRoots[static_cast<std::size_t>(~node)].firstChild : mStore[node].firstChild;
    }

    //! Roots in use, of any scope. For tools: takes memory in proportion.
    [[nodiscard]] std::vector<NodeId> roots() const;

    //! Blocks in the tree.
    [[nodiscard]] BlockId size() const
    {
        return mSize;
    }

    //! Recounts everything. \throws InternalStateError with what was found and what was expected.
    void checkIntegrity() const;

private:
    struct Root
    {
        ReuseScope scope;
        BlockHash hash{0, 0};
        BlockId firstChild{kNoBlock};
        std::int32_t numChildren{0};
        std::int32_t users{0};
    };

    [[nodiscard]] std::int32_t numChildrenOf(NodeId node) const
    {
        return node < 0 ? mRoots[static_cast<std::size_t>(~node)].numChildren : mStore[node].numChildren;
    }

    [[nodiscard]] BlockId findAmongSiblings(NodeId parent, BlockKeyView const& key, BlockHash const& hash) const;
    [[nodiscard]] BlockId& firstChildRef(NodeId node);
    [[nodiscard]] std::int32_t& numChildrenRef(NodeId node);
    void dropRootIfUnused(NodeId root);

    [[nodiscard]] TokenId firstTokenOf(BlockId block) const
    {
        return mStore.tokens(block)[0];
    }

    [[nodiscard]] std::uint64_t groupHash(NodeId parent, TokenId token)
    {
        return mHasher.hashFirstToken(hashOfNode(parent), token);
    }

    [[nodiscard]] BlockId findGroup(NodeId parent, TokenId token, std::uint64_t hash) const;
    void index(BlockId block, std::uint64_t hash);
    void enter(BlockId block);
    void linkChild(BlockId block, NodeId parent);
    void unlinkChild(BlockId block);
    void checkChildren(NodeId parent, BlockId firstChild, std::int32_t numChildren) const;

    BlockStore& mStore;
    BlockKeyHasher mHasher;
    SlotTable mTable;       //!< by key, those that have siblings or had some
    SlotTable mFirstTokens; //!< by parent and first token
    std::vector<Root> mRoots;
    std::vector<std::int32_t> mFreeRoots;
    std::unordered_multimap<std::uint64_t, std::int32_t> mRootsByHash;
    BlockId mSize{0};
    BlockId mNumHashed{0};
    BlockId mNumIndexed{0};
};

} // namespace tensorrt_llm::batch_manager
