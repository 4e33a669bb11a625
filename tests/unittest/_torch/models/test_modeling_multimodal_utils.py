# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""From items to the embeddings of a step: encode once, slice to the chunk, put in place."""

from __future__ import annotations

import pytest
import torch

from tensorrt_llm._torch.models.modeling_multimodal_utils import (
    filter_mm_token_from_input_ids,
    find_input_mm_embeds,
    fuse_input_embeds,
    get_multimodal_embeddings,
)
from tensorrt_llm.inputs.multimodal import MultimodalParams, MultimodalRuntimeData

MEDIA = 90


def params(mask: list[int], begin: int = 0, end: int | None = None, **data) -> MultimodalParams:
    """Params of a prompt in which mask marks the rows."""
    return MultimodalParams(
        multimodal_data=data or {"pixels": torch.zeros(1)},
        multimodal_runtime=MultimodalRuntimeData(
            past_seen_token_num=begin,
            chunk_end_pos=len(mask) if end is None else end,
            embed_mask_cumsum=torch.tensor(mask, dtype=torch.int64).cumsum(0),
        ),
    )


class Encoder:
    """Gives row r of call c the value 100 c + r, and counts."""

    def __init__(self, rows: int | None = None) -> None:
        self.calls: list[tuple[int, dict]] = []
        self.rows = rows

    def __call__(self, pending, **kwargs):
        self.calls.append((len(pending), kwargs))
        count = self.rows
        if count is None:
            count = sum(p.multimodal_runtime.total_embeds_in_request for p in pending)
        return (100.0 * len(self.calls) + torch.arange(count))[:, None].repeat(1, 4)


def test_no_params_give_no_embeddings_and_no_encoder_run() -> None:
    encoder = Encoder()
    assert get_multimodal_embeddings(encoder, []) == []
    assert encoder.calls == []
    assert find_input_mm_embeds([], []) == []


def test_encodes_once_and_passes_the_encoders_arguments() -> None:
    encoder = Encoder()
    both = [params([0, 1, 1, 0]), params([1, 1, 1])]
    (first,) = get_multimodal_embeddings(encoder, both, {"mode": "speech"})
    assert encoder.calls == [(2, {"mode": "speech"})]
    assert first[:, 0].tolist() == [100, 101, 102, 103, 104]
    (again,) = get_multimodal_embeddings(encoder, both, {"mode": "speech"})
    assert len(encoder.calls) == 1, "rows are remembered in the params"
    assert torch.equal(first, again)
    assert both[1].multimodal_data["multimodal_embedding"].shape == (3, 4)


def test_only_what_is_missing_is_encoded() -> None:
    encoder = Encoder()
    known = params([1, 1], multimodal_embedding=[torch.full((1, 4), 7.0), torch.full((1, 4), 8.0)])
    (rows,) = get_multimodal_embeddings(encoder, [known, params([1])])
    assert encoder.calls == [(1, {})]
    assert rows[:, 0].tolist() == [7, 8, 100]


def test_rows_that_do_not_add_up_are_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match="gave 4 rows, the prompts hold 3"):
        get_multimodal_embeddings(Encoder(rows=4), [params([1, 1, 1])])


def test_disaggregated_mode_is_refused_by_name(monkeypatch) -> None:
    monkeypatch.setenv("TLLM_MULTIMODAL_DISAGGREGATED", "1")
    with pytest.raises(NotImplementedError, match="TLLM_MULTIMODAL_DISAGGREGATED"):
        get_multimodal_embeddings(Encoder(), [params([1])])


@pytest.mark.parametrize("chunk", [1, 2, 3, 7])
@pytest.mark.parametrize("mask", [[0, 1, 1, 1, 0, 1, 1], [1] * 7, [0] * 6 + [1]])
def test_chunks_together_give_every_row_once(mask, chunk) -> None:
    rows = torch.arange(sum(mask))[:, None].float().repeat(1, 4)
    seen = []
    for begin in range(0, len(mask), chunk):
        end = min(begin + chunk, len(mask))
        found = find_input_mm_embeds([rows], [params(mask, begin, end)])
        got = torch.cat(found)[:, 0].tolist() if found else []
        assert len(got) == sum(mask[begin:end])
        seen += got
    assert seen == list(range(sum(mask)))


def test_slices_of_several_requests_batched_and_one_by_one() -> None:
    masks = [params([1, 1, 0, 1], 1, 3), params([0, 0, 1], 0, 2), params([1, 1], 0, 2)]
    each = [torch.full((3, 4), 1.0), torch.full((1, 4), 2.0), torch.full((2, 4), 3.0)]
    each[0][:, 0] = torch.arange(3)
    one_by_one = find_input_mm_embeds(each, masks)
    assert [len(rows) for rows in one_by_one] == [1, 0, 2]
    assert one_by_one[0][0, 0] == 1
    assert one_by_one[0].data_ptr() == each[0][1].data_ptr(), "a view, not a copy"
    (batched,) = find_input_mm_embeds([torch.cat(each)], masks)
    assert torch.equal(batched, torch.cat(one_by_one))


def test_all_rows_are_returned_as_they_came_and_none_as_nothing() -> None:
    rows = [torch.ones(2, 4)]
    assert find_input_mm_embeds(rows, [params([1, 1])])[0] is rows[0]
    assert find_input_mm_embeds(rows, [params([1, 1, 0], 2, 3)]) == []
    message = r"Number of mm_embeds \(2\) does not match number of multimodal params \(3\)"
    with pytest.raises(ValueError, match=message):
        find_input_mm_embeds(rows * 2, [params([1])] * 3)


@pytest.fixture
def embedding() -> torch.nn.Embedding:
    torch.manual_seed(0)
    return torch.nn.Embedding(50, 4)


def test_rows_stand_where_the_placeholders_are(embedding) -> None:
    ids = torch.tensor([3, MEDIA, MEDIA, 4])
    rows = torch.tensor([[1.0] * 4, [2.0] * 4], dtype=torch.float64)
    passed_on, fused = fuse_input_embeds(embedding, ids, [rows])
    assert passed_on is None and fused is not None
    assert fused.dtype == embedding.weight.dtype
    torch.testing.assert_close(fused[[0, 3]], embedding(torch.tensor([3, 4])))
    assert fused[[1, 2], 0].tolist() == [1, 2]


def test_without_rows_the_ids_pass_through(embedding) -> None:
    ids = torch.tensor([3, 4])
    assert fuse_input_embeds(embedding, ids, []) == (ids, None)


def test_ids_inside_the_vocabulary_can_be_placeholders(embedding) -> None:
    ids = torch.tensor([3, 9, 4], dtype=torch.int32)
    marks = torch.tensor([9, 1000], dtype=torch.int64)
    text, media = filter_mm_token_from_input_ids(ids, 50, marks)
    assert (text.tolist(), media.tolist()) == ([0, 2], [1])
    _, fused = fuse_input_embeds(embedding, ids, [torch.ones(1, 4)], mm_token_ids=marks)
    assert fused is not None and fused[1].tolist() == [1.0] * 4


def test_given_indices_beat_ids(embedding) -> None:
    ids = torch.tensor([9, 9])
    _, fused = fuse_input_embeds(
        embedding,
        ids,
        [torch.ones(1, 4)],
        mm_token_ids=torch.tensor([9]),
        text_token_indices=torch.tensor([0]),
        mm_token_indices=torch.tensor([1]),
    )
    assert fused is not None
    torch.testing.assert_close(fused[0], embedding(ids[0]))


def test_a_count_mismatch_names_both_numbers(embedding) -> None:
    message = "Multimodal token count mismatch: found 1 .* received 2"
    with pytest.raises(ValueError, match=message):
        fuse_input_embeds(embedding, torch.tensor([MEDIA]), [torch.ones(2, 4)])
