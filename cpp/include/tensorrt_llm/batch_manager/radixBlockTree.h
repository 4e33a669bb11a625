// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file radixBlockTree.h
//! Which block holds which key: a prefix tree over blocks, found through one open-addressing hash table.
//!
//! - A node is a block, named by its id; a child knows its parent node, a parent counts its children. A first block's
//!   parent is a root, one for each ReuseScope that somebody uses; roots are told apart by the whole scope.
//! - A block is in the tree or not (`contains`). `insert` needs its parent in the tree, `erase` needs a leaf, so no
//! node
//!   is ever there without its parent.
//! - find, insert and erase are O(1) for a block of a given size. Storage for all blocks is taken at construction.
//! - One thread at a time. The tree knows neither reference counts nor lists.

#pragma once

#include "tensorrt_llm/batch_manager/blockKey.h"
#include "tensorrt_llm/batch_manager/common.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tensorrt_llm::batch_manager
{

//! A node that can be a parent: a block id if not negative, otherwise the bitwise complement of a root's index.
using NodeId = std::int32_t;

class RadixBlockTree
{
public:
    RadixBlockTree(BlockId numBlocks, std::int32_t tokensPerBlock, HashFunction hash = &xxh3Hash);

    //! The root of \p scope, made if there is none, with one more user. Give it back with releaseRoot.
    [[nodiscard]] NodeId acquireRoot(ReuseScope const& scope);
    void releaseRoot(NodeId root);

    //! The root of \p scope if there is one.
    [[nodiscard]] std::optional<NodeId> findRoot(ReuseScope const& scope);

    //! The hash of \p key below \p parent, which must be a root in use or a block in the tree.
    [[nodiscard]] BlockHash hashOf(NodeId parent, BlockKeyView const& key);

    //! The block below \p parent whose key equals \p key, or kNoBlock. \p hash is what hashOf gave for the same two.
    [[nodiscard]] BlockId find(NodeId parent, BlockKeyView const& key, BlockHash const& hash) const;

    //! Puts \p block below \p parent and copies \p key. Requires that find gives kNoBlock for it.
    //! \throws InternalStateError if the block is in the tree, the parent is not, or the key is not one whole block.
    void insert(BlockId block, NodeId parent, BlockKeyView const& key, BlockHash const& hash);

    //! Takes out a leaf. \throws InternalStateError if the block is not in the tree or has children.
    void erase(BlockId block);

    //! Takes out every block and every root; root ids given before are void.
    void clear();

    [[nodiscard]] bool contains(BlockId block) const
    {
        return node(block).present;
    }

    [[nodiscard]] bool isLeaf(BlockId block) const
    {
        return node(block).children == 0;
    }

    [[nodiscard]] NodeId parentOf(BlockId block) const
    {
        return node(block).parent;
    }

    //! Blocks in the tree.
    [[nodiscard]] BlockId size() const
    {
        return mSize;
    }

    //! Recounts everything. \throws InternalStateError with what was found and what was expected.
    void checkIntegrity() const;

private:
    struct Node
    {
        BlockHash hash{0, 0};
        NodeId parent{0};
        std::int32_t children{0};
        bool present{false};
    };

    struct Root
    {
        ReuseScope scope;
        BlockHash hash{0, 0};
        std::int32_t children{0};
        std::int32_t users{0};
    };

    //! A table slot: 0 if empty, otherwise the hash's top half word over block id plus one.
    using Slot = std::uint64_t;

    [[nodiscard]] Node const& node(BlockId block) const
    {
        return mNodes[static_cast<std::size_t>(block)];
    }

    [[nodiscard]] Node& node(BlockId block)
    {
        return mNodes[static_cast<std::size_t>(block)];
    }

    [[nodiscard]] BlockKeyView keyOf(BlockId block) const;
    [[nodiscard]] BlockHash const& hashOfNode(NodeId id) const;
    [[nodiscard]] std::int32_t& childrenOf(NodeId id);
    [[nodiscard]] std::size_t home(BlockHash const& hash) const;
    [[nodiscard]] std::optional<NodeId> findRoot(ReuseScope const& scope, BlockHash const& hash) const;
    void dropRootIfUnused(NodeId root);
    void tableInsert(BlockId block, BlockHash const& hash);
    void tableErase(BlockId block, BlockHash const& hash);

    std::int32_t mTokensPerBlock;
    BlockKeyHasher mHasher;
    std::vector<Node> mNodes;
    std::vector<TokenId> mTokens; //!< tokensPerBlock a block, in block order
    std::vector<std::vector<MediaSpan>> mMedia;
    std::vector<Slot> mTable;
    std::size_t mMask;
    std::vector<Root> mRoots;
    std::vector<std::int32_t> mFreeRoots;
    std::unordered_multimap<std::uint64_t, std::int32_t> mRootsByHash;
    BlockId mSize{0};
};

} // namespace tensorrt_llm::batch_manager
