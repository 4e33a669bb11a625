// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/common/stridedPack.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tensorrt_llm::common
{

namespace
{

//! Bytes written at a time: one cache line, so that no line is half written and fetched again.
constexpr std::size_t kLineBytes = 64;
//! Most bytes read along the dense axis at a time: enough that a page, once found, is used.
constexpr std::size_t kRunBytes = 1024;
//! Most items read along the dense axis at a time.
constexpr std::size_t kMaxRun = 256;

using Axes = std::vector<StridedAxis>;

//! Axes that say the same, as few as possible.
Axes simplified(Axes const& axes)
{
    Axes result;
    for (auto const& axis : axes)
    {
        if (axis.length == 1)
        {
            continue;
        }
        if (!result.empty() && result.back().step == axis.step * axis.length)
        {
            result.back() = {result.back().length * axis.length, axis.step};
        }
        else
        {
            result.push_back(axis);
        }
    }
    return result;
}

std::int64_t countOf(Axes const& axes)
{
    std::int64_t count = 1;
    for (auto const& axis : axes)
    {
        count *= axis.length;
    }
    return count;
}

//! Walks over all index tuples of some axes, the last axis fastest, and knows the offset of each.
class Walk
{
public:
    explicit Walk(Axes axes)
        : mAxes{std::move(axes)}
        , mIndices(mAxes.size(), 0)
    {
    }

    [[nodiscard]] std::int64_t offset() const
    {
        return mOffset;
    }

    void next()
    {
        for (auto axis = mAxes.size(); axis-- > 0;)
        {
            mOffset += mAxes[axis].step;
            if (++mIndices[axis] < mAxes[axis].length)
            {
                return;
            }
            mOffset -= mAxes[axis].step * mAxes[axis].length;
            mIndices[axis] = 0;
        }
    }

private:
    Axes mAxes;
    std::vector<std::int64_t> mIndices;
    std::int64_t mOffset = 0;
};

//! Copies items of a size that the compiler knows, if it is not zero.
template <std::size_t kItem>
struct Item
{
    std::size_t size;

    [[nodiscard]] std::size_t bytes() const
    {
        return kItem != 0 ? kItem : size;
    }

    void copy(std::byte* into, std::byte const* from) const
    {
        std::memcpy(into, from, bytes());
    }
};

//! Items of one axis, put one after another.
template <std::size_t kItem>
void packRow(std::byte const* source, StridedAxis axis, Item<kItem> item, std::byte* into)
{
    auto const size = static_cast<std::int64_t>(item.bytes());
    if (axis.step == size)
    {
        std::memcpy(into, source, static_cast<std::size_t>(axis.length * size));
        return;
    }
    if (axis.step == 2 * size)
    {
        // A distance that the compiler knows lets it use vectors.
        for (std::int64_t index = 0; index < axis.length; ++index)
        {
            item.copy(into + index * size, source + index * 2 * size);
        }
        return;
    }
    for (std::int64_t index = 0; index < axis.length; ++index)
    {
        item.copy(into + index * size, source + index * axis.step);
    }
}

#if defined(__SSE2__)

//! The lower or the upper halves of two registers, an item of one and an item of the other by turns.
template <std::size_t kItem>
void interleave(__m128i first, __m128i second, __m128i* into)
{
    if constexpr (kItem == 1)
    {
        into[0] = _mm_unpacklo_epi8(first, second);
        into[1] = _mm_unpackhi_epi8(first, second);
    }
    else if constexpr (kItem == 2)
    {
        into[0] = _mm_unpacklo_epi16(first, second);
        into[1] = _mm_unpackhi_epi16(first, second);
    }
    else if constexpr (kItem == 4)
    {
        into[0] = _mm_unpacklo_epi32(first, second);
        into[1] = _mm_unpackhi_epi32(first, second);
    }
    else
    {
        into[0] = _mm_unpacklo_epi64(first, second);
        into[1] = _mm_unpackhi_epi64(first, second);
    }
}

//! Turns a square whose side is as many items as a register holds.
template <std::size_t kItem>
void turnSquare(std::byte const* const* columns, std::size_t row, std::byte* into)
{
    constexpr auto kSide = 16 / kItem;
    __m128i lines[kSide];
    for (std::size_t index = 0; index < kSide; ++index)
    {
        lines[index] = _mm_loadu_si128(reinterpret_cast<__m128i const*>(columns[index] + row * kItem));
    }
    // Each round of this perfect shuffle moves one bit of an item's column number into its row number.
    for (std::size_t round = 1; round < kSide; round *= 2)
    {
        __m128i shuffled[kSide];
        for (std::size_t index = 0; index < kSide / 2; ++index)
        {
            interleave<kItem>(lines[index], lines[index + kSide / 2], shuffled + 2 * index);
        }
        std::copy(shuffled, shuffled + kSide, lines);
    }
    for (std::size_t index = 0; index < kSide; ++index)
    {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(into + index * kLineBytes), lines[index]);
    }
}

#endif

//! Begins to bring the memory at an address near.
void fetch(std::byte const* address)
{
#if defined(__GNUC__)
    __builtin_prefetch(address);
#else
    static_cast<void>(address);
#endif
}

//! Turns a strip: `run` items of each of `width` columns become `run` lines.
template <std::size_t kItem>
void turnStrip(std::byte const* const* columns, std::size_t width, std::int64_t step, std::size_t run, Item<kItem> item,
    std::byte* strip)
{
    std::size_t squares = 0;
#if defined(__SSE2__)
    if constexpr (kItem != 0 && kItem < 16)
    {
        constexpr auto kSide = 16 / kItem;
        if (step == static_cast<std::int64_t>(kItem) && width == kLineBytes / kItem)
        {
            squares = run - run % kSide;
            for (std::size_t row = 0; row < squares; row += kSide)
            {
                for (std::size_t left = 0; left < width; left += kSide)
                {
                    turnSquare<kItem>(columns + left, row, strip + row * kLineBytes + left * kItem);
                }
            }
        }
    }
#endif
    for (std::size_t index = 0; index < width; ++index)
    {
        for (std::size_t row = squares; row < run; ++row)
        {
            item.copy(strip + row * kLineBytes + index * item.bytes(),
                columns[index] + static_cast<std::int64_t>(row) * step);
        }
    }
}

//! An array whose first axis is the dense one: a matrix with rows of many items, turned strip by strip.
template <std::size_t kItem>
void packTurned(std::byte const* source, StridedAxis rows, Axes const& columnAxes, Item<kItem> item, std::byte* into)
{
    alignas(kLineBytes) std::array<std::byte, kMaxRun * kLineBytes> strip;
    std::array<std::byte const*, kLineBytes> starts;
    std::array<std::byte const*, kLineBytes> ahead;
    auto const size = item.bytes();
    auto const columns = static_cast<std::size_t>(countOf(columnAxes));
    auto const lineItems = kLineBytes / size;
    auto const runItems = std::clamp<std::size_t>(kRunBytes / size, 1, kMaxRun);
    auto const length = static_cast<std::size_t>(rows.length);
    for (std::size_t top = 0; top < length; top += runItems)
    {
        auto const run = std::min(runItems, length - top);
        auto const* const begin = source + static_cast<std::int64_t>(top) * rows.step;
        Walk column{columnAxes};
        // Columns lie far apart: the processor cannot guess where the next begins, and needs its page early.
        auto const lookAhead = [&](std::size_t left)
        {
            auto const width = std::min(lineItems, columns - left);
            for (std::size_t index = 0; index < width; ++index, column.next())
            {
                ahead[index] = begin + column.offset();
                fetch(ahead[index]);
                fetch(ahead[index] + kLineBytes);
            }
        };
        lookAhead(0);
        for (std::size_t left = 0; left < columns; left += lineItems)
        {
            auto const width = std::min(lineItems, columns - left);
            std::swap(starts, ahead);
            if (left + lineItems < columns)
            {
                lookAhead(left + lineItems);
            }
            turnStrip(starts.data(), width, rows.step, run, item, strip.data());
            for (std::size_t row = 0; row < run; ++row)
            {
                auto* const line = into + ((top + row) * columns + left) * size;
                std::memcpy(line, strip.data() + row * kLineBytes, width * size);
            }
        }
    }
}

template <std::size_t kItem>
void pack(std::byte const* source, Axes const& axes, Item<kItem> item, std::byte* into)
{
    if (axes.empty())
    {
        item.copy(into, source);
        return;
    }
    auto const dense = std::min_element(axes.begin(), axes.end(),
        [](StridedAxis const& a, StridedAxis const& b) { return std::abs(a.step) < std::abs(b.step); });
    // Items wider than a line gain nothing from being turned.
    auto const turns =
        item.bytes() <= kLineBytes && dense->step != 0 && std::abs(dense->step) < std::abs(axes.back().step);
    auto const inner = turns ? dense : axes.end() - 1;
    Axes const outerAxes(axes.begin(), inner);
    Axes const rest(inner + 1, axes.end());
    auto const bytes = static_cast<std::size_t>(inner->length * countOf(rest)) * item.bytes();
    Walk outer{outerAxes};
    for (auto left = countOf(outerAxes); left > 0; --left, outer.next(), into += bytes)
    {
        if (turns)
        {
            packTurned(source + outer.offset(), *inner, rest, item, into);
        }
        else
        {
            packRow(source + outer.offset(), *inner, item, into);
        }
    }
}

} // namespace

void packStrided(std::byte const* source, std::vector<StridedAxis> const& axes, std::size_t itemSize, std::byte* into)
{
    if (countOf(axes) == 0)
    {
        return;
    }
    auto const fewest = simplified(axes);
    switch (itemSize)
    {
    case 1:
        pack(source, fewest, Item<1>{itemSize}, into);
        break;
    case 2:
        pack(source, fewest, Item<2>{itemSize}, into);
        break;
    case 4:
        pack(source, fewest, Item<4>{itemSize}, into);
        break;
    case 8:
        pack(source, fewest, Item<8>{itemSize}, into);
        break;
    case 16:
        pack(source, fewest, Item<16>{itemSize}, into);
        break;
    default:
        pack(source, fewest, Item<0>{itemSize}, into);
        break;
    }
}

} // namespace tensorrt_llm::common
