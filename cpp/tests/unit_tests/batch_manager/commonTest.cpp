// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/common.h"

#include <boost/test/unit_test.hpp>

#include <type_traits>

using namespace tensorrt_llm::batch_manager;

BOOST_AUTO_TEST_CASE(viewReadsTheOwnersValues)
{
    std::vector<TokenId> const tokens{3, 1, 4, 1, 5};
    ArrayView<TokenId> const view{tokens};
    BOOST_TEST(view.size() == 5u);
    BOOST_TEST(view.data() == tokens.data());
    BOOST_TEST(view[2] == 4);

    auto const part = view.slice(1, 3);
    BOOST_CHECK_EQUAL_COLLECTIONS(part.begin(), part.end(), tokens.begin() + 1, tokens.begin() + 4);
    BOOST_TEST(view.slice(5, 0).empty());
    BOOST_TEST(ArrayView<TokenId>{}.empty());
}

BOOST_AUTO_TEST_CASE(errorsFormTheDocumentedTree)
{
    BOOST_TEST((std::is_base_of_v<KvCacheError, InvalidArgumentError>));
    BOOST_TEST((std::is_base_of_v<InvalidArgumentError, InvalidMediaRunsError>));
    BOOST_TEST((std::is_base_of_v<KvCacheError, CapacityExceededError>));
    BOOST_TEST((std::is_base_of_v<KvCacheError, UnknownSequenceError>));
    BOOST_TEST((std::is_base_of_v<KvCacheError, InternalStateError>));
    BOOST_TEST((!std::is_base_of_v<InvalidArgumentError, CapacityExceededError>));
}
