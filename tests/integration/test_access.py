# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A server with keys and TLS, asked by the client that most users have."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

import httpx
import openai
import pytest
import trustme

from examples.demo_server import LocalServer

WORDS = "Read these notes with great care before you answer. " * 4


def test_https_with_keys(llama_checkpoint: Path, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(
        tmp_path / "server.pem"
    )
    (tmp_path / "keys").write_text("sk-alpha team\nsk-beta team\nsk-gamma\n")
    options = [
        *(str(llama_checkpoint), "--kv_cache_max_tokens", "4096"),
        *("--api_key_file", str(tmp_path / "keys"), "--api_key", "sk-delta"),
        *("--ssl_certfile", str(tmp_path / "server.pem")),
    ]
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    with (
        LocalServer(options, tmp_path / "log", trust) as server,
        httpx.Client(verify=trust, trust_env=False, timeout=60) as http,
    ):
        server.wait_until_ready()
        assert re.fullmatch(r"https://localhost:\d+", server.url)
        assert http.get(f"{server.url}/health").status_code == 200
        assert "access: 4 API keys, https, web pages of no other origin" in server.log_text()

        def cached(key: str) -> int:
            client = openai.OpenAI(
                base_url=f"{server.url}/v1", api_key=key, http_client=http, max_retries=0
            )
            answer = client.chat.completions.create(
                model="any", messages=[{"role": "user", "content": WORDS}], max_tokens=2
            )
            assert answer.usage and answer.usage.prompt_tokens_details
            return answer.usage.prompt_tokens_details.cached_tokens or 0

        counts = [cached(f"sk-{name}") for name in ("alpha", "gamma", "delta", "beta", "gamma")]
        assert counts[:3] == [0, 0, 0]
        assert counts[3] == counts[4] > 32
        with pytest.raises(openai.AuthenticationError, match="API key is needed"):
            cached("sk-wrong")
        reply = http.get(f"{server.url}/v1/models", headers={"x": "a" * 40_000})
        assert reply.status_code == 431
        endless = http.get(f"{server.url}/v1/models", headers={"x": "a" * 400_000})
        assert 400 <= endless.status_code < 500
        assert http.get(f"{server.url}/health").status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{server.url.replace('https', 'http')}/health", trust_env=False)
        assert server.stop() == 0
        assert "sk-" not in server.log_text() and "Traceback" not in server.log_text()
