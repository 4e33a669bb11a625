// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerFuzzer.cpp
//! libFuzzer target: the bytes of an input choose the manager's settings and then every operation of FuzzDriver. A
//! wrong answer ends the process, and libFuzzer leaves the input behind. Built with TRTLLM_BUILD_FUZZER, which needs
//! clang.

#include "../unit_tests/batch_manager/fuzzDriver.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

//! What all inputs of this process consisted of, told at its end.
class Totals
{
public:
    ~Totals()
    {
        std::fprintf(stderr, "%s\n", mCounts.text().c_str());
    }

    void add(OperationCounts const& counts)
    {
        mCounts.add(counts);
    }

private:
    OperationCounts mCounts;
};

class ByteSource
{
public:
    ByteSource(std::uint8_t const* data, std::size_t size)
        : mData{data}
        , mSize{size}
    {
    }

    [[nodiscard]] bool empty() const
    {
        return mUsed >= mSize;
    }

    std::uint32_t below(std::uint32_t bound)
    {
        auto const byte = empty() ? std::uint8_t{0} : mData[mUsed++];
        return byte % bound;
    }

private:
    std::uint8_t const* mData;
    std::size_t mSize;
    std::size_t mUsed{0};
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    ByteSource source{data, size};
    KvCacheManagerConfig config;
    config.numBlocks = static_cast<BlockId>(2 + source.below(14));
    config.tokensPerBlock = 2 << source.below(2);
    config.hostBlocks = static_cast<BlockId>(source.below(3) * 5);
    config.enablePartialReuse = source.below(2) != 0;
    config.copyOnPartialReuse = source.below(2) != 0;
    config.secondaryOffloadMinPriority = static_cast<std::int32_t>(source.below(2)) * kDefaultPriority;
    config.eventBufferMaxSize = 1 << 20;
    HashFunction const hashes[] = {&xxh3Hash, &crowdedHash, &constantHash};
    config.hash = hashes[source.below(3)];
    for (auto numPools = source.below(3); numPools > 0; --numPools)
    {
        config.windowPools.push_back({2 + source.below(10), static_cast<BlockId>(4 + source.below(14))});
    }
    config.maxStepTokens = source.below(6);
    static Totals totals;
    try
    {
        FuzzDriver driver{config};
        while (!source.empty())
        {
            driver.step(source);
        }
        driver.finish();
        totals.add(driver.counts());
    }
    catch (std::exception const& error)
    {
        std::fprintf(stderr, "%s\n", error.what());
        std::abort();
    }
    return 0;
}
