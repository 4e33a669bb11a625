# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What users may configure, with defaults, bounds and the words that explain them.

The command line, the YAML file and the ``LLM`` constructor all end in `LlmArgs`. Unknown fields are
refused. Fields that TensorRT-LLM has and this release does not implement are declared with `inert`:
they are accepted at a value that means what this release does, and refused by name otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Field,
    field_validator,
    model_validator,
)

from tensorrt_llm.errors import RequestError
from tensorrt_llm.llmapi.strict_model import StrictModel, inert, parse_bytes

ModelDtype: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]
HashAlgorithm: TypeAlias = Literal["blake3", "sha256", "xxh3_128"]
DeviceName: TypeAlias = Literal["auto", "cpu", "cuda"]
AttentionName: TypeAlias = Literal["auto", "triton", "sdpa"]

DEFAULT_GRAPH_BATCH = 64

DISAGGREGATED_VARIABLE = "TLLM_MULTIMODAL_DISAGGREGATED"
SINGLE_PROCESS_VARIABLE = "TLLM_WORKER_USE_SINGLE_PROCESS"


def _none_is_default_priority(value: Any) -> Any:
    return 35 if value is None else value


class KvEventsConfig(StrictModel):
    """A stream of cache events over ZeroMQ, in the form that routers for vLLM read."""

    enable_kv_cache_events: bool = Field(False, description="Whether there is a stream.")
    publisher: Literal["zmq", "null"] = Field("zmq", description="null: no stream after all.")
    endpoint: str = Field(
        "tcp://127.0.0.1:5557",
        description="Where readers subscribe; tcp://*:5557 lets other machines read the tokens and "
        "salts of all callers.",
    )
    replay_endpoint: str | None = Field(
        None, description="Where readers ask again for what they missed."
    )
    topic: str = Field("", description="First part of each message.")
    buffer_steps: int = Field(10_000, ge=1, description="Messages kept for who asks again.")
    hwm: int = Field(
        100_000, ge=1, description="Messages waiting for one slow reader; more are not sent to it."
    )
    max_queue_size: int = Field(
        65_536, ge=1, description="Events kept until they are sent; the oldest go first."
    )

    @property
    def active(self) -> bool:
        """Whether there is a stream."""
        return self.enable_kv_cache_events and self.publisher == "zmq"


class KvCacheConfig(StrictModel):
    """The paged KV cache and the reuse of its blocks between requests."""

    enable_block_reuse: bool = Field(
        True,
        description="Reuse KV blocks of earlier requests whose prompt begins with the same tokens "
        "and the same media. A request whose media cannot be identified shares nothing from that "
        "media on.",
    )
    strict_reuse: bool = Field(
        False,
        description="Refuse to start a model that takes a kind of media which its family cannot "
        "identify, rather than not sharing such requests.",
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
    event_buffer_max_size: int = Field(
        0,
        ge=0,
        description="Most events on cached blocks that are kept for who reads them (POST "
        "/kv_cache_events, LLM.get_kv_cache_events); the oldest go first. 0 makes none.",
    )
    kv_events_config: KvEventsConfig | None = Field(
        None, description="A stream of these events over ZeroMQ; then that is their one reader."
    )

    onboard_blocks: bool = inert("switching onboarding off", True)
    disk_cache_size: int | None = inert("disk offload", None, 0)
    disk_cache_path: str | None = inert("disk offload", None)
    disk_prefetch_num_reqs: int = inert("disk offload", 0)
    attention_dp_events_gather_period_ms: int = inert("attention data parallelism", 5)
    kv_cache_event_hash_algo: str = inert("the stream of KV cache events", "auto")
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

    @property
    def events_kept(self) -> int:
        """Most events that wait for their reader; 0 where none are made."""
        stream = self.kv_events_config
        if stream is not None and stream.active:
            return max(stream.max_queue_size, self.event_buffer_max_size)
        return self.event_buffer_max_size

    @field_validator("dtype", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _strict_needs_reuse(self) -> KvCacheConfig:
        if self.strict_reuse and not self.enable_block_reuse:
            raise RequestError("needs enable_block_reuse, which is off", part="strict_reuse")
        return self

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
    enable_prefix_aware_scheduling: bool = inert(
        "scheduling that does not know which prompts begin alike", True
    )


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
    silence_seconds: float = Field(
        20.0,
        ge=2,
        description="Seconds without a sign of life of the engine's process, which gives one every "
        "second however long a step takes, after which it counts as stuck and is killed.",
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


class CudaGraphConfig(StrictModel):
    """CUDA graphs of steps with one token a request; no effect on the CPU."""

    batch_sizes: list[Annotated[int, Field(ge=1)]] | None = Field(
        None,
        description="Batch sizes that are captured; a batch is filled up to the next. None: the "
        "powers of two up to max_batch_size.",
    )
    max_batch_size: int = Field(
        0, ge=0, description="Largest size where batch_sizes is None; 0 takes 64."
    )

    enable_padding: bool = inert("graphs for batches of a captured size alone", True)

    def sizes(self, most: int) -> tuple[int, ...]:
        """The sizes to capture, ascending.

        Args:
            most: Most requests in a step: larger sizes are left out.
        """
        wanted = self.batch_sizes
        if wanted is None:
            largest = min(self.max_batch_size or DEFAULT_GRAPH_BATCH, most)
            wanted = [1 << power for power in range(largest.bit_length())] + [largest]
        return tuple(sorted({size for size in wanted if size <= most}))


class NGramDecodingConfig(StrictModel):
    """Speculative decoding by prompt lookup: what followed the last tokens before is guessed.

    The answer is the one without it: a guess counts as far as the model would have chosen it.
    """

    decoding_type: Literal["NGram"] = Field("NGram", description="The one kind there is.")
    max_draft_len: int = Field(ge=1, le=128, description="Most tokens guessed in a step.")
    max_matching_ngram_size: int = Field(
        2, ge=1, le=64, description="Most last tokens of prompt and answer that are looked up."
    )
    is_keep_all: bool = Field(True, description="Accepted for compatibility, says nothing.")
    is_use_oldest: bool = Field(
        True,
        description="Accepted for compatibility: the newest place counts that is followed by "
        "max_draft_len tokens.",
    )
    is_public_pool: bool = Field(
        True,
        description="Accepted for compatibility: only the request's own tokens are looked at, as "
        "those of others would tell about them.",
    )


class LoraConfig(StrictModel):
    """Adapters that requests name, beside those of the checkpoint itself."""

    max_lora_rank: int = Field(64, ge=1, description="Highest rank of an adapter that is loaded.")
    max_loras: int = Field(
        16,
        ge=0,
        description="Most adapters that are loaded at a time. Those of equal content are one.",
    )

    lora_dir: list[str] = inert("loading adapters at start (name them by request)", [])
    lora_ckpt_source: str = inert("another adapter format than PEFT's", "hf")
    lora_target_modules: list[str] = inert("choosing layers (the adapter says them)", [])
    trtllm_modules_to_hf_modules: Any = inert("renaming layers of adapters", None, {})
    max_cpu_loras: int | None = inert("keeping adapters in host memory", None)


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
    custom_module_dirs: list[str] = Field(
        [],
        description="Folders of Python packages that register model families of their own when "
        "they are imported (docs/supported-models.md).",
    )
    dtype: ModelDtype = Field(
        "auto", description="Type of the weights and activations; auto takes the checkpoint's."
    )
    device: DeviceName = Field(
        "auto", description="Where the model runs; auto takes CUDA if there is a device."
    )
    attn_backend: AttentionName = Field(
        "auto",
        description="Who computes attention: triton reads block tables on a CUDA device; sdpa runs "
        "everywhere, one call a sequence. auto takes the first that runs.",
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
    max_beam_width: int | None = Field(
        None,
        ge=1,
        description="Most beams of a search; more are refused, and 1 refuses use_beam_search. "
        "None: as many as max_batch_size and the KV cache hold.",
    )
    enable_chunked_prefill: bool = Field(
        False,
        description="Split prompts longer than what max_num_tokens leaves over several steps.",
    )
    disable_overlap_scheduler: bool = Field(
        True,
        description="If false, the next step is prepared while the current one computes, in a "
        "thread of its own; answers are the same.",
    )
    chat_template: str | None = Field(
        None, description="Chat template, as a path or as Jinja text; the tokenizer's by default."
    )
    otlp_traces_endpoint: str | None = Field(
        None,
        description="Where trtllm-serve sends OpenTelemetry traces of requests (OTLP over HTTP), "
        "for example http://localhost:4318. Needs the extra [otel].",
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
    cuda_graph_config: CudaGraphConfig | None = Field(
        default_factory=CudaGraphConfig,
        description="CUDA graphs of steps with one token a request; None runs kernel by kernel.",
    )
    lora_config: Annotated[LoraConfig, BeforeValidator(_none_is_default)] = Field(
        default_factory=LoraConfig, description="Adapters that requests name."
    )
    speculative_config: NGramDecodingConfig | None = Field(
        None, description="Guess tokens by prompt lookup; None guesses none."
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
    enable_iter_perf_stats: bool = inert("switching iteration statistics off", True)
    return_perf_metrics: bool = inert("per-request performance metrics", False)
    perf_metrics_max_requests: int = inert("per-request performance metrics", 0)
    num_postprocess_workers: int = inert("postprocessing in other processes", 0)
    reasoning_parser: str | None = inert("parsing of reasoning", None)
    checkpoint_format: str | None = inert("another checkpoint format than HF", None, "HF")
    env_overrides: dict[str, str] | None = inert("setting environment variables", None)
    encode_only: bool = inert("running an encoder alone", False)

    @model_validator(mode="after")
    def _check_events_name_no_secrets(self) -> LlmArgs:
        events = self.kv_cache_config.events_kept > 0
        if events and self.multimodal_config.hash_algorithm == "xxh3_128":
            raise ValueError(
                "kv_cache_config.event_buffer_max_size: events tell identities of media, and those "
                "of multimodal_config.hash_algorithm xxh3_128 must not leave the process; take "
                "blake3"
            )
        return self

    @field_validator("model", mode="before")
    @classmethod
    def _path_as_text(cls, value: Any) -> Any:
        return os.fspath(value) if isinstance(value, os.PathLike) else value


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
