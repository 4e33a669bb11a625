# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Which requests run in the next step."""

from tensorrt_llm._torch.pyexecutor.scheduler.scheduler import (
    MicroBatchScheduler,
    ScheduledBatch,
    ScheduledRequest,
)

__all__ = ["MicroBatchScheduler", "ScheduledBatch", "ScheduledRequest"]
