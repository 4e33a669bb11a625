// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file stridedPackTest.cpp
//! Every layout is compared with one memcpy an item.

#include "tensorrt_llm/common/stridedPack.h"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <numeric>
#include <random>

using tensorrt_llm::common::packStrided;
using tensorrt_llm::common::StridedAxis;

namespace
{

std::vector<std::byte> onePerItem(std::byte const* source, std::vector<StridedAxis> const& axes, std::size_t itemSize)
{
    std::vector<std::byte> result;
    auto const visit = [&](auto const& self, std::byte const* at, std::size_t axis) -> void
    {
        if (axis == axes.size())
        {
            result.insert(result.end(), at, at + itemSize);
            return;
        }
        for (std::int64_t index = 0; index < axes[axis].length; ++index)
        {
            self(self, at + index * axes[axis].step, axis + 1);
        }
    };
    visit(visit, source, 0);
    return result;
}

void check(std::byte const* source, std::vector<StridedAxis> const& axes, std::size_t itemSize)
{
    auto const expected = onePerItem(source, axes, itemSize);
    // A byte on each side tells of writes that go too far.
    std::vector<std::byte> packed(expected.size() + 2, std::byte{0xA5});
    packStrided(source, axes, itemSize, packed.data() + 1);
    BOOST_TEST(std::equal(expected.begin(), expected.end(), packed.begin() + 1));
    BOOST_TEST((packed.front() == std::byte{0xA5} && packed.back() == std::byte{0xA5}));
}

} // namespace

BOOST_AUTO_TEST_CASE(everyOrderOfAxesIsPacked)
{
    std::mt19937 random{5};
    std::vector<std::byte> memory(1 << 22);
    for (auto& byte : memory)
    {
        byte = static_cast<std::byte>(random());
    }
    for (std::size_t itemSize : {1, 2, 3, 4, 8, 16, 80})
    {
        for (int turn = 0; turn < 60; ++turn)
        {
            std::vector<StridedAxis> axes(1 + random() % 4);
            std::vector<std::size_t> order(axes.size());
            std::iota(order.begin(), order.end(), 0);
            std::shuffle(order.begin(), order.end(), random);
            std::int64_t step = static_cast<std::int64_t>(itemSize);
            std::int64_t before = 0;
            for (auto const axis : order)
            {
                auto const length = static_cast<std::int64_t>(1 + random() % (axes.size() > 2 ? 9 : 150));
                step *= 1 + random() % 8 / 6;
                auto const sign = random() % 4 == 0 ? -1 : 1;
                axes[axis] = {length, sign * step};
                before += sign < 0 ? (length - 1) * step : 0;
                step *= length;
            }
            if (step <= static_cast<std::int64_t>(memory.size()))
            {
                check(memory.data() + before, axes, itemSize);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(longRowsAndColumnsAreTurnedInPieces)
{
    std::vector<std::byte> memory(3000 * 40 * 4);
    for (std::size_t index = 0; index < memory.size(); ++index)
    {
        memory[index] = static_cast<std::byte>(index * 2654435761U >> 13);
    }
    check(memory.data(), {{3000, 4}, {40, 12000}}, 4);
    check(memory.data(), {{3001, 1}, {13, 9000}, {3, 3001}}, 1);
    check(memory.data(), {{2, 240000}, {1500, 2}, {40, 3000}}, 2);
}

BOOST_AUTO_TEST_CASE(singleItemsRepeatedItemsAndNone)
{
    std::vector<std::byte> const memory{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
    check(memory.data(), {}, 2);
    check(memory.data(), {{1, 99}, {1, -99}}, 4);
    check(memory.data(), {{5, 0}}, 1);
    check(memory.data(), {{3, 0}, {4, 1}}, 1);
    check(memory.data(), {{4, 1}, {3, 0}}, 1);
    check(memory.data(), {{3, 1}, {0, 1}}, 1);
}
