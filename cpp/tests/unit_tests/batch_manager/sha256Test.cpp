// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/sha256.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace tensorrt_llm::batch_manager;

namespace
{

std::string hash(std::string const& message, bool portable)
{
    Sha256 sha{portable};
    sha.update(message.data(), message.size());
    std::string text;
    for (auto const byte : sha.finish())
    {
        constexpr char const* kDigits = "0123456789abcdef";
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

} // namespace

BOOST_AUTO_TEST_CASE(theStandardsExamples)
{
    for (auto const portable : {true, false})
    {
        BOOST_TEST(hash("", portable) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        BOOST_TEST(hash("abc", portable) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        BOOST_TEST(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", portable)
                   == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        BOOST_TEST(hash(std::string(1000000, 'a'), portable)
                   == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
}

BOOST_AUTO_TEST_CASE(piecesAndKindsOfCodeAgree)
{
    std::mt19937 random{9};
    for (int round = 0; round < 500; ++round)
    {
        std::vector<std::uint8_t> message(random() % 300);
        std::generate(message.begin(), message.end(), [&] { return static_cast<std::uint8_t>(random()); });
        Sha256 whole{true};
        whole.update(message.data(), message.size());
        Sha256 pieces;
        for (std::size_t begin = 0; begin < message.size();)
        {
            auto const size = std::min<std::size_t>(random() % 90, message.size() - begin);
            pieces.update(message.data() + begin, size);
            begin += size;
        }
        BOOST_REQUIRE((whole.finish() == pieces.finish()));
    }
}
