// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file sha256.h
//! SHA-256 (FIPS 180-4), with the processor's own instructions where it has them.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tensorrt_llm::batch_manager
{

using Sha256Digest = std::array<std::uint8_t, 32>;

//! Hashes a message given in pieces. One use: update any number of times, then finish once.
class Sha256
{
public:
    //! \param portable use the plain code whatever the processor has; for tests.
    explicit Sha256(bool portable = false);

    void update(void const* data, std::size_t size);

    [[nodiscard]] Sha256Digest finish();

private:
    using State = std::array<std::uint32_t, 8>;
    using Compress = void (*)(State& state, std::uint8_t const* blocks, std::size_t numBlocks);

    static void compressPortable(State& state, std::uint8_t const* blocks, std::size_t numBlocks);
    static void compressNative(State& state, std::uint8_t const* blocks, std::size_t numBlocks);
    static bool hasNative();

    Compress mCompress;
    State mState;
    std::array<std::uint8_t, 64> mBuffer{};
    std::size_t mBuffered{0};
    std::uint64_t mLength{0};
};

} // namespace tensorrt_llm::batch_manager
