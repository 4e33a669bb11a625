# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``trtllm-serve explain`` shows what a server says, and what is wrong in one line."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tensorrt_llm.commands.serve import main

ANSWER = {
    "message": "32 of 40 tokens would be found; it differs.",
    "advice": ["Put it first."],
    "segments": [
        {"kind": "text", "offset": 0, "length": 24, "cached": 24, "text": "Hello"},
        {
            "kind": "image",
            "offset": 24,
            "length": 16,
            "cached": 8,
            "item": 0,
            "identity": "ab" * 32,
            "rows": 14,
            "first_row": 0,
        },
    ],
}


@pytest.fixture(name="server")
def recording_server() -> Iterator[ThreadingHTTPServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self.server.seen = (self.path, self.headers, self.rfile.read(length))
            status, answer = self.server.answer
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.answer = (200, ANSWER)
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield httpd
        httpd.shutdown()
        thread.join()


def run(server: ThreadingHTTPServer, folder: Path, *options: str) -> Result:
    file = folder / "request.json"
    file.write_text('{"messages": []}')
    url = f"http://127.0.0.1:{server.server_address[1]}"
    return CliRunner().invoke(main, ["explain", str(file), "--url", url, *options])


def test_an_answer_is_shown(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    result = run(server, tmp_path, "--other_salts", "--api_key", "secret")
    assert result.exit_code == 0, result.output
    path, headers, body = server.seen
    assert path == "/kv_cache/explain?other_salts=1"
    assert headers["Authorization"] == "Bearer secret"
    assert json.loads(body) == {"messages": []}
    lines = result.output.splitlines()
    assert lines[0] == ANSWER["message"]
    assert "[####################]     24 cached  text   'Hello'" in lines[2]
    assert "24-39 [##########..........]" in lines[3]
    assert "rows 0-13 of item 0, abababababab" in lines[3]
    assert lines[-1] == "* Put it first."
    assert json.loads(run(server, tmp_path, "--json").output) == ANSWER


def test_a_refusal_is_one_line(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    server.answer = (400, {"message": "messages: missing"})
    result = run(server, tmp_path)
    assert result.exit_code == 1
    assert "says 400: messages: missing" in result.output
    server.server_close()
    result = run(server, tmp_path)
    assert result.exit_code == 1
    assert "(--url)" in result.output
    assert CliRunner().invoke(main, ["explain", "no/such/file"]).exit_code == 2
