# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What users may configure, with defaults, bounds and the words that explain them.

The command line, the YAML file and the ``LLM`` constructor all end in `LlmArgs`. Unknown fields are
refused. Fields that TensorRT-LLM has and this release does not implement are declared with `inert`:
they are accepted at a value that means what this release does, and refused by name otherwise.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from tensorrt_llm.errors import RequestError

ModelDtype: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]
HashAlgorithm: TypeAlias = Literal["blake3", "sha256", "xxh3_128"]
DeviceName: TypeAlias = Literal["auto", "cpu", "cuda"]

DISAGGREGATED_VARIABLE = "TLLM_MULTIMODAL_DISAGGREGATED"
SINGLE_PROCESS_VARIABLE = "TLLM_WORKER_USE_SINGLE_PROCESS"

_BYTE_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}


def parse_bytes(value: Any) -> Any:
    """Turns a size such as ``"512MiB"``, ``"1.5 GB"`` or ``"4096"`` into a number of bytes.

    Values that are no text are returned unchanged, for pydantic to judge.

    Raises:
        ValueError: If the text is no size.
    """
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", value.lower())
    if match is None or match[2] not in _BYTE_UNITS:
        raise ValueError(f"{value!r} is no size; write bytes or for example '512MiB'")
    return int(float(match[1]) * _BYTE_UNITS[match[2]])


def inert(what: str, *values: Any) -> Any:
    """A field that is accepted only at the given values, because this release lacks the feature.

    Args:
        what: The feature, as the subject of "... is not available in this release".
        values: Accepted values; the first is the default.
    """
    return Field(
        default=values[0],
        description=f"Accepted for compatibility: {what} is not available in this release.",
        json_schema_extra={"inert": list(values), "feature": what},
    )


def _same_scalar(value: Any, other: Any) -> bool:
    # True == 1 in Python; a user who writes one does not mean the other.
    return isinstance(value, bool) == isinstance(other, bool) and value == other


class StrictModel(BaseModel):
    """Base of all models that users fill in: unknown fields refused, inert fields checked."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, protected_namespaces=())

    _inert: ClassVar[dict[str, dict[str, Any]]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Finds the inert fields once: every field of every request asks for them."""
        cls._inert = {
            name: field.json_schema_extra
            for name, field in cls.model_fields.items()
            if isinstance(field.json_schema_extra, dict) and "inert" in field.json_schema_extra
        }

    @field_validator("*", mode="before")
    @classmethod
    def _check_inert(cls, value: Any, info: ValidationInfo) -> Any:
        extra = cls._inert.get(info.field_name or "")
        if extra and not any(_same_scalar(value, ok) for ok in extra["inert"]):
            accepted = " or ".join(repr(ok) for ok in extra["inert"])
            raise ValueError(
                f"{info.field_name}: {extra['feature']} is not available in this release; "
                f"leave it unset or at {accepted}, got {value!r}"
            )
        return value

    @classmethod
    def inert_fields(cls) -> dict[str, dict[str, Any]]:
        """Fields that are accepted at some values only, with those values under ``"inert"``."""
        return cls._inert

    def effective(self) -> dict[str, Any]:
        """The settings that have an effect, defaults filled in, as plain data."""
        result: dict[str, Any] = {}
        for name in type(self).model_fields:
            if name in self.inert_fields():
                continue
            value = getattr(self, name)
            result[name] = value.effective() if isinstance(value, StrictModel) else value
        return result


def _none_is_default_priority(value: Any) -> Any:
    return 35 if value is None else value


class KvCacheConfig(StrictModel):
    """The paged KV cache and the reuse of its blocks between requests."""

    enable_block_reuse: bool = Field(
        True,
        description="Reuse KV blocks of earlier requests whose prompt begins with the same tokens "
        "and the same media. A request whose media cannot be identified shares nothing from that "
        "media on.",
    )
    max_tokens: int | None = Field(
        None,
        ge=1,
        description="Capacity of the KV pool in tokens. With free_gpu_memory_fraction the smaller "
        "of the two wins.",
    )
    free_gpu_memory_fraction: float | None = Field(
        0.9,
        ge=0,
        le=1,
        description="Part of the device memory left free by the weights that the KV pool may take.",
    )
    tokens_per_block: int = Field(
        32, description="Tokens in a block, the unit of reuse. A power of two above 1."
    )
    dtype: ModelDtype = Field(
        "auto", description="Type of the stored keys and values; auto takes the model's."
    )

    enable_partial_reuse: bool = Field(
        True, description="Reuse the leading part of a block where the whole does not match."
    )
    copy_on_partial_reuse: bool = Field(
        True,
        description="Copy that part where another request uses the block; if false such a block "
        "is left alone.",
    )
    host_cache_size: Annotated[int | None, BeforeValidator(parse_bytes)] = Field(
        None,
        ge=0,
        description="Bytes of host memory for blocks that the device pool has no room for, as a "
        "number or as text such as '4GiB'. None or 0: such blocks are dropped.",
    )
    secondary_offload_min_priority: Annotated[int, BeforeValidator(_none_is_default_priority)] = (
        Field(35, ge=0, le=100, description="Blocks of a lower priority are dropped.")
    )

    onboard_blocks: bool = inert("switching onboarding off", True)
    disk_cache_size: int | None = inert("disk offload", None, 0)
    disk_cache_path: str | None = inert("disk offload", None)
    disk_prefetch_num_reqs: int = inert("disk offload", 0)
    event_buffer_max_size: int = inert("the stream of KV cache events", 0)
    attention_dp_events_gather_period_ms: int = inert("attention data parallelism", 5)
    kv_cache_event_hash_algo: str = inert("the stream of KV cache events", "auto")
    kv_events_config: Any = inert("the stream of KV cache events", None)
    max_attention_window: list[int] | None = inert("a sliding attention window", None)
    sink_token_length: int | None = inert("attention to sink tokens", None)
    cross_kv_cache_fraction: float | None = inert("a cross-attention cache", None)
    use_uvm: bool = inert("unified memory", False)
    max_gpu_total_bytes: int = inert("a pool size in bytes (use max_tokens)", 0)
    iteration_stats_interval: int = inert("thinning of iteration statistics", 1)
    use_kv_cache_manager_v2: bool | str = inert("the V2 cache manager", False, "auto")
    block_reuse_policy: str = inert("another reuse policy", "all_reusable")
    block_reuse_config: Any = inert("another reuse policy", None)
    max_util_for_resume: float = inert("the V2 cache manager", 0.95)
    enable_kv_pool_rebalance: bool = inert("the V2 cache manager", False)
    pool_ratio: list[float] | None = inert("the V2 cache manager", None)
    avg_seq_len: int | None = inert("the V2 cache manager", None)
    enable_swa_scratch_reuse: bool = inert("the V2 cache manager", False)
    mamba_ssm_cache_dtype: str = inert("state of hybrid models", "auto")
    mamba_ssm_stochastic_rounding: bool = inert("state of hybrid models", False)
    mamba_ssm_philox_rounds: int = inert("state of hybrid models", 10)
    mamba_state_cache_interval: int = inert("state of hybrid models", 256)
    mamba_state_config: Any = inert("state of hybrid models", None)

    @field_validator("dtype", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @field_validator("tokens_per_block")
    @classmethod
    def _power_of_two(cls, value: int) -> int:
        if value < 2 or value & (value - 1):
            raise ValueError(f"must be a power of two above 1, got {value}")
        return value


class MultimodalConfig(StrictModel):
    """Media: how items are identified, and how many encoder rows are kept."""

    encoder_cache_max_bytes: Annotated[int, BeforeValidator(parse_bytes)] = Field(
        512 * 2**20,
        ge=0,
        description="Most bytes of encoder rows kept for later requests, as a number or as text "
        "such as '512MiB'. 0 keeps none beyond the requests that need them.",
    )
    encoder_cache_host_max_bytes: Annotated[int, BeforeValidator(parse_bytes)] = Field(
        0,
        ge=0,
        description="Most bytes of encoder rows kept in host memory when they have to leave the "
        "device, as a number or as text. 0 drops them. Has no effect on the CPU.",
    )
    hash_algorithm: HashAlgorithm = Field(
        "blake3",
        description="What identifies media. xxh3_128 is faster and keyed with a secret of the "
        "process, but not collision-resistant: for a single tenant only.",
    )

    media_memo_max_bytes: Annotated[int, BeforeValidator(parse_bytes)] = Field(
        64 * 2**20,
        ge=0,
        description="Most bytes for remembering the digests and sizes of media sent before, so "
        "that a repeat is not decoded; as a number or as text. 0 decodes every time.",
    )

    encoder_side_stream_max_ahead: int = inert("encoding ahead on a side stream", 0)
    encoder_cuda_graph: Any = inert("CUDA graphs for encoders", None)
    video_pruning_rate: float | None = inert("video pruning", None)


class SchedulerConfig(StrictModel):
    """Which requests run in a step."""

    capacity_scheduler_policy: Literal["GUARANTEED_NO_EVICT", "MAX_UTILIZATION"] = Field(
        "GUARANTEED_NO_EVICT",
        description="Who may hold KV blocks. GUARANTEED_NO_EVICT admits a request when all of it "
        "fits, so that it can finish. MAX_UTILIZATION admits what fits now; when the pool runs "
        "out, the latest request of the lowest priority is paused and recomputed later.",
    )
    context_chunking_policy: str | None = inert(
        "another chunking policy than FIRST_COME_FIRST_SERVED", None, "FIRST_COME_FIRST_SERVED"
    )
    waiting_queue_policy: str | None = inert("another queue policy than fcfs", None, "fcfs")


class EngineConfig(StrictModel):
    """The engine's process: when it counts as stuck, and how often it is started again.

    ``TLLM_WORKER_USE_SINGLE_PROCESS=1`` in the environment runs the engine in a thread of the
    server's process instead; it is not started again then.
    """

    stall_seconds: float = Field(
        120.0,
        ge=2,
        description="Seconds without a turn of the engine's loop after which it counts as stuck "
        "and is killed. A turn takes as long as a step.",
    )
    load_seconds: float = Field(
        1800.0,
        ge=2,
        description="Seconds that an engine may take to load the checkpoint; after that it is "
        "killed, and counts as one that died.",
    )
    max_restarts: int = Field(
        5,
        ge=0,
        description="Most restarts of an engine that died within restart_window_seconds. 0: none.",
    )
    restart_window_seconds: float = Field(
        600.0, gt=0, description="Seconds after which a restart no longer counts."
    )
    restart_delay_seconds: float = Field(
        1.0,
        ge=0,
        description="Seconds before the second restart of the window; doubled for each further "
        "one, to at most 30. The first restart does not wait.",
    )


def _none_is_default(value: Any) -> Any:
    return {} if value is None else value


class LlmArgs(StrictModel):
    """Everything that decides how a model is loaded and run."""

    model: str = Field(description="Folder of the checkpoint, in Hugging Face format.")
    tokenizer: Any = Field(
        None, description="Folder of the tokenizer, or a tokenizer; the checkpoint's by default."
    )
    trust_remote_code: bool = Field(
        False, description="Accepted for compatibility: code in a checkpoint is never executed."
    )
    dtype: ModelDtype = Field(
        "auto", description="Type of the weights and activations; auto takes the checkpoint's."
    )
    device: DeviceName = Field(
        "auto", description="Where the model runs; auto takes CUDA if there is a device."
    )
    max_batch_size: int = Field(2048, ge=1, description="Most requests in one step.")
    max_num_tokens: int = Field(8192, ge=1, description="Most tokens in one step.")
    max_seq_len: int | None = Field(
        None,
        ge=2,
        description="Most tokens of a request, prompt and answer together; None takes the model's.",
    )
    max_queue_size: int | None = Field(
        None,
        ge=1,
        description="Most requests waiting to start; more are refused (HTTP 429). None: no bound.",
    )
    enable_chunked_prefill: bool = Field(
        False,
        description="Split prompts longer than what max_num_tokens leaves over several steps.",
    )
    chat_template: str | None = Field(
        None, description="Chat template, as a path or as Jinja text; the tokenizer's by default."
    )
    kv_cache_config: Annotated[KvCacheConfig, BeforeValidator(_none_is_default)] = Field(
        default_factory=KvCacheConfig, description="The KV cache and its reuse."
    )
    multimodal_config: Annotated[MultimodalConfig, BeforeValidator(_none_is_default)] = Field(
        default_factory=MultimodalConfig, description="Media."
    )
    scheduler_config: Annotated[SchedulerConfig, BeforeValidator(_none_is_default)] = Field(
        default_factory=SchedulerConfig, description="Which requests run in a step."
    )
    engine_config: Annotated[EngineConfig, BeforeValidator(_none_is_default)] = Field(
        default_factory=EngineConfig, description="The engine's process."
    )

    backend: str | None = inert("another backend than pytorch", "pytorch", None)
    tokenizer_mode: str = inert("another tokenizer mode than auto", "auto")
    skip_tokenizer_init: bool = inert("running without a tokenizer", False)
    revision: str | None = inert("downloading a model revision", None)
    tokenizer_revision: str | None = inert("downloading a tokenizer revision", None)
    tensor_parallel_size: int = inert("tensor parallelism", 1)
    pipeline_parallel_size: int = inert("pipeline parallelism", 1)
    context_parallel_size: int = inert("context parallelism", 1)
    moe_expert_parallel_size: int | None = inert("expert parallelism", None, 1)
    enable_attention_dp: bool = inert("attention data parallelism", False)
    max_beam_width: int = inert("beam search", 1)
    enable_iter_perf_stats: bool = inert("switching iteration statistics off", True)
    return_perf_metrics: bool = inert("per-request performance metrics", False)
    perf_metrics_max_requests: int = inert("per-request performance metrics", 0)
    num_postprocess_workers: int = inert("postprocessing in other processes", 0)
    reasoning_parser: str | None = inert("parsing of reasoning", None)
    otlp_traces_endpoint: str | None = inert("tracing", None)
    checkpoint_format: str | None = inert("another checkpoint format than HF", None, "HF")
    env_overrides: dict[str, str] | None = inert("setting environment variables", None)
    encode_only: bool = inert("running an encoder alone", False)

    @field_validator("model", mode="before")
    @classmethod
    def _path_as_text(cls, value: Any) -> Any:
        return os.fspath(value) if isinstance(value, os.PathLike) else value


def describe_errors(error: ValidationError) -> list[tuple[str, str]]:
    """Says what is wrong in words for users: ``(field path, reason)`` for each mistake.

    Args:
        error: What pydantic raised, also for a request body.
    """
    return [describe_mistake(item) for item in error.errors()]


def field_path(location: Sequence[int | str]) -> str:
    """Writes a location as users write it, for example ``messages[0].content``."""
    path = ""
    for step in location:
        # Pydantic also names the member of a union that it tried; that is no part of the input.
        if isinstance(step, str) and re.fullmatch(r"str|int|list\[.*\]", step):
            continue
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    return path


def describe_mistake(item: Mapping[str, Any]) -> tuple[str, str]:
    """Says what is wrong in one of pydantic's error items: ``(field path, reason)``."""
    path = field_path(item["loc"])
    cause = item.get("ctx", {}).get("error")
    if isinstance(cause, RequestError) and cause.part is not None:
        return (f"{path}.{cause.part}" if path else cause.part), cause.message
    if item["type"] == "extra_forbidden":
        return path, "unknown field"
    if item["type"] == "missing":
        return path, "missing"
    reason = item["msg"].removeprefix("Value error, ")
    return path, reason.removeprefix(f"{item['loc'][-1]}: " if item["loc"] else "")


def refuse_disaggregated(environment: Mapping[str, str] | None = None) -> None:
    """Refuses the environment setting that asks for encoder and decoder in different servers.

    Args:
        environment: Where to look; ``os.environ`` by default.

    Raises:
        NotImplementedError: If the setting is on. The message names it.
    """
    value = (os.environ if environment is None else environment).get(DISAGGREGATED_VARIABLE, "0")
    if value not in ("", "0"):
        raise NotImplementedError(
            f"{DISAGGREGATED_VARIABLE}={value}: disaggregated multimodal serving is not available "
            "in this release"
        )


def use_single_process(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the environment asks for the engine in the caller's process.

    Args:
        environment: Where to look; ``os.environ`` by default.
    """
    value = (os.environ if environment is None else environment).get(SINGLE_PROCESS_VARIABLE, "0")
    return value not in ("", "0")
