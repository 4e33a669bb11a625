// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file bufferViews.h
//! Between numpy arrays and the core's views and vectors. All functions need the interpreter's lock.

#pragma once

#include "tensorrt_llm/batch_manager/blockKey.h"
#include "tensorrt_llm/batch_manager/common.h"
#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace tensorrt_llm::pybind
{

//! A C-contiguous array; bound with noconvert, so that the dtype is T exactly.
template <typename T>
using Buffer = pybind11::array_t<T, pybind11::array::c_style>;

template <typename T>
void checkDimensions(Buffer<T> const& array, char const* name, pybind11::ssize_t expected)
{
    if (array.ndim() != expected)
    {
        throw batch_manager::InvalidArgumentError(std::string{name} + " has " + std::to_string(array.ndim())
                                                  + " dimensions, expected " + std::to_string(expected));
    }
}

//! The values of a one-dimensional array, valid while the array is.
template <typename T>
batch_manager::ArrayView<T> viewOf(Buffer<T> const& array, char const* name)
{
    checkDimensions(array, name, 1);
    return {array.data(), static_cast<std::size_t>(array.size())};
}

template <typename T>
std::vector<T> copyOf(Buffer<T> const& array, char const* name)
{
    auto const view = viewOf(array, name);
    return {view.begin(), view.end()};
}

template <typename T>
pybind11::array_t<T> toArray(std::vector<T> const& values)
{
    return pybind11::array_t<T>(static_cast<pybind11::ssize_t>(values.size()), values.data());
}

inline pybind11::array_t<bool> flagsToArray(std::vector<std::uint8_t> const& flags)
{
    pybind11::array_t<bool> array(static_cast<pybind11::ssize_t>(flags.size()));
    std::copy(flags.begin(), flags.end(), array.mutable_data());
    return array;
}

//! int32 of shape [rows, columns].
inline pybind11::array_t<batch_manager::BlockId> toArray(batch_manager::BlockTables const& tables)
{
    std::vector<pybind11::ssize_t> const shape{
        static_cast<pybind11::ssize_t>(tables.numRows), static_cast<pybind11::ssize_t>(tables.numColumns)};
    return pybind11::array_t<batch_manager::BlockId>(shape, tables.blocks.data());
}

inline batch_manager::MediaRuns makeMediaRuns(Buffer<std::uint8_t> const& digests, Buffer<bool> const& identified,
    Buffer<std::int32_t> const& runItems, Buffer<std::int64_t> const& runPositions,
    Buffer<std::int64_t> const& runLengths, Buffer<std::int64_t> const& itemRows)
{
    constexpr auto kDigestSize = static_cast<pybind11::ssize_t>(batch_manager::MediaDigest{}.size());
    checkDimensions(digests, "digests", 2);
    if (digests.shape(1) != kDigestSize)
    {
        throw batch_manager::InvalidMediaRunsError("digests have " + std::to_string(digests.shape(1))
                                                   + " bytes each, expected " + std::to_string(kDigestSize));
    }
    batch_manager::MediaRuns media;
    media.digests.resize(static_cast<std::size_t>(digests.shape(0)));
    for (std::size_t item = 0; item < media.digests.size(); ++item)
    {
        std::copy_n(digests.data(static_cast<pybind11::ssize_t>(item), 0), kDigestSize, media.digests[item].begin());
    }
    auto const flags = viewOf(identified, "identified");
    media.identified.assign(flags.begin(), flags.end());
    media.runItems = copyOf(runItems, "run_items");
    media.runPositions = copyOf(runPositions, "run_positions");
    media.runLengths = copyOf(runLengths, "run_lengths");
    media.itemRows = copyOf(itemRows, "item_rows");
    return media;
}

} // namespace tensorrt_llm::pybind
