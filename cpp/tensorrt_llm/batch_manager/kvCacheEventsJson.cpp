// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheEventsJson.cpp
//! Events as lines of JSON.

#include "tensorrt_llm/batch_manager/kvCacheEvents.h"

#include <cstdio>

namespace tensorrt_llm::batch_manager
{

namespace
{

std::string hexadecimal(std::array<std::uint8_t, 32> const& bytes)
{
    constexpr char const* kDigits = "0123456789abcdef";
    std::string text = "\"";
    for (auto const byte : bytes)
    {
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text + '"';
}

//! Text that came from a caller; whatever is in it, the line stays one line of JSON.
std::string quoted(std::optional<std::string> const& value)
{
    if (!value)
    {
        return "null";
    }
    std::string text = "\"";
    for (auto const character : *value)
    {
        auto const code = static_cast<unsigned char>(character);
        if (character == '"' || character == '\\')
        {
            text += '\\';
            text += character;
        }
        else if (code < 0x20)
        {
            char escape[8];
            std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(code));
            text += escape;
        }
        else
        {
            text += character;
        }
    }
    return text + '"';
}

template <typename Values, typename Show>
std::string listed(Values const& values, Show const& show)
{
    std::string text = "[";
    for (std::size_t index = 0; index < values.size(); ++index)
    {
        text += index == 0 ? "" : ",";
        text += show(index);
    }
    return text + "]";
}

//! The block at \p index, whose tokens and media begin at \p firstToken and \p firstSpan.
std::string shown(KvCacheEvent const& event, std::size_t index, std::size_t firstToken, std::size_t firstSpan)
{
    auto const& block = event.stored[index];
    auto const ids = ArrayView<TokenId>{event.tokens}.slice(firstToken, block.numTokens);
    auto const tokens = listed(ids, [&](std::size_t token)
        { return R"({"type":"unique_token","token_id":)" + std::to_string(ids[token]) + R"(,"token_extra_id":0})"; });
    auto const spans = ArrayView<MediaSpan>{event.media}.slice(firstSpan, block.numSpans);
    auto const media = listed(spans,
        [&](std::size_t span)
        {
            return R"({"type":"mm_key","hash":)" + hexadecimal(spans[span].digest) + R"(,"start_offset":)"
                   + std::to_string(spans[span].rowOffset) + R"(,"uuid":)" + quoted(event.uuids[firstSpan + span])
                   + "}";
        });
    return R"({"type":"stored_block","block_hash":)" + hexadecimal(block.name) + R"(,"tokens":)" + tokens
           + R"(,"cache_level":)" + std::to_string(block.cacheLevel) + R"(,"priority":)"
           + std::to_string(block.priority) + R"(,"mm_keys":)" + media + R"(,"cache_salt":)" + quoted(event.cacheSalt)
           + "}";
}

std::string shownBlocks(KvCacheEvent const& event)
{
    std::size_t firstToken = 0;
    std::size_t firstSpan = 0;
    return listed(event.stored,
        [&](std::size_t index)
        {
            auto text = shown(event, index, firstToken, firstSpan);
            firstToken += event.stored[index].numTokens;
            firstSpan += event.stored[index].numSpans;
            return text;
        });
}

std::string shown(std::optional<std::pair<std::int32_t, std::int32_t>> const& change)
{
    return change ? R"({"type":"event_diff","new_value":)" + std::to_string(change->second) + R"(,"old_value":)"
                        + std::to_string(change->first) + "}"
                  : "null";
}

std::string data(KvCacheEvent const& event)
{
    switch (event.kind)
    {
    case KvCacheEventKind::kCreated:
        return R"({"type":"created","num_blocks_per_cache_level":)"
               + listed(event.numBlocksPerLevel,
                   [&](std::size_t index) { return std::to_string(event.numBlocksPerLevel[index]); })
               + "}";
    case KvCacheEventKind::kStored:
        return R"({"type":"stored","parent_hash":)" + (event.parent ? hexadecimal(*event.parent) : "null")
               + R"(,"blocks":)" + shownBlocks(event) + "}";
    case KvCacheEventKind::kRemoved:
        return R"({"type":"removed","block_hashes":)"
               + listed(event.names, [&](std::size_t index) { return hexadecimal(event.names[index]); }) + "}";
    case KvCacheEventKind::kUpdated:
        return R"({"type":"updated","block_hash":)" + hexadecimal(event.names.at(0)) + R"(,"cache_level":)"
               + shown(event.level) + R"(,"priority":)" + shown(event.priority) + "}";
    }
    return "null";
}

} // namespace

std::string toJson(KvCacheEvent const& event, std::int64_t windowSize)
{
    return R"({"event_id":)" + std::to_string(event.id) + R"(,"data":)" + data(event) + R"(,"window_size":)"
           + std::to_string(windowSize) + R"(,"hash_algo":"v2_sha256"})";
}

} // namespace tensorrt_llm::batch_manager
