# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Triton kernels over a paged pool: store new keys and values, attend, join split results.

A tile is ``BLOCK_Q`` neighbouring tokens of one sequence times the query heads that share a key
head: its rows are independent queries over the same keys. Tokens of a sequence that have few such
rows (one token, in the generation phase) leave most of a GPU idle, so their keys can be split over
several programs; each keeps an unnormalised result, and ``join_splits`` adds them up.

Scores live in base 2: ``scale`` already holds the factor ``log2(e)``.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def store_kv(
    key,
    value,
    key_pool,
    value_pool,
    slots,
    key_stride_token,
    key_stride_head,
    value_stride_token,
    value_stride_head,
    pool_stride_token,
    HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    ROW: tl.constexpr,
):
    """Writes one token's keys and values to its slot; a negative slot is of no token."""
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + token).to(tl.int64)
    index = tl.arange(0, ROW)
    inside = (index < HEADS * HEAD_DIM) & (slot >= 0)
    head, dim = index // HEAD_DIM, index % HEAD_DIM
    target = slot * pool_stride_token + index
    keys = tl.load(key + token * key_stride_token + head * key_stride_head + dim, mask=inside)
    tl.store(key_pool + target, keys.to(key_pool.dtype.element_ty), mask=inside)
    values = tl.load(
        value + token * value_stride_token + head * value_stride_head + dim, mask=inside
    )
    tl.store(value_pool + target, values.to(value_pool.dtype.element_ty), mask=inside)


@triton.jit
def _attend_keys(
    acc,
    top,
    total,
    queries,
    first_key,
    kv_len,
    positions,
    span_begin,
    span_end,
    key_head,
    value_head,
    table,
    pool_stride_token,
    scale,
    window,
    HEAD_DIM: tl.constexpr,
    DIM: tl.constexpr,
    TOKENS_PER_BLOCK: tl.constexpr,
    BLOCK_N: tl.constexpr,
    MASKED: tl.constexpr,
    HAS_SPANS: tl.constexpr,
    HAS_WINDOW: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One step of the running softmax: ``BLOCK_N`` keys from ``first_key`` on.

    ``top`` is the highest score so far, ``total`` the sum of weights relative to it.
    """
    keys_at = first_key + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, DIM)
    written = keys_at < kv_len
    block = tl.load(table + keys_at // TOKENS_PER_BLOCK, mask=written, other=0).to(tl.int64)
    rows = (block * TOKENS_PER_BLOCK + keys_at % TOKENS_PER_BLOCK) * pool_stride_token
    there = written[:, None] & (dims[None, :] < HEAD_DIM)
    if MASKED or DIM != HEAD_DIM:
        keys = tl.load(key_head + rows[:, None] + dims[None, :], mask=there, other=0.0)
    else:
        keys = tl.load(key_head + rows[:, None] + dims[None, :])
    keys = keys.to(queries.dtype)
    scores = tl.dot(queries, tl.trans(keys), input_precision=PRECISION) * scale
    if MASKED:
        visible = keys_at[None, :] <= positions[:, None]
        if HAS_SPANS:
            visible = visible | (
                (keys_at[None, :] >= span_begin[:, None]) & (keys_at[None, :] < span_end[:, None])
            )
        if HAS_WINDOW:
            visible = visible & (keys_at[None, :] > positions[:, None] - window)
        scores = tl.where(visible & written[None, :], scores, float("-inf"))
    new_top = tl.maximum(top, tl.max(scores, 1))
    # A row that has seen no key yet has nothing to be relative to.
    base = tl.where(new_top == float("-inf"), 0.0, new_top)
    weights = tl.exp2(scores - base[:, None])
    shrink = tl.exp2(top - base)
    total = total * shrink + tl.sum(weights, 1)
    if MASKED or DIM != HEAD_DIM:
        values = tl.load(value_head + rows[:, None] + dims[None, :], mask=there, other=0.0)
    else:
        values = tl.load(value_head + rows[:, None] + dims[None, :])
    values = values.to(queries.dtype)
    acc = acc * shrink[:, None]
    acc = tl.dot(weights.to(queries.dtype), values, acc, input_precision=PRECISION)
    return acc, new_top, total


# Without this each number of splits, and each length of a table, would be compiled anew.
@triton.jit(do_not_specialize=["window", "num_heads", "splits"])
def attend(
    query,
    key_pool,
    value_pool,
    output,
    partial,
    partial_top,
    partial_total,
    tile_sequences,
    tile_tokens,
    query_starts,
    kv_lens,
    block_tables,
    spans,
    scale,
    window,
    query_stride_token,
    query_stride_head,
    output_stride_token,
    pool_stride_token,
    table_stride,
    num_heads,
    splits,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    DIM: tl.constexpr,
    TOKENS_PER_BLOCK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SPLIT: tl.constexpr,
    HAS_SPANS: tl.constexpr,
    HAS_WINDOW: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Attends with one tile and one key head over the keys of its split."""
    tile, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    sequence = tl.load(tile_sequences + tile)
    first_token = tl.load(tile_tokens + tile)  # within the sequence's new tokens
    start = tl.load(query_starts + sequence)
    query_len = tl.load(query_starts + sequence + 1) - start
    kv_len = tl.load(kv_lens + sequence)

    row = tl.arange(0, BLOCK_M)
    dims = tl.arange(0, DIM)
    token = first_token + row // GROUP
    head = kv_head * GROUP + row % GROUP
    real = (row < BLOCK_Q * GROUP) & (token < query_len)
    flat = (start + token).to(tl.int64)
    inside = real[:, None] & (dims[None, :] < HEAD_DIM)
    queries = tl.load(
        query
        + flat[:, None] * query_stride_token
        + head[:, None] * query_stride_head
        + dims[None, :],
        mask=inside,
        other=0.0,
    )
    positions = tl.where(real, kv_len - query_len + token, 0)
    first_position = kv_len - query_len + first_token
    last_position = tl.minimum(first_position + BLOCK_Q, kv_len) - 1
    end = last_position + 1
    span_begin = tl.zeros([BLOCK_M], tl.int32)
    span_end = tl.zeros([BLOCK_M], tl.int32)
    if HAS_SPANS:
        span_begin = tl.load(spans + flat * 2, mask=real, other=0)
        span_end = tl.load(spans + flat * 2 + 1, mask=real, other=0)
        end = tl.minimum(tl.maximum(end, tl.max(span_end, 0)), kv_len)
    begin = 0
    if HAS_WINDOW:
        begin = tl.maximum(first_position - window + 1, 0) // BLOCK_N * BLOCK_N

    if SPLIT:
        share = tl.cdiv(tl.cdiv(end - begin, BLOCK_N), splits) * BLOCK_N
        begin += split * share
        end = tl.minimum(end, begin + share)
    # Up to here all rows see all keys, so that no mask is due.
    plain_end = begin
    if not HAS_WINDOW:
        plain = tl.minimum(end, first_position + 1) - begin
        plain_end = begin + tl.maximum(plain, 0) // BLOCK_N * BLOCK_N

    key_head = key_pool + kv_head * HEAD_DIM
    value_head = value_pool + kv_head * HEAD_DIM
    table = block_tables + sequence.to(tl.int64) * table_stride
    acc = tl.zeros([BLOCK_M, DIM], tl.float32)
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    for first_key in range(begin, plain_end, BLOCK_N):
        acc, top, total = _attend_keys(
            acc, top, total, queries, first_key, kv_len, positions, span_begin, span_end,
            key_head, value_head, table, pool_stride_token, scale, window,
            HEAD_DIM, DIM, TOKENS_PER_BLOCK, BLOCK_N, False, HAS_SPANS, HAS_WINDOW, PRECISION,
        )  # fmt: skip
    for first_key in range(plain_end, end, BLOCK_N):
        acc, top, total = _attend_keys(
            acc, top, total, queries, first_key, kv_len, positions, span_begin, span_end,
            key_head, value_head, table, pool_stride_token, scale, window,
            HEAD_DIM, DIM, TOKENS_PER_BLOCK, BLOCK_N, True, HAS_SPANS, HAS_WINDOW, PRECISION,
        )  # fmt: skip

    if SPLIT:
        place = (tile * num_heads + head) * splits + split
        tl.store(partial + place[:, None] * HEAD_DIM + dims[None, :], acc, mask=inside)
        tl.store(partial_top + place, top, mask=real)
        tl.store(partial_total + place, total, mask=real)
    else:
        result = acc / tl.where(total == 0.0, 1.0, total)[:, None]
        tl.store(
            output + flat[:, None] * output_stride_token + head[:, None] * HEAD_DIM + dims[None, :],
            result.to(output.dtype.element_ty),
            mask=inside,
        )


@triton.jit(do_not_specialize=["splits"])
def join_splits(
    partial,
    partial_top,
    partial_total,
    output,
    tokens,
    splits,
    HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    DIM: tl.constexpr,
    SPLITS: tl.constexpr,
):
    """Adds up what the splits of one token and head found."""
    token = tl.load(tokens + tl.program_id(0)).to(tl.int64)
    head = tl.program_id(1)
    split, dims = tl.arange(0, SPLITS), tl.arange(0, DIM)
    place = (tl.program_id(0) * HEADS + head) * splits + split
    real = split < splits
    top = tl.load(partial_top + place, mask=real, other=float("-inf"))
    highest = tl.max(top, 0)
    base = tl.where(highest == float("-inf"), 0.0, highest)
    factor = tl.exp2(top - base)
    total = tl.sum(tl.load(partial_total + place, mask=real, other=0.0) * factor, 0)
    parts = tl.load(
        partial + place[:, None] * HEAD_DIM + dims[None, :],
        mask=real[:, None] & (dims[None, :] < HEAD_DIM),
        other=0.0,
    )
    result = tl.sum(parts * factor[:, None], 0) / tl.where(total == 0.0, 1.0, total)
    tl.store(
        output + (token * HEADS + head) * HEAD_DIM + dims,
        result.to(output.dtype.element_ty),
        mask=dims < HEAD_DIM,
    )
