// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/sha256.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define TRTLLM_SHA256_NATIVE 1
#include <immintrin.h>
#else
#define TRTLLM_SHA256_NATIVE 0
#endif

namespace tensorrt_llm::batch_manager
{

namespace
{

alignas(16) constexpr std::uint32_t kRound[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b,
    0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
    0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc,
    0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1,
    0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814,
    0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr std::uint32_t rotated(std::uint32_t value, unsigned by)
{
    return value >> by | value << (32 - by);
}

} // namespace

Sha256::Sha256(bool portable)
    : mCompress{!portable && hasNative() ? &compressNative : &compressPortable}
    , mState{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}
{
}

void Sha256::update(void const* data, std::size_t size)
{
    auto const* bytes = static_cast<std::uint8_t const*>(data);
    mLength += size;
    if (mBuffered > 0)
    {
        auto const taken = std::min(size, mBuffer.size() - mBuffered);
        std::copy_n(bytes, taken, mBuffer.begin() + static_cast<std::ptrdiff_t>(mBuffered));
        mBuffered += taken;
        bytes += taken;
        size -= taken;
        if (mBuffered < mBuffer.size())
        {
            return;
        }
        mCompress(mState, mBuffer.data(), 1);
        mBuffered = 0;
    }
    mCompress(mState, bytes, size / mBuffer.size());
    mBuffered = size % mBuffer.size();
    std::copy_n(bytes + (size - mBuffered), mBuffered, mBuffer.begin());
}

Sha256Digest Sha256::finish()
{
    auto const bits = mLength * 8;
    std::array<std::uint8_t, 72> padding{0x80};
    auto const zeros = (mBuffered < 56 ? 55 : 119) - mBuffered;
    for (std::size_t index = 0; index < 8; ++index)
    {
        padding[1 + zeros + index] = static_cast<std::uint8_t>(bits >> (56 - 8 * index));
    }
    update(padding.data(), 9 + zeros);
    Sha256Digest digest{};
    for (std::size_t index = 0; index < digest.size(); ++index)
    {
        digest[index] = static_cast<std::uint8_t>(mState[index / 4] >> (24 - 8 * (index % 4)));
    }
    return digest;
}

void Sha256::compressPortable(State& state, std::uint8_t const* blocks, std::size_t numBlocks)
{
    for (; numBlocks > 0; --numBlocks, blocks += 64)
    {
        std::uint32_t words[64];
        for (std::size_t index = 0; index < 16; ++index)
        {
            auto const* const bytes = blocks + 4 * index;
            words[index] = std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8
                           | std::uint32_t{bytes[3]};
        }
        for (std::size_t index = 16; index < 64; ++index)
        {
            auto const early = words[index - 15];
            auto const late = words[index - 2];
            words[index] = words[index - 16] + (rotated(early, 7) ^ rotated(early, 18) ^ early >> 3) + words[index - 7]
                           + (rotated(late, 17) ^ rotated(late, 19) ^ late >> 10);
        }
        auto [a, b, c, d, e, f, g, h] = state;
        for (std::size_t index = 0; index < 64; ++index)
        {
            auto const one = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g))
                             + kRound[index] + words[index];
            auto const two = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
            h = g;
            g = f;
            f = e;
            e = d + one;
            d = c;
            c = b;
            b = a;
            a = one + two;
        }
        State const added{a, b, c, d, e, f, g, h};
        for (std::size_t index = 0; index < state.size(); ++index)
        {
            state[index] += added[index];
        }
    }
}

#if TRTLLM_SHA256_NATIVE

bool Sha256::hasNative()
{
    static bool const has = []
    {
        // The instructions are not among the features that the compiler names: leaf 7, register b, bit 29.
        std::uint32_t a = 7;
        std::uint32_t b = 0;
        std::uint32_t c = 0;
        std::uint32_t d = 0;
        __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
        return (b >> 29 & 1) != 0 && __builtin_cpu_supports("sse4.1");
    }();
    return has;
}

__attribute__((target("sha,sse4.1"))) void Sha256::compressNative(
    State& state, std::uint8_t const* blocks, std::size_t numBlocks)
{
    // The instructions want the state as (a, b, e, f) and (c, d, g, h), the first in the highest lane.
    auto const low = _mm_loadu_si128(reinterpret_cast<__m128i const*>(state.data()));
    auto const high = _mm_loadu_si128(reinterpret_cast<__m128i const*>(state.data() + 4));
    auto const badc = _mm_shuffle_epi32(low, 0xb1);
    auto const hgfe = _mm_shuffle_epi32(high, 0x1b);
    auto abef = _mm_alignr_epi8(badc, hgfe, 8);
    auto cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
    auto const bigEndian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    for (; numBlocks > 0; --numBlocks, blocks += 64)
    {
        auto const abefBefore = abef;
        auto const cdghBefore = cdgh;
        __m128i words[4];
        for (int group = 0; group < 16; ++group)
        {
            auto& next = words[group & 3];
            if (group < 4)
            {
                next =
                    _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<__m128i const*>(blocks + 16 * group)), bigEndian);
            }
            else
            {
                auto const last = words[(group + 3) & 3];
                auto const sum = _mm_add_epi32(_mm_sha256msg1_epu32(next, words[(group + 1) & 3]),
                    _mm_alignr_epi8(last, words[(group + 2) & 3], 4));
                next = _mm_sha256msg2_epu32(sum, last);
            }
            auto const keyed =
                _mm_add_epi32(next, _mm_load_si128(reinterpret_cast<__m128i const*>(kRound + 4 * group)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, keyed);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(keyed, 0x0e));
        }
        abef = _mm_add_epi32(abef, abefBefore);
        cdgh = _mm_add_epi32(cdgh, cdghBefore);
    }
    auto const feba = _mm_shuffle_epi32(abef, 0x1b);
    auto const dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool Sha256::hasNative()
{
    return false;
}

void Sha256::compressNative(State& state, std::uint8_t const* blocks, std::size_t numBlocks)
{
    compressPortable(state, blocks, numBlocks);
}

#endif

} // namespace tensorrt_llm::batch_manager
