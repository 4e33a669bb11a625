// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file refCount.h
//! A reference count that cannot go wrong unseen.

#pragma once

#include "tensorrt_llm/batch_manager/common.h"

#include <cstdint>
#include <limits>
#include <string>

namespace tensorrt_llm::batch_manager
{

//! Counts holders. A step past either end throws InternalStateError and leaves the value as it was.
template <typename T>
class BasicRefCount
{
public:
    //! Adds a holder. \return the count after it.
    T acquire()
    {
        if (mValue == std::numeric_limits<T>::max())
        {
            throw InternalStateError("reference count is at its top of " + std::to_string(mValue));
        }
        return ++mValue;
    }

    //! Takes a holder away. \return the count after it.
    T release()
    {
        if (mValue == 0)
        {
            throw InternalStateError("reference count released at 0");
        }
        return --mValue;
    }

    [[nodiscard]] T value() const
    {
        return mValue;
    }

private:
    T mValue{0};
};

using RefCount = BasicRefCount<std::uint32_t>;

} // namespace tensorrt_llm::batch_manager
