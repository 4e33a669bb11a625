// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file lazyArray.h
//! A fixed array of zero bytes that costs memory only where it is touched.
//!
//! A pool may have ten million blocks and a server use a tenth of them, or no media at all. The array therefore takes
//! zero pages from the system, and asks for huge pages where the system has them: a walk over a large pool is bound by
//! address translation otherwise.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tensorrt_llm::batch_manager
{

//! \tparam T trivial, and valid when all its bytes are zero.
template <typename T>
class LazyArray
{
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

public:
    LazyArray() = default;

    //! \throws std::bad_alloc
    explicit LazyArray(std::size_t size)
        : mSize{size}
    {
        auto const bytes = size * sizeof(T);
        auto const alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
        mMemory.reset(std::calloc(bytes + alignment, 1));
        if (mMemory == nullptr)
        {
            throw std::bad_alloc{};
        }
        void* start = mMemory.get();
        auto space = bytes + alignment;
        mValues = static_cast<T*>(std::align(alignment, bytes, start, space));
#ifdef __linux__
        if (bytes >= kHugePage)
        {
            // A hint: where it is refused, everything works the same on small pages.
            static_cast<void>(madvise(mValues, bytes, MADV_HUGEPAGE));
        }
#endif
    }

    [[nodiscard]] std::size_t size() const
    {
        return mSize;
    }

    T& operator[](std::size_t index)
    {
        return mValues[index];
    }

    T const& operator[](std::size_t index) const
    {
        return mValues[index];
    }

    [[nodiscard]] T* data()
    {
        return mValues;
    }

    [[nodiscard]] T const* data() const
    {
        return mValues;
    }

    [[nodiscard]] T const* begin() const
    {
        return mValues;
    }

    [[nodiscard]] T const* end() const
    {
        return mValues + mSize;
    }

private:
    static constexpr std::size_t kCacheLine = 64;
    static constexpr std::size_t kHugePage = std::size_t{2} << 20;

    struct Release
    {
        void operator()(void* memory) const
        {
            std::free(memory);
        }
    };

    std::unique_ptr<void, Release> mMemory;
    T* mValues{nullptr};
    std::size_t mSize{0};
};

} // namespace tensorrt_llm::batch_manager
