// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file bindings.cpp
//! The Python face of the batch manager, and of what packs media: names, arguments, guards. Anything with a loop lives
//! in the core.
//!
//! Buffers come in as contiguous numpy arrays of exactly the stated dtype (anything else is a TypeError, never a silent
//! conversion) and are read while the interpreter's lock is released, so a caller must not resize them meanwhile.

#include "bufferViews.h"

#include "tensorrt_llm/batch_manager/blockKey.h"
#include "tensorrt_llm/batch_manager/kvCacheManager.h"
#include "tensorrt_llm/common/stridedPack.h"

#include <pybind11/native_enum.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace py = pybind11;
namespace bm = tensorrt_llm::batch_manager;
using namespace py::literals;
using namespace tensorrt_llm::pybind;

namespace
{

template <typename Error>
py::object registerError(py::module_& module, char const* name, py::handle bases, char const* doc)
{
    auto& error = py::register_exception<Error>(module, name, bases);
    error.attr("__doc__") = doc;
    error.attr("__module__") = "tensorrt_llm.bindings";
    return error;
}

void bindErrors(py::module_& module)
{
    // A base is registered before what derives from it: translators are asked in the reverse order.
    auto const value = py::reinterpret_borrow<py::object>(PyExc_ValueError);
    auto const base = registerError<bm::KvCacheError>(
        module, "KvCacheError", PyExc_RuntimeError, "Base of every error that the KV cache manager raises.");
    auto const argument = registerError<bm::InvalidArgumentError>(
        module, "InvalidArgumentError", py::make_tuple(base, value), "A value that no caller may pass.");
    registerError<bm::InvalidMediaRunsError>(
        module, "InvalidMediaRunsError", argument, "Placeholder runs that contradict each other or the prompt.");
    registerError<bm::CapacityExceededError>(
        module, "CapacityExceededError", base, "A need that the pool, or the sequence's reservation, can never meet.");
    registerError<bm::UnknownSequenceError>(module, "UnknownSequenceError", base, "A sequence id that is not live.");
    registerError<bm::InternalStateError>(
        module, "InternalStateError", base, "An invariant of the manager does not hold: a fault of ours.");
}

void bindKey(py::module_& module)
{
    py::class_<bm::ReuseScope>(module, "ReuseScope", "What separates one cache from another, compared in full.")
        .def(py::init<std::optional<std::string>, std::optional<std::int64_t>, std::int64_t, std::string>(),
            "cache_salt"_a = py::none(), "adapter_id"_a = py::none(), "adapter_version"_a = 0, "adapter_mode"_a = "")
        .def_readonly("cache_salt", &bm::ReuseScope::cacheSalt)
        .def_readonly("adapter_id", &bm::ReuseScope::adapterId)
        .def_readonly("adapter_version", &bm::ReuseScope::adapterVersion)
        .def_readonly("adapter_mode", &bm::ReuseScope::adapterMode)
        .def(
            "__eq__", [](bm::ReuseScope const& self, bm::ReuseScope const& other) { return self == other; }, "other"_a,
            py::is_operator())
        .attr("__hash__") = py::none();

    py::class_<bm::MediaRuns>(
        module, "MediaRuns", "The media items of a prompt and the token runs that stand for them.")
        .def(py::init(&makeMediaRuns), py::arg("digests").noconvert(), py::arg("identified").noconvert(),
            py::arg("run_items").noconvert(), py::arg("run_positions").noconvert(), py::arg("run_lengths").noconvert(),
            py::arg("item_rows").noconvert(), "uuids"_a = py::list())
        .def_property_readonly("num_items", [](bm::MediaRuns const& self) { return self.digests.size(); })
        .def_property_readonly("num_runs", [](bm::MediaRuns const& self) { return self.runItems.size(); });

    py::class_<MediaBatch>(module, "MediaBatch", "The media of several prompts, end to end.")
        .def(py::init(&makeMediaBatch), "media"_a, py::arg("item_offsets").noconvert(),
            py::arg("run_offsets").noconvert())
        .def_property_readonly("num_prompts", [](MediaBatch const& self) { return self.itemOffsets.size() - 1; });
}

void bindRetention(py::module_& module)
{
    py::class_<bm::TokenRangeRetention>(
        module, "TokenRangeRetentionConfig", "The priority of the blocks that begin in a range of the prompt.")
        .def(py::init([](std::int64_t start, std::optional<std::int64_t> end, std::int32_t priority,
                          std::optional<std::int64_t> durationMs)
                 { return bm::TokenRangeRetention{start, end, {priority, durationMs}}; }),
            "token_start"_a, "token_end"_a, "priority"_a, "duration_ms"_a = py::none())
        .def_readonly("token_start", &bm::TokenRangeRetention::tokenStart)
        .def_readonly("token_end", &bm::TokenRangeRetention::tokenEnd)
        .def_property_readonly("priority", [](bm::TokenRangeRetention const& self) { return self.retention.priority; })
        .def_property_readonly(
            "duration_ms", [](bm::TokenRangeRetention const& self) { return self.retention.durationMs; });

    py::class_<bm::RetentionConfig>(module, "KvCacheRetentionConfig", "How long a sequence wants its blocks kept.")
        .def(py::init(
                 [](std::vector<bm::TokenRangeRetention> ranges, std::int32_t priority,
                     std::optional<std::int64_t> durationMs)
                 {
                     bm::RetentionConfig config{std::move(ranges), {priority, durationMs}};
                     config.check();
                     return config;
                 }),
            "token_range_retention_configs"_a, "decode_retention_priority"_a = 35, "decode_duration_ms"_a = py::none())
        .def_readonly("token_range_retention_configs", &bm::RetentionConfig::ranges)
        .def_property_readonly(
            "decode_retention_priority", [](bm::RetentionConfig const& self) { return self.decode.priority; })
        .def_property_readonly(
            "decode_duration_ms", [](bm::RetentionConfig const& self) { return self.decode.durationMs; });
}

void bindResults(py::module_& module)
{
    py::native_enum<bm::CopyKind>(module, "CopyKind", "enum.IntEnum", "What a copy is for, and between which pools.")
        .value("PARTIAL", bm::CopyKind::kPartial)
        .value("FORK", bm::CopyKind::kFork)
        .value("OFFLOAD", bm::CopyKind::kOffload)
        .value("ONBOARD", bm::CopyKind::kOnboard)
        .finalize();

    py::class_<bm::MatchExplanation>(module, "MatchExplanation", "How long a match is and why it stops there.")
        .def_readonly("cached_tokens", &bm::MatchExplanation::cachedTokens)
        .def_property_readonly("reason", [](bm::MatchExplanation const& self) { return bm::nameOf(self.stop); })
        .def_readonly("block", &bm::MatchExplanation::block)
        .def_readonly("position", &bm::MatchExplanation::position)
        .def_readonly("evicted_ms", &bm::MatchExplanation::evictedMs);

    py::class_<bm::CopyPlan>(module, "CopyPlan", "Copies to run in order, and the ticket to report them by.")
        .def_readonly("ticket", &bm::CopyPlan::ticket)
        .def_property_readonly("entries", [](bm::CopyPlan const& self) { return toArray(self.entries); });

    py::class_<bm::SequenceAllocation>(module, "SequenceAllocation", "What a sequence got when it was added.")
        .def_readonly("cached_tokens", &bm::SequenceAllocation::cachedTokens)
        .def_readonly("num_blocks", &bm::SequenceAllocation::numBlocks)
        .def_readonly("ticket", &bm::SequenceAllocation::ticket);

    py::class_<bm::WindowPoolStats>(module, "WindowPoolStats", "A snapshot of a window pool, and counts since start.")
        .def_readonly("window_size", &bm::WindowPoolStats::windowSize)
        .def_readonly("max_num_blocks", &bm::WindowPoolStats::maxNumBlocks)
        .def_readonly("free_num_blocks", &bm::WindowPoolStats::freeNumBlocks)
        .def_readonly("cached_num_blocks", &bm::WindowPoolStats::cachedNumBlocks)
        .def_readonly("promised_num_blocks", &bm::WindowPoolStats::promisedNumBlocks)
        .def_readonly("evicted_blocks", &bm::WindowPoolStats::evictedBlocks)
        .def_readonly("released_blocks", &bm::WindowPoolStats::releasedBlocks);

    py::class_<bm::DurationCounts>(module, "DurationCounts", "Durations by size, in milliseconds.")
        .def_property_readonly("bounds_ms", [](bm::DurationCounts const&) { return bm::DurationCounts::kBoundsMs; })
        .def_readonly("counts", &bm::DurationCounts::counts)
        .def_readonly("sum_ms", &bm::DurationCounts::sumMs)
        .def(
            "__eq__", [](bm::DurationCounts const& self, bm::DurationCounts const& other)
            { return self.counts == other.counts && self.sumMs == other.sumMs; }, "other"_a, py::is_operator())
        .attr("__hash__") = py::none();

    py::class_<bm::KvCacheStats>(module, "KvCacheStats", "A snapshot of the pool, and counts since start.")
        .def_readonly("max_num_blocks", &bm::KvCacheStats::maxNumBlocks)
        .def_readonly("free_num_blocks", &bm::KvCacheStats::freeNumBlocks)
        .def_readonly("used_num_blocks", &bm::KvCacheStats::usedNumBlocks)
        .def_readonly("cached_num_blocks", &bm::KvCacheStats::cachedNumBlocks)
        .def_readonly("reserved_num_blocks", &bm::KvCacheStats::reservedNumBlocks)
        .def_readonly("tokens_per_block", &bm::KvCacheStats::tokensPerBlock)
        .def_readonly("alloc_total_blocks", &bm::KvCacheStats::allocTotalBlocks)
        .def_readonly("alloc_new_blocks", &bm::KvCacheStats::allocNewBlocks)
        .def_readonly("reused_blocks", &bm::KvCacheStats::reusedBlocks)
        .def_readonly("missed_blocks", &bm::KvCacheStats::missedBlocks)
        .def_readonly("evicted_blocks", &bm::KvCacheStats::evictedBlocks)
        .def_readonly("evicted_on_device", &bm::KvCacheStats::evictedOnDevice)
        .def_readonly("evicted_on_host", &bm::KvCacheStats::evictedOnHost)
        .def_readonly("evicted_with_parent", &bm::KvCacheStats::evictedWithParent)
        .def_readonly("flushed_blocks", &bm::KvCacheStats::flushedBlocks)
        .def_readonly("evicted_idle", &bm::KvCacheStats::evictedIdle)
        .def_readonly("reused_idle", &bm::KvCacheStats::reusedIdle)
        .def_readonly("partial_reused_blocks", &bm::KvCacheStats::partialReusedBlocks)
        .def_readonly("offloaded_blocks", &bm::KvCacheStats::offloadedBlocks)
        .def_readonly("onboarded_blocks", &bm::KvCacheStats::onboardedBlocks)
        .def_readonly("host_max_num_blocks", &bm::KvCacheStats::hostMaxNumBlocks)
        .def_readonly("host_free_num_blocks", &bm::KvCacheStats::hostFreeNumBlocks)
        .def_readonly("host_cached_num_blocks", &bm::KvCacheStats::hostCachedNumBlocks)
        .def_readonly("pending_copies", &bm::KvCacheStats::pendingCopies)
        .def_readonly("dropped_events", &bm::KvCacheStats::droppedEvents)
        .def_readonly("window_pools", &bm::KvCacheStats::windowPools)
        .def_property_readonly("cache_hit_rate", &bm::KvCacheStats::cacheHitRate);
}

void bindManager(py::module_& module)
{
    using Manager = bm::KVCacheManager;
    using Unlocked = py::gil_scoped_release;

    py::class_<Manager>(module, "KVCacheManager", "Which blocks a sequence has, and which of them came from the cache.")
        .def(py::init(&makeManager), "num_blocks"_a, "tokens_per_block"_a, "enable_block_reuse"_a = true, py::kw_only(),
            "enable_partial_reuse"_a = false, "copy_on_partial_reuse"_a = true, "host_blocks"_a = 0,
            "secondary_offload_min_priority"_a = 35, "event_buffer_max_size"_a = 0, "window_pools"_a = py::tuple(),
            "max_step_tokens"_a = 0)
        .def_property_readonly("num_blocks", &Manager::numBlocks)
        .def_property_readonly("tokens_per_block", &Manager::tokensPerBlock)
        .def_property_readonly("enable_block_reuse", &Manager::enableBlockReuse)
        .def_property_readonly("num_sequences", &Manager::numSequences)
        .def(
            "add_sequence",
            [](Manager& self, bm::SequenceId id, Buffer<bm::TokenId> const& tokens, bm::MediaRuns const* media,
                bm::ReuseScope const& scope, std::int64_t maxNewTokens, bm::RetentionConfig const* retention)
            {
                bm::SequenceRequest const request{id, viewOf(tokens, "tokens"),
                    media == nullptr ? bm::MediaRunsView{} : media->view(), &scope, maxNewTokens, retention};
                Unlocked const unlocked;
                return self.addSequence(request);
            },
            "sequence_id"_a, py::arg("tokens").noconvert(), "media"_a.none(true), "scope"_a.none(false),
            "max_new_tokens"_a, "retention"_a.none(true) = py::none())
        .def(
            "add_sequence_batch",
            [](Manager& self, Buffer<bm::SequenceId> const& ids, Buffer<bm::TokenId> const& tokens,
                Buffer<std::int64_t> const& tokenOffsets, MediaBatch const* media,
                std::vector<bm::ReuseScope const*> const& scopes, Buffer<std::int64_t> const& maxNewTokens,
                std::optional<std::vector<bm::RetentionConfig const*>> const& retention)
            {
                auto const requests = makeRequests(viewOf(ids, "sequence_ids"), viewOf(tokens, "tokens"),
                    viewOf(tokenOffsets, "token_offsets"), media, scopes, viewOf(maxNewTokens, "max_new_tokens"),
                    retention);
                py::array_t<std::int64_t> cached(static_cast<py::ssize_t>(requests.size()));
                auto* const results = cached.mutable_data();
                {
                    Unlocked const unlocked;
                    self.addSequenceBatch(requests, results);
                }
                return cached;
            },
            py::arg("sequence_ids").noconvert(), py::arg("tokens").noconvert(), py::arg("token_offsets").noconvert(),
            "media"_a.none(true), "scopes"_a, py::arg("max_new_tokens").noconvert(),
            "retention"_a.none(true) = py::none())
        .def(
            "probe",
            [](Manager& self, Buffer<bm::TokenId> const& tokens, bm::MediaRuns const* media,
                bm::ReuseScope const& scope)
            {
                auto const prompt = viewOf(tokens, "tokens");
                Unlocked const unlocked;
                return self.probe(prompt, media, scope);
            },
            py::arg("tokens").noconvert(), "media"_a.none(true), "scope"_a.none(false))
        .def(
            "explain",
            [](Manager& self, Buffer<bm::TokenId> const& tokens, bm::MediaRuns const* media,
                bm::ReuseScope const& scope, bool otherSalts)
            {
                auto const prompt = viewOf(tokens, "tokens");
                Unlocked const unlocked;
                return self.explain(prompt, media == nullptr ? bm::MediaRunsView{} : media->view(), scope, otherSalts);
            },
            py::arg("tokens").noconvert(), "media"_a.none(true), "scope"_a.none(false), "other_salts"_a = true)
        .def(
            "append_tokens",
            [](Manager& self, bm::SequenceId id, Buffer<bm::TokenId> const& tokens)
            {
                auto const added = viewOf(tokens, "tokens");
                Unlocked const unlocked;
                self.appendTokens(id, added);
            },
            "sequence_id"_a, py::arg("tokens").noconvert())
        .def(
            "append_batch",
            [](Manager& self, Buffer<bm::SequenceId> const& ids, Buffer<bm::TokenId> const& tokens)
            {
                auto const rows = viewOf(ids, "sequence_ids");
                auto const added = viewOf(tokens, "tokens");
                Unlocked const unlocked;
                self.appendBatch(rows, added);
            },
            py::arg("sequence_ids").noconvert(), py::arg("tokens").noconvert())
        .def(
            "grow_batch",
            [](Manager& self, Buffer<bm::SequenceId> const& ids)
            {
                auto const rows = viewOf(ids, "sequence_ids");
                Unlocked const unlocked;
                self.growBatch(rows);
            },
            py::arg("sequence_ids").noconvert())
        .def(
            "name_batch",
            [](Manager& self, Buffer<bm::SequenceId> const& ids, Buffer<bm::TokenId> const& tokens)
            {
                auto const rows = viewOf(ids, "sequence_ids");
                auto const named = viewOf(tokens, "tokens");
                Unlocked const unlocked;
                self.nameBatch(rows, named);
            },
            py::arg("sequence_ids").noconvert(), py::arg("tokens").noconvert())
        .def("commit", py::overload_cast<bm::SequenceId, std::int64_t>(&Manager::commit), "sequence_id"_a,
            "num_written"_a, py::call_guard<Unlocked>())
        .def(
            "commit_batch",
            [](Manager& self, Buffer<bm::SequenceId> const& ids, Buffer<std::int64_t> const& numWritten)
            {
                auto const rows = viewOf(ids, "sequence_ids");
                auto const written = viewOf(numWritten, "num_written");
                py::array_t<bool> changed(static_cast<py::ssize_t>(rows.size()));
                auto* const flags = changed.mutable_data();
                {
                    Unlocked const unlocked;
                    self.commitBatch(rows, written, flags);
                }
                return changed;
            },
            py::arg("sequence_ids").noconvert(), py::arg("num_written").noconvert())
        .def("fork", &Manager::fork, "source_id"_a, "sequence_id"_a, py::call_guard<Unlocked>())
        .def("extend_sequence", &Manager::extendSequence, "sequence_id"_a, "max_new_tokens"_a,
            py::call_guard<Unlocked>())
        .def("share_tail", &Manager::shareTail, "source_id"_a, "sequence_id"_a, py::call_guard<Unlocked>())
        .def("rewind", &Manager::rewind, "sequence_id"_a, "num_tokens"_a, py::call_guard<Unlocked>())
        .def("free_sequence", &Manager::freeSequence, "sequence_id"_a, "keep"_a = true, py::call_guard<Unlocked>())
        .def(
            "free_batch",
            [](Manager& self, Buffer<bm::SequenceId> const& ids, bool keep)
            {
                auto const rows = viewOf(ids, "sequence_ids");
                Unlocked const unlocked;
                self.freeBatch(rows, keep);
            },
            py::arg("sequence_ids").noconvert(), "keep"_a = true)
        .def("take_copy_plan", &Manager::takeCopyPlan)
        .def("copies_done", &Manager::copiesDone, "ticket"_a, py::call_guard<Unlocked>())
        .def("flush_events", &Manager::flushEvents, py::call_guard<Unlocked>())
        .def("take_events", &Manager::takeEventLines, "most"_a, py::call_guard<Unlocked>())
        .def("refresh", &Manager::refresh, "now_ms"_a, py::call_guard<Unlocked>())
        .def("reset_reuse_state", &Manager::resetReuseState, py::call_guard<Unlocked>())
        .def(
            "block_ids", [](Manager const& self, bm::SequenceId id, std::int32_t pool)
            { return toArray(self.blockIds(id, pool)); }, "sequence_id"_a, "pool"_a = 0)
        .def(
            "block_tables",
            [](Manager const& self, Buffer<bm::SequenceId> const& ids, std::int32_t pool)
            {
                auto const rows = viewOf(ids, "sequence_ids");
                bm::BlockTables tables;
                {
                    Unlocked const unlocked;
                    tables = self.blockTables(rows, pool);
                }
                return toArray(tables);
            },
            py::arg("sequence_ids").noconvert(), "pool"_a = 0)
        .def("stats", &Manager::stats)
        .def("block_map", &Manager::blockMap, py::call_guard<Unlocked>())
        .def("check_integrity", &Manager::checkIntegrity, py::call_guard<Unlocked>());
}

void bindPack(py::module_& module)
{
    module.def(
        "pack_strided",
        [](py::array const& source, Buffer<std::uint8_t>& into)
        {
            auto const axes = axesOf(source);
            auto* const room = static_cast<std::byte*>(roomFor(source, into));
            auto const* const begin = static_cast<std::byte const*>(source.data());
            auto const itemSize = static_cast<std::size_t>(source.itemsize());
            py::gil_scoped_release const unlocked;
            tensorrt_llm::common::packStrided(begin, axes, itemSize, room);
        },
        "source"_a.noconvert(), "into"_a.noconvert());
}

} // namespace

PYBIND11_MODULE(_bindings, module)
{
    module.doc() = "KV cache manager: pure bookkeeping of blocks, in C++.";
    bindErrors(module);
    bindKey(module);
    bindRetention(module);
    bindResults(module);
    bindManager(module);
    bindPack(module);
}
