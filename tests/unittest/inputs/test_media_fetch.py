# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Real sockets on loopback; only name resolution is played."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import trustme
from support.media_host import BODY, Host, serving

from tensorrt_llm.errors import (
    LimitExceededError,
    MediaBlockedError,
    MediaError,
    MediaFetchError,
)
from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.inputs.media_fetch import MediaFetcher, is_public
from tensorrt_llm.inputs.media_limits import MediaLimits

TIMEOUT = 0.7


@pytest.fixture
def host() -> Iterator[Host]:
    with serving(Host()) as host:
        yield host


LIMITS = {"max_bytes", "max_redirects", "timeout_s"}


def fetcher(names: dict[str, list[str]] | None = None, **rules) -> MediaFetcher:
    values = {"timeout_s": 5} | {name: rules.pop(name) for name in LIMITS & rules.keys()}
    rules = {"allow_loopback": True, "limits": MediaLimits(**values), **rules}
    extra = {} if names is None else {"resolver": lambda name, port: names[name]}
    return MediaFetcher(MediaAccess(**rules), **extra)


def test_a_body_arrives_whole(host):
    url = f"http://127.0.0.1:{host.port}"
    assert fetcher().fetch(f"{url}/ok/a") == BODY
    assert fetcher().fetch(f"{url}/untold") == BODY
    assert fetcher(trusted=True, allow_loopback=False).fetch(f"{url}/ok/b") == BODY
    assert host.seen[0] == (f"127.0.0.1:{host.port}", "/ok/a")


PUBLIC = ["8.8.8.8", "1.1.1.1", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808"]
PRIVATE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.168.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "fc00::1",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "2001:db8::1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "2002:a00:1::",
    "2001:0:a00:1::1",
    "::a00:1",
]
LOOPBACK = [
    "127.0.0.1",
    "127.8.9.10",
    "::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
]


def test_public_addresses():
    for address in PUBLIC:
        assert is_public(address), address
    for address in PRIVATE:
        assert not is_public(address, allow_loopback=True), address
    for address in LOOPBACK:
        assert not is_public(address), address
        assert is_public(address, allow_loopback=True), address


SPELLINGS = (
    "127.0.0.1",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "0.0.0.0",
    "%6cocalhost",
    "127.0.0.1.",
    "\uff11\uff12\uff17.0.0.1",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
)


@pytest.mark.parametrize("name", SPELLINGS)
def test_loopback_is_never_asked_in_any_spelling(host, name):
    with pytest.raises(MediaError):
        fetcher(allow_loopback=False).fetch(f"http://{name}:{host.port}/ok")
    assert host.seen == []


def test_ipv6_loopback_is_never_asked():
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        six = Host(socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 loopback here")
    with serving(six):
        with pytest.raises(MediaBlockedError):
            fetcher(allow_loopback=False).fetch(f"http://[::1]:{six.port}/ok")
        assert six.seen == []
        assert fetcher().fetch(f"http://[::1]:{six.port}/ok") == BODY


@pytest.mark.parametrize("target", ["http://10.0.0.1/", "http://[fe80::1]/", "http://intern.test/"])
def test_a_redirect_to_a_private_address_is_not_followed(host, target):
    names = {"media.test": ["127.0.0.1"], "intern.test": ["192.168.1.1"]}
    names |= {"10.0.0.1": ["10.0.0.1"], "fe80::1": ["fe80::1"]}
    with pytest.raises(MediaBlockedError, match="public addresses only"):
        fetcher(names).fetch(f"http://media.test:{host.port}/to/{target}")
    assert len(host.seen) == 1


def test_a_redirect_to_loopback_needs_loopback_to_be_open(host):
    names = {"media.test": ["127.0.0.1"]}
    url = f"http://media.test:{host.port}/to/http://media.test:{host.port}/ok"
    assert fetcher(names).fetch(url) == BODY
    with pytest.raises(MediaBlockedError, match="--allow_loopback_media"):
        fetcher(names, allow_loopback=False).fetch(url)
    assert len(host.seen) == 2


@pytest.mark.parametrize("scheme", ["file", "ftp", "gopher", "data", "javascript"])
def test_a_redirect_to_another_scheme_is_not_followed(host, scheme):
    with pytest.raises(MediaBlockedError, match=f"http and https, not {scheme}"):
        fetcher().fetch(f"http://127.0.0.1:{host.port}/to/{scheme}:///etc/hostname")


@pytest.mark.parametrize("name", ["", "no.such.host.invalid"])
def test_private_hosts_and_no_hosts_read_alike(name):
    names = {"intern.test": ["10.0.0.1"], name: []}
    texts = set()
    for asked in ("intern.test", name or "none.test"):
        with pytest.raises(MediaBlockedError) as raised:
            fetcher({**names, "none.test": []}).fetch(f"http://{asked}/a.png")
        texts.add(str(raised.value))
    assert len(texts) == 1


def test_one_private_address_among_public_ones_blocks():
    with pytest.raises(MediaBlockedError):
        fetcher({"mixed.test": ["8.8.8.8", "10.0.0.1"]}).fetch("http://mixed.test/a.png")


def test_the_connection_goes_to_the_address_that_was_checked(host):
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    asked = []

    def resolver(name: str, port: int) -> list[str]:
        asked.append((name, port))
        return next(answers)

    access = MediaAccess(allow_loopback=True, limits=MediaLimits(timeout_s=5))
    body = MediaFetcher(access, resolver=resolver).fetch(f"http://rebind.test:{host.port}/ok")
    assert body == BODY
    assert asked == [("rebind.test", host.port)]
    assert host.seen == [(f"rebind.test:{host.port}", "/ok")]


def test_the_next_address_is_tried_if_one_does_not_answer(host):
    names = {"two.test": ["127.0.0.9", "127.0.0.1"]}
    assert fetcher(names).fetch(f"http://two.test:{host.port}/ok") == BODY


def test_only_listed_hosts_are_asked(host):
    names = {"media.test": ["127.0.0.1"], "other.test": ["127.0.0.1"]}
    listed = fetcher(names, allowed_domains=("media.test",))
    assert listed.fetch(f"http://MEDIA.test:{host.port}/ok") == BODY
    for url in (f"http://other.test:{host.port}/ok", f"http://media.test.:{host.port}/ok"):
        with pytest.raises(MediaBlockedError, match="--allowed_media_domains"):
            listed.fetch(url)
    with pytest.raises(MediaBlockedError, match="--allowed_media_domains"):
        listed.fetch(f"http://media.test:{host.port}/to/http://other.test:{host.port}/ok")
    assert [path for _, path in host.seen if path == "/ok"] == ["/ok"]


def test_the_environment_is_not_trusted(host, monkeypatch):
    with serving(Host()) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert fetcher().fetch(f"http://127.0.0.1:{host.port}/ok") == BODY
        assert proxy.seen == []


def test_redirects_are_followed_up_to_the_limit(host):
    url = f"http://127.0.0.1:{host.port}/hops"
    assert fetcher(max_redirects=3).fetch(f"{url}/3") == BODY
    with pytest.raises(LimitExceededError, match=r"4 redirects exceed max_redirects \(3 redirects"):
        fetcher(max_redirects=3).fetch(f"{url}/4")
    assert len(host.seen) == 8


@pytest.mark.parametrize("path", ["ok", "untold"])
def test_bytes_are_limited_while_reading(host, path):
    url = f"http://127.0.0.1:{host.port}/{path}"
    assert fetcher(max_bytes=len(BODY)).fetch(url) == BODY
    with pytest.raises(LimitExceededError, match=r"exceed max_bytes \(10239 bytes\)"):
        fetcher(max_bytes=len(BODY) - 1).fetch(url)


def test_a_declared_size_over_the_limit_is_refused_before_reading(host):
    with pytest.raises(LimitExceededError, match=r"1000000000000 bytes exceed max_bytes"):
        fetcher().fetch(f"http://127.0.0.1:{host.port}/told/1000000000000")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("status/404", "status 404"),
        ("status/500", "status 500"),
        ("status/204", "status 204"),
        ("status/302", "status 302"),
        ("zipped", "compressed"),
        ("short", "broke off"),
        ("noise", "broke off"),
    ],
)
def test_an_answer_that_is_no_success_is_an_error(host, path, message):
    with pytest.raises(MediaFetchError, match=message):
        fetcher().fetch(f"http://127.0.0.1:{host.port}/{path}")


@pytest.mark.parametrize("path", ["drip", "drip_headers", "silence"])
def test_one_deadline_covers_everything(host, path):
    start = time.monotonic()
    with pytest.raises(MediaFetchError, match=r"within 0.7 s"):
        fetcher(timeout_s=TIMEOUT).fetch(f"http://127.0.0.1:{host.port}/{path}")
    # Without one they would go on for many times as long.
    assert TIMEOUT * 0.9 < time.monotonic() - start < 15


def test_a_slow_resolver_is_not_waited_for():
    release, resolved = threading.Event(), threading.Event()

    def resolver(name: str, port: int) -> list[str]:
        release.wait(60)
        resolved.set()
        return ["127.0.0.1"]

    slow = MediaFetcher(MediaAccess(limits=MediaLimits(timeout_s=TIMEOUT)), resolver=resolver)
    with pytest.raises(MediaFetchError, match="within"):
        slow.fetch("http://slow.test/a.png")
    assert not resolved.is_set()
    release.set()


def test_a_host_that_refuses_is_an_error():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(MediaFetchError, match="failed"):
            fetcher().fetch(f"http://127.0.0.1:{port}/ok")


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http:///a.png",
        "http:127.0.0.1/a",
        "http://[::1/a.png",
        "http://a:port/x",
        "http://\x00/",
        "http://a b/",
        "http://a/\r\nX: y",
        f"http://{'a' * 300}/",
        "http://user:secret@127.0.0.1/a",
        "http://\ud800/",
        "http://127.0.0.1/\ud800",
    ],
)
def test_odd_urls_are_plain_errors(url):
    with pytest.raises(MediaError) as raised:
        fetcher().fetch(url)
    assert "secret" not in str(raised.value)


@contextlib.contextmanager
def secure(certificate: trustme.LeafCert) -> Iterator[Host]:
    host = Host()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    host.server.socket = context.wrap_socket(host.server.socket, server_side=True)
    with serving(host):
        yield host


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def trusting(authority: trustme.CA, names: dict[str, list[str]]) -> MediaFetcher:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    resolver: Callable[[str, int], list[str]] = lambda name, port: names[name]  # noqa: E731
    access = MediaAccess(allow_loopback=True, limits=MediaLimits(timeout_s=5))
    return MediaFetcher(access, resolver=resolver, ssl_context=context)


def test_tls_checks_the_name_although_the_connection_is_pinned(authority):
    names = {"media.test": ["127.0.0.1"], "other.test": ["127.0.0.1"]}
    with secure(authority.issue_cert("media.test")) as host:
        client = trusting(authority, names)
        assert client.fetch(f"https://media.test:{host.port}/ok") == BODY
        with pytest.raises(MediaFetchError, match="failed"):
            client.fetch(f"https://other.test:{host.port}/ok")
        with pytest.raises(MediaFetchError, match="failed"):
            fetcher(names).fetch(f"https://media.test:{host.port}/ok")
        assert len(host.seen) == 1
