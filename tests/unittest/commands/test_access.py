# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Options of access: mistakes name the option, and no mistake opens the server."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner

from tensorrt_llm.commands.access import read_api_keys, read_origins, read_tls
from tensorrt_llm.commands.serve import main, serve


def options(*words: object) -> dict:
    return serve.make_context("serve", ["folder", *map(str, words)]).params


@pytest.fixture(name="files", scope="module")
def some_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("access")
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    (folder / "chain.pem").write_bytes(b"".join(p.bytes() for p in certificate.cert_chain_pems))
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "both.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("other").private_key_pem.write_to_path(folder / "other.pem")
    (folder / "keys").write_text("# keys\nalpha team\nbeta\n")
    (folder / "empty").write_text("# none yet\n\n")
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    return folder


def test_keys_of_options_and_file_are_one_set(files: Path) -> None:
    keys = read_api_keys(
        options("--api_key", "gamma team", "--api_key", "delta", "--api_key_file", files / "keys")
    )
    assert len(keys) == 4
    assert keys.tenant(b"gamma") == keys.tenant(b"alpha") != keys.tenant(b"delta")
    assert not read_api_keys(options())


def test_tls_of_two_files_or_one(files: Path) -> None:
    pair = ("--ssl_certfile", files / "chain.pem", "--ssl_keyfile", files / "key.pem")
    assert read_tls(options(*pair)) and read_tls(options("--ssl_certfile", files / "both.pem"))
    assert read_tls(options()) is None
    context = read_tls(options(*pair, "--ssl_ca_certs", files / "ca.pem"))
    assert context and context.get_ca_certs()


def test_origins() -> None:
    given = ("--allowed_origins", "https://a.example, http://localhost:3000")
    assert read_origins(options(*given, "--allowed_origins", "*")) == (
        "https://a.example",
        "http://localhost:3000",
        "*",
    )
    assert read_origins(options()) == ()


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--api_key", ""], "--api_key"),
        (["--api_key", "# no comment"], "--api_key"),
        (["--api_key", "secret", "--api_key", "secret"], "--api_key"),
        (["--api_key_file", "empty"], "--api_key_file"),
        (["--api_key_file", "binary"], "--api_key_file"),
        (["--api_key_file", "none"], "--api_key_file"),
        (["--api_key", "beta", "--api_key_file", "keys"], "--api_key_file"),
        (["--ssl_keyfile", "key.pem"], "--ssl_keyfile"),
        (["--ssl_ca_certs", "ca.pem"], "--ssl_ca_certs"),
        (["--ssl_certfile", "chain.pem"], "--ssl_certfile"),
        (["--ssl_certfile", "chain.pem", "--ssl_keyfile", "other.pem"], "--ssl_keyfile"),
        (["--ssl_certfile", "both.pem", "--ssl_ca_certs", "keys"], "--ssl_ca_certs"),
        (["--allowed_origins", "chat.example"], "--allowed_origins"),
        (["--allowed_origins", "https://chat.example/"], "--allowed_origins"),
        (["--allowed_origins", "https://a:b"], "--allowed_origins"),
        (["--max_header_bytes", "10"], "--max_header_bytes"),
    ],
)
def test_mistakes_exit_2_and_name_the_option_not_the_key(
    files: Path, llama_checkpoint: Path, monkeypatch: pytest.MonkeyPatch, words: list, option: str
) -> None:
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    monkeypatch.chdir(files)
    result = CliRunner().invoke(main, [str(llama_checkpoint), *words])
    assert result.exit_code == 2, result.output
    line = result.output.strip().splitlines()[-1]
    assert line.startswith("Error: Invalid value for ") and f"'{option}'" in line
    assert "secret" not in line
