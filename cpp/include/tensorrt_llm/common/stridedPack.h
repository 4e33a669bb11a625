// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file stridedPack.h
//! Strided items in memory, made dense. Pure functions, safe from any thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorrt_llm::common
{

//! One axis of an array.
struct StridedAxis
{
    //! Items along the axis, not negative.
    std::int64_t length;
    //! Bytes from one item to the next; may be zero or negative.
    std::int64_t step;
};

//! \brief Writes the items of a strided array one after another, the last axis fastest.
//!
//! Memory is read along the axis on which items lie closest, whichever that is, through a buffer that stays in the
//! nearest cache: an array whose first axis is the dense one costs little more than one that is dense already.
//!
//! \param source Address of the item at index 0 of every axis.
//! \param axes The axes, slowest first; none means a single item.
//! \param itemSize Bytes of an item, more than zero.
//! \param into Room for all items. Must not overlap with them.
void packStrided(std::byte const* source, std::vector<StridedAxis> const& axes, std::size_t itemSize, std::byte* into);

} // namespace tensorrt_llm::common
