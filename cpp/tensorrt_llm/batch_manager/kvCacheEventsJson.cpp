// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheEventsJson.cpp
//! Events as lines of JSON.
//!
//! A reader that keeps up makes this the costliest part of an event, one object a token, so everything is appended to
//! the one line that is given back, whose length is foreseen.

#include "tensorrt_llm/batch_manager/kvCacheEvents.h"

#include <charconv>
#include <cstdio>
#include <utility>

namespace tensorrt_llm::batch_manager
{

namespace
{

using Change = std::optional<std::pair<std::int32_t, std::int32_t>>;

//! What an object of each kind takes at most, quoted text not counted.
constexpr std::size_t kBytesPerEvent = 320;
constexpr std::size_t kBytesPerToken = 72;
constexpr std::size_t kBytesPerBlock = 224;
constexpr std::size_t kBytesPerSpan = 160;
constexpr std::size_t kBytesPerName = 2 * sizeof(BlockName) + 3;

class JsonLine
{
public:
    explicit JsonLine(std::size_t foreseen)
    {
        mText.reserve(foreseen);
    }

    template <std::size_t kSize>
    JsonLine& operator<<(char const (&literal)[kSize])
    {
        mText.append(literal, kSize - 1);
        return *this;
    }

    JsonLine& operator<<(std::int64_t value)
    {
        char digits[20]; // those of the least value and its sign
        auto const written = std::to_chars(digits, digits + sizeof(digits), value);
        mText.append(digits, written.ptr);
        return *this;
    }

    //! In hexadecimal.
    JsonLine& operator<<(std::array<std::uint8_t, 32> const& bytes)
    {
        constexpr char const* kDigits = "0123456789abcdef";
        char text[2 + 2 * 32];
        text[0] = '"';
        text[sizeof(text) - 1] = '"';
        for (std::size_t index = 0; index < bytes.size(); ++index)
        {
            text[1 + 2 * index] = kDigits[bytes[index] >> 4];
            text[2 + 2 * index] = kDigits[bytes[index] & 15];
        }
        mText.append(text, sizeof(text));
        return *this;
    }

    JsonLine& operator<<(std::optional<BlockName> const& name)
    {
        return name ? *this << *name : *this << "null";
    }

    //! Text that came from a caller; whatever is in it, the line stays one line of JSON.
    JsonLine& operator<<(std::optional<std::string> const& value)
    {
        if (!value)
        {
            return *this << "null";
        }
        mText += '"';
        for (auto const character : *value)
        {
            escape(character);
        }
        mText += '"';
        return *this;
    }

    JsonLine& operator<<(Change const& change)
    {
        return change ? *this << R"({"type":"event_diff","new_value":)" << change->second << R"(,"old_value":)"
                              << change->first << "}"
                      : *this << "null";
    }

    template <typename Show>
    JsonLine& list(std::size_t size, Show const& show)
    {
        mText += '[';
        for (std::size_t index = 0; index < size; ++index)
        {
            if (index > 0)
            {
                mText += ',';
            }
            show(index);
        }
        mText += ']';
        return *this;
    }

    std::string take()
    {
        return std::move(mText);
    }

private:
    void escape(char character)
    {
        auto const code = static_cast<unsigned char>(character);
        if (code < 0x20)
        {
            char text[8];
            std::snprintf(text, sizeof(text), "\\u%04x", static_cast<unsigned>(code));
            mText += text;
            return;
        }
        if (character == '"' || character == '\\')
        {
            mText += '\\';
        }
        mText += character;
    }

    std::string mText;
};

void writeTokens(JsonLine& line, ArrayView<TokenId> tokens)
{
    line.list(tokens.size(), [&](std::size_t index)
        { line << R"({"type":"unique_token","token_id":)" << tokens[index] << R"(,"token_extra_id":0})"; });
}

//! The media of a block, which begin at \p first among the event's.
void writeMedia(JsonLine& line, KvCacheEvent const& event, std::size_t first, std::size_t size)
{
    line.list(size,
        [&](std::size_t index)
        {
            auto const& span = event.media[first + index];
            line << R"({"type":"mm_key","hash":)" << span.digest << R"(,"start_offset":)" << span.rowOffset
                 << R"(,"uuid":)" << event.uuids[first + index] << "}";
        });
}

void writeStored(JsonLine& line, KvCacheEvent const& event)
{
    std::size_t firstToken = 0;
    std::size_t firstSpan = 0;
    line << R"({"type":"stored","parent_hash":)" << event.parent << R"(,"blocks":)";
    line.list(event.stored.size(),
        [&](std::size_t index)
        {
            auto const& block = event.stored[index];
            line << R"({"type":"stored_block","block_hash":)" << block.name << R"(,"tokens":)";
            writeTokens(line, ArrayView<TokenId>{event.tokens}.slice(firstToken, block.numTokens));
            line << R"(,"cache_level":)" << block.cacheLevel << R"(,"priority":)" << block.priority << R"(,"mm_keys":)";
            writeMedia(line, event, firstSpan, block.numSpans);
            line << R"(,"cache_salt":)" << event.cacheSalt << "}";
            firstToken += block.numTokens;
            firstSpan += block.numSpans;
        });
    line << "}";
}

void writeData(JsonLine& line, KvCacheEvent const& event)
{
    switch (event.kind)
    {
    case KvCacheEventKind::kCreated:
        line << R"({"type":"created","num_blocks_per_cache_level":)";
        line.list(event.numBlocksPerLevel.size(), [&](std::size_t index) { line << event.numBlocksPerLevel[index]; });
        line << "}";
        return;
    case KvCacheEventKind::kStored:
        writeStored(line, event);
        return;
    case KvCacheEventKind::kRemoved:
        line << R"({"type":"removed","block_hashes":)";
        line.list(event.names.size(), [&](std::size_t index) { line << event.names[index]; });
        line << "}";
        return;
    case KvCacheEventKind::kUpdated:
        line << R"({"type":"updated","block_hash":)" << event.names.at(0) << R"(,"cache_level":)" << event.level
             << R"(,"priority":)" << event.priority << "}";
        return;
    }
    line << "null";
}

} // namespace

std::string toJson(KvCacheEvent const& event, std::int64_t windowSize)
{
    JsonLine line{kBytesPerEvent + kBytesPerBlock * event.stored.size() + kBytesPerToken * event.tokens.size()
                  + kBytesPerSpan * event.media.size() + kBytesPerName * event.names.size()};
    line << R"({"event_id":)" << event.id << R"(,"data":)";
    writeData(line, event);
    line << R"(,"window_size":)" << windowSize << R"(,"hash_algo":"v2_sha256"})";
    return line.take();
}

} // namespace tensorrt_llm::batch_manager
