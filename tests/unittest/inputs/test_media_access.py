# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tensorrt_llm.errors import (
    ConfigurationError,
    LimitExceededError,
    MediaBlockedError,
    MediaError,
)
from tensorrt_llm.inputs import media_access
from tensorrt_llm.inputs.media_access import MediaAccess, file_uri_path, read_local_file
from tensorrt_llm.inputs.media_limits import MediaLimits

INSIDE, OUTSIDE = b"inside", b"outside"


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    """A folder that may be read, and ways that lead out of it."""
    root = tmp_path / "allowed"
    for folder in (root / "sub", tmp_path / "outside", tmp_path / "allowed-not"):
        folder.mkdir(parents=True)
    (root / "a.png").write_bytes(INSIDE)
    (root / "sub" / "a b%.png").write_bytes(INSIDE)
    (tmp_path / "outside" / "a.png").write_bytes(OUTSIDE)
    (tmp_path / "allowed-not" / "a.png").write_bytes(OUTSIDE)
    (root / "link.png").symlink_to(tmp_path / "outside" / "a.png")
    (root / "link-none.png").symlink_to(tmp_path / "outside" / "none.png")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "within.png").symlink_to(root / "sub" / "a b%.png")
    return root


def read(uri: str, root: Path | None, **rules) -> bytes:
    access = MediaAccess(allowed_local_media_path=root, **rules)
    return read_local_file(file_uri_path(uri), access)


@pytest.mark.parametrize(
    "uri",
    [
        "file://{}/a.png",
        "file:{}/a.png",
        "FILE://{}/a.png",
        "file://localhost{}/a.png",
        "file://LOCALHOST{}/a.png",
        "file://{}/%61.png",
        "file://{}/sub/a%20b%25.png",
        "file://{}/sub/../a.png",
        "file://{}/sub/%2e%2e/a.png",
        "file://{}/within.png",
    ],
)
def test_files_below_the_folder_are_read(allowed, uri):
    assert read(uri.format(allowed), allowed) == INSIDE


@pytest.mark.parametrize(
    "uri",
    [
        "file://{up}/outside/{name}.png",
        "FILE://{up}/outside/{name}.png",
        "file:{up}/outside/{name}.png",
        "file://{root}/../outside/{name}.png",
        "file://{root}/%2e%2e/outside/{name}.png",
        "file://{root}%2f..%2foutside%2f{name}.png",
        "file://{root}/folder/{name}.png",
        "file://{root}/sub/../folder/{name}.png",
        "file://{up}/allowed-not/{name}.png",
        "file:///proc/self/{name}",
    ],
)
def test_all_else_is_refused_alike_whether_or_not_it_exists(allowed, uri):
    texts = set()
    for name in ("a", "none"):
        with pytest.raises(MediaBlockedError, match="--allowed_local_media_path") as raised:
            read(uri.format(up=allowed.parent, root=allowed, name=name), allowed)
        texts.add(str(raised.value))
    assert len(texts) == 1


def test_links_to_the_outside_are_refused_alike(allowed):
    texts = set()
    for name in ("link.png", "link-none.png"):
        with pytest.raises(MediaBlockedError) as raised:
            read(f"file://{allowed}/{name}", allowed)
        texts.add(str(raised.value))
    assert len(texts) == 1


def test_without_a_folder_nothing_is_read(allowed):
    for name in ("a.png", "none.png"):
        with pytest.raises(MediaBlockedError, match="--allowed_local_media_path DIR"):
            read(f"file://{allowed}/{name}", None)


def test_a_percent_sign_is_decoded_once(allowed):
    with pytest.raises(MediaError, match="cannot be opened") as raised:
        read(f"file://{allowed}/%252e%252e/outside/a.png", allowed)
    assert not isinstance(raised.value, MediaBlockedError)


@pytest.mark.parametrize(
    "uri", ["file://127.0.0.2{}/a.png", "file://host{}/a.png", "file://user@localhost{}/a.png"]
)
def test_other_hosts_are_refused(allowed, uri):
    with pytest.raises(MediaBlockedError, match="localhost"):
        read(uri.format(allowed), allowed)


@pytest.mark.parametrize("uri", ["file:a.png", "file:", "file://", "file://localhost"])
def test_a_uri_without_absolute_path_is_refused(uri):
    with pytest.raises(MediaError, match="absolute path"):
        file_uri_path(uri)


def test_what_is_no_regular_file_is_refused_without_waiting(allowed):
    os.mkfifo(allowed / "pipe")
    for name in ("pipe", "sub", ""):
        with pytest.raises(MediaError, match="regular file"):
            read(f"file://{allowed}/{name}", allowed)


@pytest.mark.parametrize("name", ["a%00.png", "a\ud800.png", "a" * 300, "a.png/b"])
def test_odd_names_are_plain_errors(allowed, name):
    with pytest.raises(MediaError) as raised:
        read(f"file://{allowed}/{name}", allowed)
    assert str(allowed) not in str(raised.value)


def test_a_missing_file_does_not_give_the_path_back(allowed):
    with pytest.raises(MediaError, match="the file cannot be opened: No such file") as raised:
        read(f"file://{allowed}/none.png", allowed)
    assert str(allowed) not in str(raised.value)


@contextmanager
def swapped_after_the_check(monkeypatch, path: Path, target: Path) -> Iterator[None]:
    """Puts a link where the checked thing was, between check and opening."""
    real = os.path.realpath

    def resolve(name, *args, **kwargs):
        resolved = real(name, *args, **kwargs)
        if Path(resolved) == path or path in Path(resolved).parents:
            path.rename(path.with_name(path.name + ".away"))
            path.symlink_to(target)
        return resolved

    with monkeypatch.context() as patch:
        patch.setattr(media_access.os.path, "realpath", resolve)
        yield


@pytest.mark.parametrize(("swapped", "target"), [("a.png", "outside/a.png"), ("sub", "outside")])
def test_what_was_checked_is_what_is_opened(allowed, monkeypatch, swapped, target):
    access = MediaAccess(allowed_local_media_path=allowed)
    (allowed / "sub" / "a.png").write_bytes(INSIDE)
    name = allowed / "a.png" if swapped == "a.png" else allowed / "sub" / "a.png"
    assert read_local_file(name, access) == INSIDE
    with (
        swapped_after_the_check(monkeypatch, allowed / swapped, allowed.parent / target),
        pytest.raises(MediaError, match="cannot be opened"),
    ):
        read_local_file(name, access)


def test_trusted_calls_read_any_file_and_get_names_back(allowed):
    access = MediaAccess(trusted=True)
    assert read_local_file(allowed.parent / "outside" / "a.png", access) == OUTSIDE
    assert read_local_file(str(allowed / "link.png"), access) == OUTSIDE
    with pytest.raises(MediaError, match=r"none\.png cannot be opened: No such file"):
        read_local_file(allowed / "none.png", access)


@pytest.mark.parametrize("trusted", [True, False])
def test_bytes_are_limited_for_everybody(allowed, trusted):
    rules = {"allowed_local_media_path": allowed, "trusted": trusted}
    assert (
        read_local_file(allowed / "a.png", MediaAccess(limits=MediaLimits(max_bytes=6), **rules))
        == INSIDE
    )
    with pytest.raises(LimitExceededError, match=r"6 bytes exceed max_bytes \(5 bytes\)"):
        read_local_file(allowed / "a.png", MediaAccess(limits=MediaLimits(max_bytes=5), **rules))


def test_a_file_that_denies_its_size_is_limited_too():
    with pytest.raises(LimitExceededError, match="11 bytes exceed max_bytes"):
        read_local_file(
            "/proc/self/status", MediaAccess(trusted=True, limits=MediaLimits(max_bytes=10))
        )


@pytest.mark.parametrize(
    ("entries", "host", "allows"),
    [
        (None, "anything.example", True),
        (("media.example",), "media.example", True),
        ((" Media.EXAMPLE ",), "media.example", True),
        (("media.example",), "sub.media.example", False),
        (("media.example",), "media.example.", False),
        (("127.0.0.1",), "127.0.0.1", True),
        (("127.0.0.1",), "127.1", False),
        (("::1",), "::1", True),
        (("[::1]",), "::1", True),
        (("b\u00fccher.example",), "xn--bcher-kva.example", True),
        ((), "media.example", False),
    ],
)
def test_hosts_are_compared_in_full(entries, host, allows):
    assert MediaAccess(allowed_domains=entries).allows_host(host) is allows
    assert MediaAccess(allowed_domains=entries, trusted=True).allows_host(host)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"allowed_local_media_path": Path("/no/such/folder")}, "/no/such/folder is no folder"),
        ({"allowed_domains": ("",)}, "no host name"),
        ({"allowed_domains": ("https://media.example",)}, "no host name"),
        ({"allowed_domains": ("media.example/path",)}, "no host name"),
        ({"allowed_domains": ("media.example:80",)}, "no host name"),
        ({"allowed_domains": ("user@media.example",)}, "no host name"),
    ],
)
def test_rules_that_cannot_work_are_refused_at_start(rules, message):
    with pytest.raises(ConfigurationError, match=message):
        MediaAccess(**rules)
