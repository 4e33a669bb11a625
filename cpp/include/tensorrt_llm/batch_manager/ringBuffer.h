// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file ringBuffer.h
//! A queue in one array that grows by doubling, so that it takes no memory once it is warm.
//!
//! Entries have serial numbers, counted over the queue's life: entry n is the same entry until it is popped.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tensorrt_llm::batch_manager
{

template <typename T>
class RingBuffer
{
public:
    [[nodiscard]] bool empty() const
    {
        return mBegin == mEnd;
    }

    [[nodiscard]] std::size_t size() const
    {
        return static_cast<std::size_t>(mEnd - mBegin);
    }

    //! The serial number of the first entry, and that of the entry that will come after the last.
    [[nodiscard]] std::uint64_t begin() const
    {
        return mBegin;
    }

    [[nodiscard]] std::uint64_t end() const
    {
        return mEnd;
    }

    //! Requires begin() <= \p serial < end().
    [[nodiscard]] T& operator[](std::uint64_t serial)
    {
        return mValues[static_cast<std::size_t>(serial) & (mValues.size() - 1)];
    }

    [[nodiscard]] T& front()
    {
        return (*this)[mBegin];
    }

    [[nodiscard]] T& back()
    {
        return (*this)[mEnd - 1];
    }

    void push(T const& value)
    {
        if (size() == mValues.size())
        {
            grow();
        }
        ++mEnd;
        back() = value;
    }

    void pop()
    {
        ++mBegin;
    }

private:
    void grow()
    {
        std::vector<T> larger(mValues.empty() ? kFirstSize : 2 * mValues.size());
        for (auto serial = mBegin; serial != mEnd; ++serial)
        {
            larger[static_cast<std::size_t>(serial) & (larger.size() - 1)] = (*this)[serial];
        }
        mValues = std::move(larger);
    }

    static constexpr std::size_t kFirstSize = 64;

    std::vector<T> mValues; //!< a power of two of them, or none
    std::uint64_t mBegin{0};
    std::uint64_t mEnd{0};
};

} // namespace tensorrt_llm::batch_manager
