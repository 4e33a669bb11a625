# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The clients of a soak: they wait, stream, leave early in every way, and check what they got."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from endurance.traffic import (
    FIXED_ADAPTERS,
    SWAPPED_ADAPTER,
    Ask,
    Traffic,
    bad_bodies,
    name_of,
)

CHAT, FILES = "/v1/chat/completions", "/v1/files"
LOAD, UNLOAD, FLUSH = "/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/kv_cache/flush"
# A request that takes longer hangs, whatever else the machine does.
HANG_SECONDS = 180.0
_BAD = tuple(bad_bodies())
# Of a hundred clients; the others wait for a whole answer.
_SHARES = {"stream": 25, "hung up": 10, "gave up": 10, "cut off": 6, "bad": 5, "uploaded": 6}


@dataclass
class Tally:
    """What came of a run, by kind of client and of question."""

    ended: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """How many clients came."""
        return self.ended.total()


class Oracle:
    """Right answers, from a server without reuse, asked once about each request.

    Args:
        client: Speaks to that server, which has every adapter under a name of its own.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._answers: dict[str, asyncio.Task[list[str]]] = {}

    def __len__(self) -> int:
        return len(self._answers)

    async def answers(self, ask: Ask, adapter: str | None) -> list[str]:
        """The texts of its choices."""
        body = ask.plain(adapter)
        name = name_of(body)
        if name not in self._answers:
            self._answers[name] = asyncio.create_task(self._asked(body))
        return await asyncio.shield(self._answers[name])

    async def _asked(self, body: dict[str, Any]) -> list[str]:
        response = await self._client.post(CHAT, json=body)
        assert response.status_code == 200, f"the oracle: {response.text}"
        return texts_of(response.json())


def texts_of(body: dict[str, Any]) -> list[str]:
    """The texts of an answer's choices, in order."""
    choices = sorted(body["choices"], key=lambda choice: choice["index"])
    return [choice["message"]["content"] or "" for choice in choices]


class Clients:
    """Plays numbered requests on one server.

    Args:
        client: Speaks to the server under test.
        oracle: Knows the right answers.
        traffic: What is asked.
        adapters: Folder of each of `FIXED_ADAPTERS`.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        oracle: Oracle,
        traffic: Traffic,
        adapters: dict[str, str],
    ) -> None:
        self.tally = Tally()
        self._client = client
        self._oracle = oracle
        self._traffic = traffic
        self._adapters = adapters
        # What the swapped name has stood for, the latest last; None where it stood for nothing.
        self._stood: list[str | None] = [FIXED_ADAPTERS[0]]
        self._loading = False

    async def prepare(self) -> None:
        """Loads the adapters."""
        for name in FIXED_ADAPTERS:
            await self._change(LOAD, lora_name=name, lora_path=self._adapters[name])
        await self._stand_for(FIXED_ADAPTERS[0])

    def meet(self, client: httpx.AsyncClient) -> None:
        """Goes on with new connections."""
        self._client = client

    async def play(self, number: int) -> None:
        """One client. What goes wrong is noted and nothing is raised."""
        rng = self._traffic.random(number)
        ask = self._traffic.ask(number, rng)
        kind = rng.choices([*_SHARES, "whole"], [*_SHARES.values(), 100 - sum(_SHARES.values())])[0]
        try:
            await asyncio.wait_for(self._played(kind, ask, rng), HANG_SECONDS)
        except asyncio.TimeoutError:
            self._fault(number, kind, f"no answer in {HANG_SECONDS:g} s")
        except (AssertionError, httpx.HTTPError, OSError, ValueError, KeyError) as error:
            self._fault(number, kind, f"{type(error).__name__}: {error}"[:500])
        self.tally.ended[kind] += 1

    async def change(self, number: int) -> None:
        """What an administrator does between requests: a flush, or another adapter."""
        try:
            if number % 2:
                await self._change(FLUSH)
                self.tally.changes["flushes"] += 1
            else:
                first, second = FIXED_ADAPTERS
                await self._stand_for(second if self._stood[-1] == first else first)
                self.tally.changes["swaps"] += 1
        except (AssertionError, httpx.HTTPError) as error:
            self._fault(number, "change", f"{type(error).__name__}: {error}"[:500])

    async def _played(self, kind: str, ask: Ask, rng: random.Random) -> None:
        players: dict[str, Callable[[], Awaitable[None]]] = {
            "whole": lambda: self._whole(ask, ask.body),
            "stream": lambda: self._stream(ask, None),
            "hung up": lambda: self._stream(ask, rng.randrange(8)),
            "gave up": lambda: self._give_up(ask, rng.random()),
            "cut off": lambda: self._cut_off(ask, rng),
            "bad": lambda: self._bad(rng.choice(_BAD)),
            "uploaded": lambda: self._uploaded(ask),
        }
        await players[kind]()

    async def _whole(self, ask: Ask, body: dict[str, Any]) -> None:
        since = self._now()
        response = await self._client.post(CHAT, json=body)
        if self._was_swapped_away(ask, since, response.status_code, response.text):
            return
        assert response.status_code == 200, f"{response.status_code}: {response.text}"
        await self._check(ask, texts_of(response.json()), since, whole=True)

    async def _stream(self, ask: Ask, events: int | None) -> None:
        """Reads a stream, or so many events of it and hangs up."""
        since, texts = self._now(), [""] * ask.fields.get("n", 1)
        asked = self._client.stream("POST", CHAT, json={**ask.body, "stream": True})
        async with asked as response:
            if response.status_code != 200:
                said = (await response.aread()).decode()
                swapped = self._was_swapped_away(ask, since, response.status_code, said)
                assert swapped, f"{response.status_code}: {said}"
                return
            ended = False
            async for line in response.aiter_lines():
                if events == 0:
                    break
                ended = ended or line == "data: [DONE]"
                if not line.startswith("data: ") or line == "data: [DONE]":
                    continue
                event = json.loads(line.removeprefix("data: "))
                assert "error" not in event, event
                for one in event["choices"]:
                    texts[one["index"]] += one["delta"].get("content") or ""
                events = None if events is None else events - 1
        assert ended or events == 0, "the stream ended without [DONE]"
        await self._check(ask, texts, since, whole=ended)

    async def _give_up(self, ask: Ask, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._whole(ask, ask.body), seconds)
        except asyncio.TimeoutError:
            self.tally.changes["given up"] += 1

    async def _cut_off(self, ask: Ask, rng: random.Random) -> None:
        """Hangs up in the middle of sending."""
        address = urlsplit(str(self._client.base_url))
        data = json.dumps(ask.body).encode()
        route = rng.choice([CHAT, CHAT, FILES])
        kind = "application/json" if route == CHAT else "multipart/form-data; boundary=x"
        head = f"POST {route} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
        _, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode())
        writer.write(data[: rng.randrange(len(data))])
        await writer.drain()
        await asyncio.sleep(0.05 * rng.random())
        if rng.random() < 0.5:
            writer.transport.abort()
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    async def _bad(self, body: bytes) -> None:
        headers = {"Content-Type": "application/json"}
        response = await self._client.post(CHAT, content=body, headers=headers)
        said = f"{response.status_code}: {response.text} to {body[:80]!r}"
        assert 400 <= response.status_code < 500, said
        assert response.json()["code"] == response.status_code, said

    async def _uploaded(self, ask: Ask) -> None:
        """Uploads the first piece of media, names it, and takes it back."""
        body = copy.deepcopy(ask.body)
        parts = [part for turn in body["messages"] for part in turn["content"]]
        media = [part for part in parts if isinstance(part, dict) and part["type"] != "text"]
        if not media:
            await self._whole(ask, body)
            return
        kind = media[0]["type"]
        content = base64.b64decode(media[0].pop(kind)["url"].partition(",")[2])
        name = "a.png" if kind == "image_url" else "a.wav"
        owner = {"cache_salt": body["cache_salt"]} if "cache_salt" in body else {}
        response = await self._client.post(FILES, files={"file": (name, content)}, data=owner)
        assert response.status_code == 200, response.text
        media[0]["file_id"] = response.json()["id"]
        await self._whole(ask, body)
        gone = await self._client.delete(f"{FILES}/{media[0]['file_id']}", params=owner)
        assert gone.status_code == 200, gone.text

    async def _check(self, ask: Ask, texts: list[str], since: int, whole: bool) -> None:
        """The answer is that of an adapter which the name stood for meanwhile."""
        names: list[str | None] = [ask.adapter]
        if ask.adapter == SWAPPED_ADAPTER:
            names = [name for name in dict.fromkeys(self._stood[since:]) if name is not None]
        right = [await self._oracle.answers(ask, name) for name in names]
        if whole:
            assert texts in right, f"wrong answer {texts} for {right} to {ask.body}"
            self.tally.right[ask.question.kind] += 1
        else:
            begun = [
                all(one.startswith(text) for one, text in zip(answer, texts, strict=True))
                for answer in right
            ]
            assert any(begun), f"wrong beginning {texts} for {right} to {ask.body}"

    def _was_swapped_away(self, ask: Ask, since: int, status: int, said: str) -> bool:
        """Whether a refusal says rightly that there was no adapter of that name just then."""
        absent = ask.adapter == SWAPPED_ADAPTER and None in self._stood[since:]
        if status == 400 and absent and "was unloaded" in said:
            self.tally.changes["met no adapter"] += 1
            return True
        return False

    async def _stand_for(self, name: str) -> None:
        """Gives the swapped name another folder."""
        self._stood.append(None)
        if len(self._stood) > 2:
            await self._change(UNLOAD, lora_name=SWAPPED_ADAPTER)
        # Before it is loaded: a request may come in before the answer.
        self._stood.append(name)
        self._loading = True
        await self._change(LOAD, lora_name=SWAPPED_ADAPTER, lora_path=self._adapters[name])
        self._loading = False

    def _now(self) -> int:
        """From where on the list says what the swapped name stands for now and later."""
        return len(self._stood) - (2 if self._loading else 1)

    async def _change(self, route: str, **body: Any) -> None:
        response = await self._client.post(route, json=body)
        assert response.status_code == 200, f"{route}: {response.text}"

    def _fault(self, number: int, kind: str, what: str) -> None:
        self.tally.faults.append(f"request {number} ({kind}): {what}")
