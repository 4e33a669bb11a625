# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The HTTP server as ``trtllm-serve`` runs it, over the engine without a model.

    python benchmarks/null_server.py MODEL DESCRIPTOR

MODEL is a checkpoint whose tokenizer and processor are used, DESCRIPTOR a bound socket.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tensorrt_llm.executor.host_process import HostProcess
from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.serve.http_server import HttpServer
from tensorrt_llm.serve.openai_server import OpenAIServer, ServerConfig


def main() -> None:
    model, descriptor = sys.argv[1], int(sys.argv[2])
    with HostProcess("benchmarks.null_engine") as host, LLM(model, engine_host=host) as llm:
        config = ServerConfig("null", MediaAccess(allowed_local_media_path=Path(model)))
        server = HttpServer(
            OpenAIServer(llm, config).app,
            stop_engine=llm.shutdown,
            grace_seconds=1,
            log_level="warning",
        )
        server.serve_until_stopped([socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    main()
