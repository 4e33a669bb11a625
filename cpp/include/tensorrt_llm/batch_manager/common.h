// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file common.h
//! The words of the batch manager: id types, a read-only array view, and the exception tree.
//!
//! KvCacheError
//! ├── InvalidArgumentError     a value that no caller may pass (also Python's ValueError)
//! │   └── InvalidMediaRunsError    placeholder runs that contradict each other or the prompt
//! ├── CapacityExceededError    a need that this pool, or this sequence's reservation, can never meet
//! ├── UnknownSequenceError     a sequence id that is not live
//! └── InternalStateError       our own fault: an invariant does not hold

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

namespace tensorrt_llm::batch_manager
{

using TokenId = std::int32_t;
using BlockId = std::int32_t;
using SequenceId = std::int64_t;

//! Stands where there is no block: in list links, and as padding of block tables.
inline constexpr BlockId kNoBlock = -1;

//! Stands for the tokens that an incomplete block lacks. No prompt should hold it; one that does shares nothing there.
inline constexpr TokenId kNoToken = std::numeric_limits<TokenId>::min();

//! A contiguous, read-only run of values that somebody else owns and keeps alive during the call.
template <typename T>
class ArrayView
{
public:
    ArrayView() = default;

    ArrayView(T const* data, std::size_t size)
        : mData{data}
        , mSize{size}
    {
    }

    ArrayView(std::vector<T> const& values) // NOLINT: a vector is meant to pass as a view
        : ArrayView{values.data(), values.size()}
    {
    }

    [[nodiscard]] T const* data() const
    {
        return mData;
    }

    [[nodiscard]] std::size_t size() const
    {
        return mSize;
    }

    [[nodiscard]] bool empty() const
    {
        return mSize == 0;
    }

    [[nodiscard]] T const* begin() const
    {
        return mData;
    }

    [[nodiscard]] T const* end() const
    {
        return mData + mSize;
    }

    T const& operator[](std::size_t index) const
    {
        return mData[index];
    }

    //! The part of \p size values that starts at \p offset. Requires that it lies inside this view.
    [[nodiscard]] ArrayView slice(std::size_t offset, std::size_t size) const
    {
        return {mData + offset, size};
    }

private:
    T const* mData{nullptr};
    std::size_t mSize{0};
};

class KvCacheError : public std::runtime_error
{
public:
    using std::runtime_error::runtime_error;
};

class InvalidArgumentError : public KvCacheError
{
public:
    using KvCacheError::KvCacheError;
};

class InvalidMediaRunsError : public InvalidArgumentError
{
public:
    using InvalidArgumentError::InvalidArgumentError;
};

class CapacityExceededError : public KvCacheError
{
public:
    using KvCacheError::KvCacheError;
};

class UnknownSequenceError : public KvCacheError
{
public:
    using KvCacheError::KvCacheError;
};

class InternalStateError : public KvCacheError
{
public:
    using KvCacheError::KvCacheError;
};

} // namespace tensorrt_llm::batch_manager
