// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file bufferViews.h
//! Between numpy arrays and the core's views and vectors. All functions need the interpreter's lock.

#pragma once

#include "tensorrt_llm/batch_manager/blockKey.h"
#include "tensorrt_llm/batch_manager/common.h"
#include "tensorrt_llm/batch_manager/kvCacheManager.h"
#include "tensorrt_llm/common/stridedPack.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

//! The axes of any array of numbers.
inline std::vector<common::StridedAxis> axesOf(pybind11::array const& array)
{
    // Copying an object's bytes would not count a reference to it.
    if (array.dtype().kind() == 'O')
    {
        throw batch_manager::InvalidArgumentError("source holds objects, expected numbers");
    }
    std::vector<common::StridedAxis> axes;
    for (pybind11::ssize_t axis = 0; axis < array.ndim(); ++axis)
    {
        axes.push_back({array.shape(axis), array.strides(axis)});
    }
    return axes;
}

//! Where the packed values of an array go: into exactly as many bytes.
inline void* roomFor(pybind11::array const& source, Buffer<std::uint8_t>& into)
{
    checkDimensions(into, "into", 1);
    if (into.size() != source.nbytes())
    {
        throw batch_manager::InvalidArgumentError(
            "into has " + std::to_string(into.size()) + " bytes, source has " + std::to_string(source.nbytes()));
    }
    return into.mutable_data();
}

template <typename T>
pybind11::array_t<T> toArray(std::vector<T> const& values)
{
    return pybind11::array_t<T>(static_cast<pybind11::ssize_t>(values.size()), values.data());
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
    Buffer<std::int64_t> const& runLengths, Buffer<std::int64_t> const& itemRows,
    std::vector<std::optional<std::string>> uuids)
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
    media.uuids = std::move(uuids);
    return media;
}

//! int32 of shape [entries, 5]: kind, source, destination, tokens, pool.
inline pybind11::array_t<std::int32_t> toArray(std::vector<batch_manager::CopyEntry> const& entries)
{
    pybind11::array_t<std::int32_t> array(
        std::vector<pybind11::ssize_t>{static_cast<pybind11::ssize_t>(entries.size()), 5});
    auto* row = array.mutable_data();
    for (auto const& entry : entries)
    {
        *row++ = static_cast<std::int32_t>(entry.kind);
        *row++ = entry.source;
        *row++ = entry.destination;
        *row++ = entry.numTokens;
        *row++ = entry.pool;
    }
    return array;
}

inline std::unique_ptr<batch_manager::KVCacheManager> makeManager(batch_manager::BlockId numBlocks,
    std::int32_t tokensPerBlock, bool enableBlockReuse, bool enablePartialReuse, bool copyOnPartialReuse,
    batch_manager::BlockId hostBlocks, std::int32_t secondaryOffloadMinPriority, std::size_t eventBufferMaxSize,
    std::vector<std::pair<std::int64_t, batch_manager::BlockId>> const& windowPools, std::int64_t maxStepTokens)
{
    batch_manager::KvCacheManagerConfig config;
    config.numBlocks = numBlocks;
    config.tokensPerBlock = tokensPerBlock;
    config.enableBlockReuse = enableBlockReuse;
    config.enablePartialReuse = enablePartialReuse;
    config.copyOnPartialReuse = copyOnPartialReuse;
    config.hostBlocks = hostBlocks;
    config.secondaryOffloadMinPriority = secondaryOffloadMinPriority;
    config.eventBufferMaxSize = eventBufferMaxSize;
    for (auto const& [windowSize, numPoolBlocks] : windowPools)
    {
        config.windowPools.push_back({windowSize, numPoolBlocks});
    }
    config.maxStepTokens = maxStepTokens;
    return std::make_unique<batch_manager::KVCacheManager>(config);
}

//! The media of a batch of prompts: the MediaRuns of all, end to end, and where each prompt's begin.
struct MediaBatch
{
    batch_manager::MediaRuns media;
    std::vector<std::int64_t> itemOffsets; //!< one a prompt, and the end
    std::vector<std::int64_t> runOffsets;  //!< one a prompt, and the end

    [[nodiscard]] batch_manager::MediaRunsView of(std::size_t prompt) const
    {
        auto const items = [&](auto const& values)
        {
            return batch_manager::ArrayView{values}.slice(at(itemOffsets, prompt), count(itemOffsets, prompt));
        };
        auto const runs = [&](auto const& values)
        {
            return batch_manager::ArrayView{values}.slice(at(runOffsets, prompt), count(runOffsets, prompt));
        };
        return {items(media.digests), items(media.identified), runs(media.runItems), runs(media.runPositions),
            runs(media.runLengths), items(media.itemRows),
            media.uuids.empty() ? batch_manager::ArrayView<std::optional<std::string>>{} : items(media.uuids)};
    }

private:
    static std::size_t at(std::vector<std::int64_t> const& offsets, std::size_t prompt)
    {
        return static_cast<std::size_t>(offsets[prompt]);
    }

    static std::size_t count(std::vector<std::int64_t> const& offsets, std::size_t prompt)
    {
        return static_cast<std::size_t>(offsets[prompt + 1] - offsets[prompt]);
    }
};

//! Offsets that start at 0, never go back and end at \p size.
inline void checkOffsets(batch_manager::ArrayView<std::int64_t> offsets, char const* name, std::size_t size)
{
    if (offsets.empty() || offsets[0] != 0 || !std::is_sorted(offsets.begin(), offsets.end())
        || offsets[offsets.size() - 1] != static_cast<std::int64_t>(size))
    {
        throw batch_manager::InvalidArgumentError(
            std::string{name} + " must rise from 0 to " + std::to_string(size) + ", the number of entries"
            + (offsets.empty() ? ", and have 0 values"
                               : ", and go from " + std::to_string(offsets[0]) + " to "
                                     + std::to_string(offsets[offsets.size() - 1])));
    }
}

inline MediaBatch makeMediaBatch(batch_manager::MediaRuns const& media, Buffer<std::int64_t> const& itemOffsets,
    Buffer<std::int64_t> const& runOffsets)
{
    auto const items = viewOf(itemOffsets, "item_offsets");
    auto const runs = viewOf(runOffsets, "run_offsets");
    checkOffsets(items, "item_offsets", media.digests.size());
    checkOffsets(runs, "run_offsets", media.runItems.size());
    // The arrays of a prompt are cut out by these offsets, so they have to agree before there is a prompt.
    batch_manager::checkSizes(media.view());
    if (items.size() != runs.size())
    {
        throw batch_manager::InvalidArgumentError("item_offsets has " + std::to_string(items.size())
                                                  + " values, run_offsets has " + std::to_string(runs.size()));
    }
    return {media, {items.begin(), items.end()}, {runs.begin(), runs.end()}};
}

//! The requests of a batch as the core takes them. \throws InvalidArgumentError if sizes differ.
inline std::vector<batch_manager::SequenceRequest> makeRequests(batch_manager::ArrayView<batch_manager::SequenceId> ids,
    batch_manager::ArrayView<batch_manager::TokenId> tokens, batch_manager::ArrayView<std::int64_t> tokenOffsets,
    MediaBatch const* media, std::vector<batch_manager::ReuseScope const*> const& scopes,
    batch_manager::ArrayView<std::int64_t> maxNewTokens,
    std::optional<std::vector<batch_manager::RetentionConfig const*>> const& retention)
{
    auto const check = [&](char const* name, std::size_t size, std::size_t expected)
    {
        if (size != expected)
        {
            throw batch_manager::InvalidArgumentError(
                std::string{name} + " has " + std::to_string(size) + " entries, expected " + std::to_string(expected));
        }
    };
    check("token_offsets", tokenOffsets.size(), ids.size() + 1);
    check("max_new_tokens", maxNewTokens.size(), ids.size());
    check("scopes", scopes.size(), ids.size());
    if (retention)
    {
        check("retention", retention->size(), ids.size());
    }
    checkOffsets(tokenOffsets, "token_offsets", tokens.size());
    if (media != nullptr)
    {
        check("media", media->itemOffsets.size(), ids.size() + 1);
    }
    std::vector<batch_manager::SequenceRequest> requests(ids.size());
    for (std::size_t index = 0; index < ids.size(); ++index)
    {
        auto const begin = static_cast<std::size_t>(tokenOffsets[index]);
        requests[index] = {ids[index], tokens.slice(begin, static_cast<std::size_t>(tokenOffsets[index + 1]) - begin),
            media == nullptr ? batch_manager::MediaRunsView{} : media->of(index), scopes[index], maxNewTokens[index],
            retention ? (*retention)[index] : nullptr};
    }
    return requests;
}

} // namespace tensorrt_llm::pybind
