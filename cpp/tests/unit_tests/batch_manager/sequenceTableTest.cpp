// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/sequenceTable.h"

#include <boost/test/unit_test.hpp>

using namespace tensorrt_llm::batch_manager;

BOOST_AUTO_TEST_CASE(aSequenceStartsFreshWhateverHadItsMemory)
{
    SequenceTable table;
    auto& first = table.insert(7, 4);
    first.blocks = {1, 2, 3};
    first.numTokens = 9;
    first.root = -1;
    auto const* const memory = first.blocks.data();
    BOOST_TEST(table.find(7) == &first);
    BOOST_TEST((table.find(8) == nullptr));
    table.erase(7);
    BOOST_TEST((table.find(7) == nullptr));
    BOOST_TEST(table.size() == 0u);
    auto const& second = table.insert(8, 2);
    BOOST_TEST(second.blocks.empty());
    BOOST_TEST(second.numTokens == 0);
    BOOST_TEST(!second.root.has_value());
    BOOST_TEST(second.blocks.capacity() >= 2u);
    BOOST_TEST((second.blocks.data() == memory));
}

BOOST_AUTO_TEST_CASE(manyAtOnce)
{
    SequenceTable table;
    for (SequenceId id = 0; id < 100; ++id)
    {
        table.insert(id, 1).numTokens = id;
    }
    for (SequenceId id = 0; id < 100; id += 2)
    {
        table.erase(id);
    }
    BOOST_TEST(table.size() == 50u);
    for (SequenceId id = 1; id < 100; id += 2)
    {
        BOOST_TEST(table.find(id)->numTokens == id);
    }
}
