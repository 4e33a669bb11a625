# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``trtllm-serve explain``: asks a running server what of a request it has cached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_BAR_WIDTH = 20
_TIMEOUT_SECONDS = 60


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--url", default="http://localhost:8000", show_default=True, help="Address of the server."
)
@click.option(
    "--other_salts",
    is_flag=True,
    help="Also tell where requests with another cache_salt have more.",
)
@click.option("--api_key", envvar="TRTLLM_API_KEY", help="Key to show to the server.")
@click.option("--json", "as_json", is_flag=True, help="Print the server's answer as it is.")
def explain(file: Path, url: str, other_salts: bool, api_key: str | None, as_json: bool) -> None:
    """Tells how much of a chat request the server has cached, and why no more.

    FILE holds the body of a chat request in JSON. Nothing is run.
    """
    import httpx  # here: other commands need not wait for it

    try:
        response = httpx.post(
            f"{url.rstrip('/')}/kv_cache/explain",
            params={"other_salts": "1"} if other_salts else {},
            content=file.read_bytes(),
            headers={
                "Content-Type": "application/json",
                **({"Authorization": f"Bearer {api_key}"} if api_key else {}),
            },
            timeout=_TIMEOUT_SECONDS,
        )
        answer = response.json()
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise click.ClickException(f"no answer from {url}: {error} (--url)") from None
    if response.status_code != 200:
        reason = answer.get("message", answer) if isinstance(answer, dict) else answer
        raise click.ClickException(f"{url} says {response.status_code}: {reason}")
    click.echo(response.text if as_json else _describe(answer))


def _describe(answer: dict[str, Any]) -> str:
    lines = [answer["message"], ""]
    lines += [_segment(segment) for segment in answer["segments"]]
    lines += ["", *(f"* {advice}" for advice in answer["advice"])] if answer["advice"] else []
    return "\n".join(lines)


def _segment(segment: dict[str, Any]) -> str:
    done = round(_BAR_WIDTH * segment["cached"] / segment["length"])
    bar = "#" * done + "." * (_BAR_WIDTH - done)
    last = segment["offset"] + segment["length"] - 1
    what = (
        f"rows {segment['first_row']}-{segment['first_row'] + segment['rows'] - 1} of "
        f"item {segment['item']}, {(segment['identity'] or 'unknown')[:12]}"
        if "item" in segment
        else repr(segment["text"])[:60]
    )
    place = f"{segment['offset']}-{last}"
    return f"{place:>13} [{bar}] {segment['cached']:>6} cached  {segment['kind']:<6} {what}"
