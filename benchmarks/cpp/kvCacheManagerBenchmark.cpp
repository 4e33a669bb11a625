// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerBenchmark.cpp
//! Requests a second of the KV cache manager alone: the work of benchmarks/kv_cache_manager.py without Python.
//!
//!     kvCacheManagerBenchmark [--blocks N] [--half-full] [--events] [--batch N] [--seconds S] [--window TOKENS]
//!
//! A request has 4096 tokens in blocks of 32. Its first 115 blocks are one of 8 families', with one image of 1024 rows;
//! the rest is its own. Timed is match, allocate, commit and free, hashing of keys included; making the requests is
//! not. Every answer is checked in the same run, and that the timed calls allocate nothing. Prints one line of JSON.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace tensorrt_llm::batch_manager;

namespace
{

//! Calls of operator new so far. The hot path is to make none once it is warm.
std::int64_t gAllocations = 0;

} // namespace

void* operator new(std::size_t size)
{
    ++gAllocations;
    if (void* const memory = std::malloc(size))
    {
        return memory;
    }
    throw std::bad_alloc{};
}

void operator delete(void* memory) noexcept
{
    std::free(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept
{
    std::free(memory);
}

namespace
{

constexpr std::int32_t kTokensPerBlock = 32;
constexpr std::int64_t kPromptLength = 4096;
constexpr std::int64_t kSharedTokens = 115 * kTokensPerBlock;
constexpr std::int64_t kOwnBlocks = (kPromptLength - kSharedTokens) / kTokensPerBlock;
constexpr std::size_t kFamilies = 8;

struct Options
{
    BlockId blocks{100000};
    std::size_t batch{16};
    double seconds{2.0};
    bool halfFull{false};
    bool events{false};
    std::int64_t window{0}; //!< tokens; 0 for no window pool
};

//! Room for what the families share to outlive batches that do not ask for it.
BlockId windowBlocks(Options const& options)
{
    return static_cast<BlockId>(4 * options.batch * static_cast<std::size_t>(kPromptLength / kTokensPerBlock));
}

KvCacheManagerConfig makeConfig(Options const& options)
{
    KvCacheManagerConfig config;
    config.numBlocks = options.blocks;
    config.tokensPerBlock = kTokensPerBlock;
    config.eventBufferMaxSize = options.events ? 256 : 0;
    if (options.window > 0)
    {
        config.windowPools = {{options.window, windowBlocks(options)}};
    }
    return config;
}

class Workload
{
public:
    explicit Workload(Options const& options)
        : mOptions{options}
        , mManager{makeConfig(options)}
        , mTokens(options.batch * kPromptLength)
        , mRequests(options.batch)
        , mIds(options.batch)
        , mWritten(options.batch, kPromptLength)
        , mCached(options.batch)
    {
        for (std::size_t family = 0; family < kFamilies; ++family)
        {
            auto& tokens = mFamilies.emplace_back(kSharedTokens);
            std::generate(tokens.begin(), tokens.end(), [this] { return static_cast<TokenId>(mRandom() % 200000); });
            MediaRuns media;
            media.digests.emplace_back();
            std::generate(media.digests[0].begin(), media.digests[0].end(),
                [this] { return static_cast<std::uint8_t>(mRandom()); });
            media.identified = {1};
            media.itemRows = {1024};
            media.runItems = {0};
            media.runPositions = {512};
            media.runLengths = {1024};
            mMedia.push_back(media);
        }
        for (std::size_t index = 0; index < options.batch; ++index)
        {
            mIds[index] = static_cast<SequenceId>(index);
        }
    }

    //! Brings the pool to where the timing starts: every block cached, or half of them.
    void fill()
    {
        mManager.resetReuseState();
        mFull = false;
        auto const target = mOptions.halfFull ? mManager.numBlocks() / 2 : mManager.numBlocks();
        while (mManager.stats().cachedNumBlocks + (mOptions.halfFull ? 0 : kOwnBlocks) < target)
        {
            runBatch();
        }
        mFull = true;
    }

    //! Batches that fit before a half-full pool is full.
    [[nodiscard]] std::int64_t batchesBetweenFills() const
    {
        auto const perBatch = static_cast<std::int64_t>(mOptions.batch) * kOwnBlocks;
        return mOptions.halfFull ? std::max<std::int64_t>(1, mManager.numBlocks() / 4 / perBatch) : 1 << 20;
    }

    //! \return seconds
    double runBatch()
    {
        makeRequests();
        auto const allocations = gAllocations;
        auto const start = std::chrono::steady_clock::now();
        mManager.addSequenceBatch(mRequests, mCached.data());
        mManager.commitBatch(mIds, mWritten);
        mManager.freeBatch(mIds);
        mManager.flushEvents();
        auto const end = std::chrono::steady_clock::now();
        mAllocations += mFull ? gAllocations - allocations : 0;
        check();
        return std::chrono::duration<double>(end - start).count();
    }

    //! Allocations by the timed calls since the pool was full.
    [[nodiscard]] std::int64_t allocations() const
    {
        return mAllocations;
    }

    [[nodiscard]] KvCacheStats stats() const
    {
        return mManager.stats();
    }

private:
    void makeRequests()
    {
        for (std::size_t index = 0; index < mOptions.batch; ++index)
        {
            auto const family = mRandom() % kFamilies;
            auto* const tokens = mTokens.data() + index * kPromptLength;
            std::copy(mFamilies[family].begin(), mFamilies[family].end(), tokens);
            std::uint64_t state = mRandom();
            for (auto position = kSharedTokens; position < kPromptLength; ++position)
            {
                state = state * 6364136223846793005ULL + 1;
                tokens[position] = static_cast<TokenId>((state >> 33) % 200000);
            }
            mRequests[index] = {
                mIds[index], {tokens, static_cast<std::size_t>(kPromptLength)}, mMedia[family].view(), &mScope, 1};
        }
    }

    void check() const
    {
        for (auto const cached : mCached)
        {
            // While the pool fills, a family's first request finds nothing, nor do its companions in the batch.
            if (cached != kSharedTokens && (mFull || cached != 0))
            {
                throw std::runtime_error("cached tokens: " + std::to_string(cached));
            }
        }
    }

    Options mOptions;
    KVCacheManager mManager;
    ReuseScope mScope;
    std::mt19937_64 mRandom{20261};
    std::vector<std::vector<TokenId>> mFamilies;
    std::vector<MediaRuns> mMedia;
    std::vector<TokenId> mTokens;
    std::vector<SequenceRequest> mRequests;
    std::vector<SequenceId> mIds;
    std::vector<std::int64_t> mWritten;
    std::vector<std::int64_t> mCached;
    std::int64_t mAllocations{0};
    bool mFull{false};
};

Options parse(int count, char** arguments)
{
    Options options;
    for (int index = 1; index < count; ++index)
    {
        std::string const name = arguments[index];
        auto const value = [&]
        {
            return index + 1 < count ? arguments[++index] : throw std::runtime_error(name);
        };
        if (name == "--blocks")
        {
            options.blocks = std::atoi(value());
        }
        else if (name == "--batch")
        {
            options.batch = static_cast<std::size_t>(std::atoi(value()));
        }
        else if (name == "--seconds")
        {
            options.seconds = std::atof(value());
        }
        else if (name == "--window")
        {
            options.window = std::atoll(value());
        }
        else if (name == "--half-full")
        {
            options.halfFull = true;
        }
        else if (name == "--events")
        {
            options.events = true;
        }
        else
        {
            throw std::runtime_error("unknown option " + name);
        }
    }
    return options;
}

} // namespace

int main(int count, char** arguments)
{
    try
    {
        auto const options = parse(count, arguments);
        Workload workload{options};
        workload.fill();
        auto const before = workload.stats();
        double total = 0.0;
        double best = 1e9; // of the hundredths of the time
        double part = 0.0;
        std::int64_t partBatches = 0;
        std::int64_t batches = 0;
        while (total < options.seconds)
        {
            auto const seconds = workload.runBatch();
            total += seconds;
            part += seconds;
            ++partBatches;
            if (++batches % workload.batchesBetweenFills() == 0)
            {
                workload.fill();
            }
            if (part > options.seconds / 100)
            {
                best = std::min(best, part / static_cast<double>(partBatches));
                part = 0.0;
                partBatches = 0;
            }
        }
        auto const perRequest = best / static_cast<double>(options.batch);
        std::printf(
            "{\"pool_blocks\": %d, \"evicting\": %s, \"batch\": %zu, \"requests_per_s\": %.0f, "
            "\"mean_requests_per_s\": %.0f, \"ns_per_block\": %.1f, \"evicted\": %lld, \"allocations\": %lld}\n",
            options.blocks, options.halfFull ? "false" : "true", options.batch, 1.0 / perRequest,
            static_cast<double>(batches) * static_cast<double>(options.batch) / total,
            perRequest * 1e9 / (kPromptLength / kTokensPerBlock),
            static_cast<long long>(workload.stats().evictedBlocks - before.evictedBlocks),
            static_cast<long long>(workload.allocations()));
        if (workload.allocations() != 0 && !options.events)
        {
            throw std::runtime_error(
                std::to_string(workload.allocations()) + " allocations on the hot path, expected 0");
        }
    }
    catch (std::exception const& error)
    {
        std::fprintf(stderr, "kvCacheManagerBenchmark: %s\n", error.what());
        return 1;
    }
    return 0;
}
