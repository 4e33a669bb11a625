# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What media a caller may name, how much of it is taken, and how local files are read.

| source | trusted (in-process calls) | not trusted (HTTP) |
|---|---|---|
| local file | any regular file | below ``allowed_local_media_path``, off until given |
| http, https | any address | public addresses, and hosts in ``allowed_domains`` if given |
| sizes and times (``media_limits``) | limits apply | limits apply |

A refusal reads the same whether or not the target exists.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote_to_bytes

import httpx

from tensorrt_llm.errors import (
    ConfigurationError,
    LimitExceededError,
    MediaBlockedError,
    MediaError,
)
from tensorrt_llm.inputs.media_limits import MediaLimits

_FILE_URI = re.compile(r"file:(?://(?P<host>[^/]*)|(?!//))(?P<path>/.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class MediaAccess:
    """Rules and limits of media loading.

    Args:
        trusted: True for calls from the same process: any file and any address may be named.
        allowed_local_media_path: Folder whose files an untrusted caller may name.
        allowed_domains: Hosts that an untrusted caller may name, compared in full; None for any.
        allow_loopback: Whether loopback addresses count as public, for tests and sidecars.
        limits: How much is taken; the same for everybody.

    Raises:
        ConfigurationError: If the folder is none, or a host is no host.
    """

    trusted: bool = False
    allowed_local_media_path: Path | None = None
    allowed_domains: tuple[str, ...] | None = None
    allow_loopback: bool = False
    limits: MediaLimits = field(default_factory=MediaLimits)

    def __post_init__(self) -> None:
        if self.allowed_local_media_path is not None:
            root = Path(os.path.realpath(self.allowed_local_media_path))
            if not root.is_dir():
                raise ConfigurationError(
                    f"allowed_local_media_path: {self.allowed_local_media_path} is no folder"
                )
            object.__setattr__(self, "allowed_local_media_path", root)
        if self.allowed_domains is not None:
            hosts = tuple(_as_host(entry) for entry in self.allowed_domains)
            object.__setattr__(self, "allowed_domains", hosts)

    def allows_host(self, host: str) -> bool:
        """Whether a URL may name this host, in ASCII form and lower case."""
        return self.trusted or self.allowed_domains is None or host in self.allowed_domains


def _as_host(entry: str) -> str:
    bare = entry.strip()
    if ":" in bare and not bare.startswith("["):
        bare = f"[{bare}]"
    try:
        url = httpx.URL(f"http://{bare}/")
    except httpx.InvalidURL as error:
        raise ConfigurationError(f"allowed_domains: {entry!r} is no host name") from error
    if not url.host or url.port is not None or url.path != "/" or url.userinfo or url.query:
        raise ConfigurationError(f"allowed_domains: {entry!r} is no host name")
    return url.raw_host.decode("ascii").lower()


def file_uri_path(uri: str) -> str:
    """The path that a ``file:`` URI names.

    Args:
        uri: ``file:/path``, ``file:///path`` or ``file://localhost/path``, percent-encoded.

    Raises:
        MediaBlockedError: If it names another host.
        MediaError: If it has no absolute path.
    """
    match = _FILE_URI.fullmatch(uri)
    if match is None:
        raise MediaError("a file: URI names an absolute path, as in file:///folder/name")
    if (match["host"] or "localhost").lower() != "localhost":
        raise MediaBlockedError("a file: URI names no host, or localhost")
    return os.fsdecode(unquote_to_bytes(match["path"].encode("utf-8", "surrogatepass")))


def read_local_file(path: str | os.PathLike[str], access: MediaAccess) -> bytes:
    """Reads a local file under the rules.

    Args:
        path: The path, relative to the working directory unless absolute.
        access: Rules and limits.

    Raises:
        MediaBlockedError: If the rules do not allow the path.
        MediaError: If there is no such regular file or it cannot be read.
        LimitExceededError: If it has more than ``max_bytes``.
    """
    name = _checked_name(path)
    try:
        descriptor = os.open(name, _READ) if access.trusted else _open_allowed(name, access)
    except OSError as error:
        # Only a trusted caller gets its path back: elsewhere it may be a probe.
        what = f"the file {name}" if access.trusted else "the file"
        raise MediaError(f"{what} cannot be opened: {error.strerror}") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise MediaError("the path names something other than a regular file")
    most = access.limits.max_bytes
    with open(descriptor, "rb") as file:
        size = status.st_size
        if size <= most:
            try:
                # Room for what is there: room for as much as may be takes longer than the reading.
                data = file.read(size + 1)
                if len(data) > size:
                    # The file has grown since it was measured.
                    data += file.read(most + 1 - len(data))
            except OSError as error:
                raise MediaError(f"the file cannot be read: {error.strerror}") from error
            size = len(data)
        if size > most:
            raise LimitExceededError("max_bytes", size, most, "bytes")
        return data


def _checked_name(path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    try:
        possible = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise MediaError("the path holds characters that no path can hold")
    return name


# O_NONBLOCK: opening a named pipe must not wait for its writer.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY


def _open_allowed(name: str, access: MediaAccess) -> int:
    root = access.allowed_local_media_path
    if root is None:
        raise MediaBlockedError(
            "local files are not open to this request; --allowed_local_media_path DIR opens those "
            "below DIR"
        )
    real, folder = os.path.realpath(name), os.path.join(root, "")
    if real != str(root) and not real.startswith(folder):
        raise MediaBlockedError("the path does not lie below --allowed_local_media_path")
    return _open_beneath(root, real[len(folder) :].split(os.sep) if real != str(root) else ["."])


def _open_beneath(root: Path, parts: list[str]) -> int:
    """Opens step by step without following links, so that what was checked is what is opened."""
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _READ | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)
