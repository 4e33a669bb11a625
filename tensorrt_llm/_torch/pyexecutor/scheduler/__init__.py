# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Which requests run in the next step: small policies that know no model and no tensor.

``scheduler`` fills a step with tokens, ``capacity`` decides who holds blocks, ``waiting_queue``
who is next, ``burst`` who waits for an equal beginning, told by ``shared_prefix``.
"""

from tensorrt_llm._torch.pyexecutor.scheduler.burst import BurstGate
from tensorrt_llm._torch.pyexecutor.scheduler.capacity import CapacityPolicy, capacity_policy
from tensorrt_llm._torch.pyexecutor.scheduler.scheduler import (
    Admission,
    MicroBatchScheduler,
    ScheduledBatch,
    ScheduledRequest,
)
from tensorrt_llm._torch.pyexecutor.scheduler.shared_prefix import PromptContent
from tensorrt_llm._torch.pyexecutor.scheduler.waiting_queue import (
    OrderedRequests,
    admission_order,
)

__all__ = [
    "Admission",
    "BurstGate",
    "CapacityPolicy",
    "MicroBatchScheduler",
    "OrderedRequests",
    "PromptContent",
    "ScheduledBatch",
    "ScheduledRequest",
    "admission_order",
    "capacity_policy",
]
