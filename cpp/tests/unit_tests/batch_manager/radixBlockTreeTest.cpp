// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/radixBlockTree.h"

#include "testHelpers.h"

#include <boost/test/unit_test.hpp>

#include <map>
#include <random>
#include <tuple>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

//! A tree with the store that it works on.
struct Forest
{
    Forest(BlockId numBlocks, std::int32_t tokensPerBlock, HashFunction hash = &xxh3Hash)
        : store{numBlocks, tokensPerBlock}
        , tree{store, hash}
    {
    }

    BlockStore store;
    RadixBlockTree tree;
};

BlockId findIn(RadixBlockTree& tree, NodeId parent, BlockKeyView const& key)
{
    return tree.find(parent, key, tree.hashOf(parent, key));
}

void insertInto(Forest& forest, BlockId block, NodeId parent, BlockKeyView const& key)
{
    if (!forest.tree.contains(block))
    {
        forest.store.setKey(block, key);
        forest.store[block].hash = forest.tree.hashOf(parent, key);
    }
    forest.tree.insert(block, parent);
}

HashFunction const kHashes[] = {&xxh3Hash, &crowdedHash, &constantHash};

} // namespace

BOOST_AUTO_TEST_CASE(aHashIsNeededOnlyWhereThereIsAChoice)
{
    Forest forest{4, 4};
    auto& tree = forest.tree;
    auto const root = tree.acquireRoot({});
    auto const one = range(1, 4);
    auto const two = range(2, 4);
    BlockHash const wrong{1, 2};
    BOOST_TEST(!tree.findNeedsHash(root));
    BOOST_TEST(tree.find(root, {one, {}}, wrong) == kNoBlock);
    insertInto(forest, 0, root, {one, {}});
    insertInto(forest, 1, 0, {two, {}});
    BOOST_TEST(!tree.findNeedsHash(root));
    BOOST_TEST(tree.find(root, {one, {}}, wrong) == 0);
    BOOST_TEST(tree.find(0, {two, {}}, wrong) == 1);
    BOOST_TEST(tree.find(root, {two, {}}, wrong) == kNoBlock);
    // A second child: both are told apart by their hashes from here on, also when it is gone again and comes back.
    for (int round = 0; round < 2; ++round)
    {
        insertInto(forest, 2, root, {two, {}});
        BOOST_TEST(tree.findNeedsHash(root));
        BOOST_TEST(findIn(tree, root, {one, {}}) == 0);
        BOOST_TEST(findIn(tree, root, {two, {}}) == 2);
        BOOST_TEST(tree.find(root, {one, {}}, wrong) == kNoBlock);
        tree.checkIntegrity();
        tree.erase(2);
        BOOST_TEST(!tree.findNeedsHash(root));
        BOOST_TEST(tree.find(root, {one, {}}, wrong) == 0);
        tree.checkIntegrity();
    }
}

BOOST_AUTO_TEST_CASE(findsWhatWasInsertedBelowThatParentOnly)
{
    for (auto const hash : kHashes)
    {
        Forest forest{4, 4, hash};
        auto& tree = forest.tree;
        auto const root = tree.acquireRoot({});
        auto const one = range(1, 4);
        auto const two = range(2, 4);
        std::vector<MediaSpan> const media{{digest(1), 0, 0, 4}};
        insertInto(forest, 2, root, {one, {}});
        insertInto(forest, 0, 2, {one, {}});
        insertInto(forest, 1, root, {one, media});
        BOOST_TEST(findIn(tree, root, {one, {}}) == 2);
        BOOST_TEST(findIn(tree, 2, {one, {}}) == 0);
        BOOST_TEST(findIn(tree, root, {one, media}) == 1);
        BOOST_TEST(findIn(tree, 0, {one, {}}) == kNoBlock);
        BOOST_TEST(findIn(tree, root, {two, {}}) == kNoBlock);
        BOOST_TEST(findIn(tree, 2, {one, media}) == kNoBlock);
        BOOST_TEST(tree.size() == 3);
        tree.checkIntegrity();
    }
}

BOOST_AUTO_TEST_CASE(rootsAreToldApartByTheWholeScope)
{
    for (auto const hash : kHashes)
    {
        Forest forest{2, 2, hash};
        auto& tree = forest.tree;
        auto const plain = tree.acquireRoot({});
        auto const salted = tree.acquireRoot({"salt", std::nullopt});
        BOOST_TEST(plain != salted);
        BOOST_TEST(tree.acquireRoot({}) == plain);
        auto const tokens = range(0, 2);
        insertInto(forest, 0, plain, {tokens, {}});
        BOOST_TEST(findIn(tree, salted, {tokens, {}}) == kNoBlock);
        BOOST_TEST((tree.findRoot({"salt", std::nullopt}) == std::optional<NodeId>{salted}));
        BOOST_TEST((tree.findRoot({"salu", std::nullopt}) == std::nullopt));
    }
}

BOOST_AUTO_TEST_CASE(aRootLivesWhileItHasUsersOrChildren)
{
    Forest forest{2, 2};
    auto& tree = forest.tree;
    auto const root = tree.acquireRoot({"a", std::nullopt});
    auto const tokens = range(0, 2);
    insertInto(forest, 1, root, {tokens, {}});
    tree.releaseRoot(root);
    BOOST_TEST((tree.findRoot({"a", std::nullopt}) == std::optional<NodeId>{root}));
    BOOST_CHECK_THROW(tree.releaseRoot(root), InternalStateError);
    tree.erase(1);
    BOOST_TEST((tree.findRoot({"a", std::nullopt}) == std::nullopt));
    // Its place is taken by the next scope, and the old name finds nothing there.
    auto const other = tree.acquireRoot({"b", std::nullopt});
    BOOST_TEST(other == root);
    BOOST_TEST(findIn(tree, other, {tokens, {}}) == kNoBlock);
    tree.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(manyRootsComeAndGo)
{
    Forest forest{1, 2};
    auto& tree = forest.tree;
    std::vector<NodeId> roots;
    for (int index = 0; index < 100; ++index)
    {
        roots.push_back(tree.acquireRoot({std::to_string(index), std::nullopt}));
    }
    for (auto const root : roots)
    {
        tree.releaseRoot(root);
    }
    tree.checkIntegrity();
    BOOST_TEST((tree.findRoot({"42", std::nullopt}) == std::nullopt));
}

BOOST_AUTO_TEST_CASE(aPartialMatchIsTheLongestAmongTheNewestOfTheSameFirstToken)
{
    for (auto const hash : kHashes)
    {
        Forest forest{64, 4, hash};
        auto& tree = forest.tree;
        auto const root = tree.acquireRoot({});
        std::vector<TokenId> const wanted{1, 2, 3};
        BOOST_TEST(tree.findPartial(root, {wanted, {}}).numTokens == 0);
        insertInto(forest, 0, root, {std::vector<TokenId>{1, 2, 9, 9}, {}});
        BOOST_TEST(tree.findPartial(root, {wanted, {}}).block == 0); // an only child has no index entry
        BOOST_TEST(tree.findPartial(root, {wanted, {}}).numTokens == 2);
        insertInto(forest, 1, root, {std::vector<TokenId>{2, 2, 3, 4}, {}});
        insertInto(forest, 2, root, {std::vector<TokenId>{1, 9, 9, 9}, {}});
        BOOST_TEST(tree.findPartial(root, {wanted, {}}).block == 0);
        insertInto(forest, 3, root, {std::vector<TokenId>{1, 2, 3, 9}, {}});
        BOOST_TEST(tree.findPartial(root, {wanted, {}}).block == 3);
        BOOST_TEST(tree.findPartial(root, {wanted, {}}).numTokens == 3);
        std::vector<MediaSpan> const media{{digest(1), 0, 1, 2}};
        BOOST_TEST(tree.findPartial(root, {wanted, media}).numTokens == 1);
        BOOST_TEST(tree.findPartial(3, {wanted, {}}).numTokens == 0);
        tree.erase(3);
        BOOST_TEST(tree.findPartial(root, {wanted, {}}).block == 0);
        // Behind as many newer ones as are looked at, the best is not seen any more.
        for (BlockId block = 4; block < 4 + RadixBlockTree::kMaxPartialCandidates; ++block)
        {
            insertInto(forest, block, root, {std::vector<TokenId>{1, 8, block, 8}, {}});
            tree.checkIntegrity();
        }
        BOOST_TEST(tree.findPartial(root, {wanted, {}}).numTokens == 1);
    }
}

BOOST_AUTO_TEST_CASE(misuseThrowsAndChangesNothing)
{
    Forest forest{3, 2};
    auto& tree = forest.tree;
    auto const root = tree.acquireRoot({});
    auto const tokens = range(0, 2);
    insertInto(forest, 0, root, {tokens, {}});
    insertInto(forest, 1, 0, {tokens, {}});
    BOOST_CHECK_THROW(insertInto(forest, 0, root, {tokens, {}}), InternalStateError);
    BOOST_CHECK_THROW(tree.insert(0, 2), InternalStateError);
    BOOST_CHECK_THROW(tree.erase(0), InternalStateError);
    BOOST_CHECK_THROW(tree.erase(2), InternalStateError);
    BOOST_TEST(tree.size() == 2);
    tree.checkIntegrity();
    tree.erase(1);
    tree.erase(0);
    BOOST_TEST(tree.size() == 0);
    tree.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(clearForgetsBlocksAndRoots)
{
    Forest forest{2, 2};
    auto& tree = forest.tree;
    auto const root = tree.acquireRoot({"a", 1});
    auto const tokens = range(0, 2);
    insertInto(forest, 0, root, {tokens, {}});
    insertInto(forest, 1, 0, {tokens, {}});
    tree.clear();
    BOOST_TEST(tree.size() == 0);
    BOOST_TEST(!tree.contains(0));
    BOOST_TEST((tree.findRoot({"a", 1}) == std::nullopt));
    tree.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(randomInsertsAndErasesMatchAMap)
{
    using Key = std::tuple<NodeId, TokenId, std::uint8_t>;
    constexpr BlockId kBlocks = 24;
    for (auto const hash : kHashes)
    {
        std::mt19937 random{7};
        Forest forest{kBlocks, 2, hash};
        auto& tree = forest.tree;
        auto const root = tree.acquireRoot({});
        std::map<Key, BlockId> model;
        std::map<BlockId, Key> keys;
        for (int step = 0; step < 20000; ++step)
        {
            auto const block = static_cast<BlockId>(random() % kBlocks);
            if (auto const known = keys.find(block); known != keys.end())
            {
                if (tree.isLeaf(block))
                {
                    tree.erase(block);
                    model.erase(known->second);
                    keys.erase(known);
                }
                continue;
            }
            auto const anchor = static_cast<BlockId>(random() % kBlocks);
            auto const parent = tree.contains(anchor) ? NodeId{anchor} : root;
            auto const token = static_cast<TokenId>(random() % 3);
            auto const item = static_cast<std::uint8_t>(random() % 2);
            std::vector<TokenId> const tokens{token, token};
            std::vector<MediaSpan> media;
            if (item != 0)
            {
                media.push_back({digest(item), 0, 1, 1});
            }
            Key const key{parent, token, item};
            auto const expected = model.count(key) != 0 ? model[key] : kNoBlock;
            BOOST_REQUIRE(findIn(tree, parent, {tokens, media}) == expected);
            if (expected == kNoBlock)
            {
                insertInto(forest, block, parent, {tokens, media});
                model[key] = block;
                keys[block] = key;
            }
            if (step % 16 == 0)
            {
                tree.checkIntegrity();
            }
        }
        BOOST_TEST(tree.size() == static_cast<BlockId>(model.size()));
    }
}
