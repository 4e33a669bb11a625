# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Pictures that other servers took for each other, or failed to know again.

Each is asked over HTTP on several families. `Served.check` compares tokens, cached tokens and the
answer with a brute-force model and the stock model, so that a test only says what should be found.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps
from support.media import data_uri, image_bytes, picture
from support.media_host import Host, serving
from support.served import Served

ASK = "Look at this. "
END = " What is it?"
BLOCK = 32
WHITE, BLACK = (255, 255, 255), (0, 0, 0)
ORIENTATION = 0x0112


@pytest.fixture(scope="module", params=["qwen2_5_vl", "idefics3"])
def served(request: pytest.FixtureRequest, serve_family: Callable[[str], Served]) -> Served:
    return serve_family(request.param)


def part(url: str, **fields: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}, **fields}


def sent(data: bytes, **fields: Any) -> list[dict[str, Any]]:
    """The question about an image file."""
    return around(part(data_uri(data, "image/png"), **fields))


def around(*media: dict[str, Any]) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": words} for words in (ASK, END)]
    return [text[0], *media, text[1]]


def all_apart(served: Served, salt: str, *pictures: tuple[Image.Image, bytes]) -> None:
    """None of the pictures finds another's rows; each finds its own."""
    for turn in range(2):
        for index, (meant, data) in enumerate(pictures):
            cached = served.check(ASK, meant, END, sent=sent(data), salt=salt)
            parts = (ASK, meant, END)
            if turn:
                assert cached == served.full(*parts)
            else:
                assert cached == (served.first_row(*parts) if index else 0)


def test_one_byte_string_in_two_shapes(served: Served, salt: str) -> None:
    """C01, and its neighbours: one channel, four channels, and a file that says its shape."""
    cells = np.random.default_rng(1).integers(0, 256, (4, 8, 3), np.uint8)
    raw = cells.repeat(28, 0).repeat(28, 1).tobytes()
    wide = Image.frombytes("RGB", (224, 112), raw)
    tall = Image.frombytes("RGB", (112, 224), raw)
    gray = Image.frombytes("L", (336, 224), raw)
    pictures = [(image, image_bytes(image)) for image in (wide, tall)]
    all_apart(served, salt, *pictures, (gray.convert("RGB"), image_bytes(gray)))
    # The same two in a container in which they differ by two numbers only.
    for image, data in ((wide, b"P6 224 112 255\n" + raw), (tall, b"P6 112 224 255\n" + raw)):
        repeat = served.check(ASK, image, END, sent=sent(data), salt=salt)
        assert repeat == served.full(ASK, image, END)


def with_palette(*colors: tuple[int, int, int]) -> Image.Image:
    board = (np.indices((4, 4)).sum(0) % len(colors)).astype(np.uint8)
    image = Image.frombytes("P", (112, 112), board.repeat(28, 0).repeat(28, 1).tobytes())
    image.putpalette([value for color in colors for value in color])
    return image


def test_palettes(served: Served, salt: str) -> None:
    """C02: equal indices under other palettes, as gray, and with a colour that is transparent."""
    one, other = with_palette((255, 0, 0), (0, 0, 255)), with_palette((0, 255, 0), (255, 255, 0))
    gray = Image.frombytes("L", one.size, one.tobytes())
    clear = io.BytesIO()
    one.save(clear, "PNG", transparency=1)
    all_apart(
        served,
        salt,
        (one.convert("RGB"), image_bytes(one)),
        (other.convert("RGB"), image_bytes(other)),
        (gray.convert("RGB"), image_bytes(gray)),
        (with_palette((255, 0, 0), WHITE).convert("RGB"), clear.getvalue()),
    )
    # One picture whether by palette or by value, and in whatever order the palette is.
    swapped = Image.eval(one.convert("RGB").convert("P", palette=Image.Palette.ADAPTIVE), int)
    for image, form in ((one.convert("RGB"), "PNG"), (one, "GIF"), (swapped, "PNG")):
        again = sent(image_bytes(image, form))
        meant = one.convert("RGB")
        assert served.check(ASK, meant, END, sent=again, salt=salt) == served.full(ASK, meant, END)


def test_the_background_of_a_transparent_picture(served: Served, salt: str) -> None:
    """C03: an option of decoding, and its default given in full."""
    clear = picture(31).convert("RGBA")
    clear.putalpha(Image.linear_gradient("L").resize(clear.size))
    on = {}
    for color in (WHITE, BLACK):
        below = Image.new("RGBA", clear.size, (*color, 255))
        on[color] = Image.alpha_composite(below, clear).convert("RGB")
    data = sent(image_bytes(clear))
    found = []
    for color, given in [
        *((WHITE, True), (BLACK, True), (WHITE, True)),
        *((WHITE, False), (BLACK, True), (WHITE, False)),
    ]:
        kwargs = {"image": {"rgba_background_color": list(color)}} if given else None
        meant = on[color]
        cached = served.check(ASK, meant, END, sent=data, salt=salt, media_io_kwargs=kwargs)
        found.append(cached == served.full(ASK, meant, END))
    assert found == [False, False, True, True, True, True]


OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # What changes the item, and the defaults spelled out.
    "qwen2_5_vl": (
        {"max_pixels": 20 * 28 * 28},
        {"min_pixels": 56 * 56, "max_pixels": 256 * 28 * 28},
    ),
    "idefics3": ({"do_image_splitting": False}, {"do_image_splitting": True}),
}


def test_options_of_the_processor(served: Served, salt: str) -> None:
    """C03: value 1, value 2, value 1; defaults in any order are no option."""
    other, defaults = OPTIONS[served.name]
    image = picture(32, 300, 200)
    parts = (ASK, image, END)
    before, full = served.first_row(*parts), served.full(*parts)
    assert served.check(*parts, salt=salt) == 0
    assert served.check(*parts, salt=salt, options=other) <= before
    assert served.check(*parts, salt=salt) == full
    assert served.check(*parts, salt=salt, options=other) < full
    for given in (defaults, dict(reversed(defaults.items()))):
        assert served.check(*parts, salt=salt, mm_processor_kwargs=given) == full


def test_what_differs_late_or_little(served: Served, salt: str) -> None:
    """C04: the last row, one block in the middle, one pixel; and files with equal heads."""
    base = np.asarray(picture(41, 512, 512))

    def changed(*place: slice) -> Image.Image:
        array = base.copy()
        array[place] ^= 255
        return Image.fromarray(array)

    pixel = slice(-1, None)
    variants = [
        *(Image.fromarray(base), changed(pixel), changed(slice(250, 262), slice(250, 262))),
        changed(pixel, pixel),
    ]
    buffers = []
    for image in variants:
        buffers.append(io.BytesIO())
        image.save(buffers[-1], "PNG", compress_level=0)
    files = [(image, data.getvalue()) for image, data in zip(variants, buffers, strict=True)]
    all_apart(served, salt, *files)


def behind_a_head(image: Image.Image) -> bytes:
    """A JPEG with 70 KB in front of the picture."""
    whole = image_bytes(image, "JPEG")
    segment = b"\xff\xef" + struct.pack(">H", 35_002) + bytes(35_000)
    return whole[:2] + 2 * segment + whole[2:]


def test_files_that_begin_alike(served: Served, salt: str) -> None:
    """C04: 70 KB of equal metadata, also where another tag in it is all that differs."""
    files = [behind_a_head(picture(seed)) for seed in (42, 43)]
    assert files[0][:70_000] == files[1][:70_000]
    decoded = [Image.open(io.BytesIO(data)).convert("RGB") for data in files]
    all_apart(served, salt, *zip(decoded, files, strict=True))
    other_head = files[0].replace(bytes(35_000), bytes([1]) * 35_000)
    again = served.check(ASK, decoded[0], END, sent=sent(other_head), salt=salt)
    assert again == served.full(ASK, decoded[0], END)


def test_names_whose_content_changes(served: Served, salt: str, media_dir: Path) -> None:
    """C06: a file of the same size and time, a link, and a URL."""
    images = [picture(seed) for seed in (61, 62)]
    files = []
    for image in images:
        buffer = io.BytesIO()
        image.save(buffer, "BMP")
        files.append(buffer.getvalue())
    assert len(files[0]) == len(files[1])
    path = media_dir / f"{salt}.bmp"
    link = media_dir / f"{salt}-link.bmp"
    link.symlink_to(path)
    with serving(Host()) as host:
        for url in (path.as_uri(), str(path), str(link), f"{host.url}/ok/a.bmp"):
            scope = f"{salt} {url}"
            found = []
            for which in (0, 1, 0):
                path.write_bytes(files[which])
                os.utime(path, ns=(10**18, 10**18))
                host.body = files[which]
                parts = (ASK, images[which], END)
                cached = served.check(*parts, sent=around(part(url)), salt=scope)
                found.append((cached, served.first_row(*parts), served.full(*parts)))
            assert found[0][0] == 0
            assert found[1][0] == found[1][1]
            assert found[2][0] == found[2][2]
        assert len(host.seen) == 3, "a URL is asked each time"


def test_ids_of_callers(served: Served, salt: str) -> None:
    """C07: one id on pictures of equal and of other size, two ids on one picture."""
    one, same_size, larger = picture(71), picture(72), picture(73, 320, 260)
    for turn in range(2):
        for image in (one, same_size, larger):
            data = sent(image_bytes(image), uuid="x1")
            cached = served.check(ASK, image, END, sent=data, salt=f"{salt} one")
            full = served.full(ASK, image, END)
            assert cached == full if turn else cached <= served.first_row(ASK, image, END)
    # Mixed in, so another id is another item; the answer is that of the picture.
    for uuid, found in (("a", False), ("b", False), ("a", True), ("b", True)):
        reply = served.ask(sent=sent(image_bytes(one), uuid=uuid), cache_salt=f"{salt} two")
        assert (reply.cached == served.full(ASK, one, END)) == found
        assert reply.text == served.ask(ASK, one, END).text
    for lacking in ({"type": "image_url", "uuid": "x1"}, part("", uuid="x1")):
        reply = served.ask(sent=around(lacking))
        assert reply.status == 400 and reply.error["param"] == "messages[0].content[1]"


def test_a_later_picture_leaves_the_earlier_ones_found(served: Served, salt: str) -> None:
    """C08: each request repeats the last one and adds to it."""
    parts: list[Any] = ["Words that stand in front of all. " * 4]
    before = 0
    for seed, words in ((81, " and "), (82, " or "), (83, "?")):
        parts += [picture(seed, 300, 200), words]
        cached = served.check(*parts, salt=salt)
        assert cached >= before
        # All up to the end of this picture is there for the next request.
        runs = served.prompt(*parts).items[-1].runs
        before = runs[-1].position + runs[-1].length
    replaced = [*parts[:-2], picture(84, 300, 200), "?"]
    cached = served.check(*replaced, salt=salt)
    assert cached == served.prompt(*parts).items[-1].runs[0].position
    swapped = [parts[0], parts[3], parts[2], parts[1], *parts[4:]]
    assert served.check(*swapped, salt=salt) == served.first_row(*parts)


def test_one_picture_through_every_door(served: Served, salt: str, media_dir: Path) -> None:
    """C09: whatever comes first, all others find everything."""
    image = picture(91)
    png, bmp = image_bytes(image), image_bytes(image, "BMP")
    path = media_dir / f"{salt}.png"
    path.write_bytes(png)
    with serving(Host(body=png)) as host:
        doors = [
            data_uri(png, "image/png"),
            data_uri(bmp, "image/bmp"),
            path.as_uri(),
            str(path),
            f"{host.url}/ok/a.png",
            f"{host.url}/ok/b?version=2",
            f"{host.url}/hops/2",
        ]
        full = served.full(ASK, image, END)
        for first in range(0, len(doors), 2):
            scope = f"{salt} {first}"
            order = doors[first:] + doors[:first]
            cached = [
                served.check(ASK, image, END, sent=around(part(url)), salt=scope) for url in order
            ]
            assert cached == [0] + [full] * (len(doors) - 1)


def test_common_words_before_or_behind_the_picture(served: Served, salt: str) -> None:
    """C10: in front of it they are shared, behind it they are not."""
    words = "Tell what is on the page, line by line, and leave nothing out. " * 12
    one, other = picture(101), picture(102)
    served.check(words, one, salt=f"{salt} front")
    in_front = served.check(words, other, salt=f"{salt} front")
    assert in_front == served.first_row(words, other) > 5 * BLOCK
    served.check(one, words, salt=f"{salt} behind")
    behind = served.check(other, words, salt=f"{salt} behind")
    assert behind == served.first_row(other, words) < BLOCK


def tagged(tag: int | None) -> tuple[Image.Image, bytes]:
    """What is seen of a photo with an orientation tag, and the photo."""
    image = picture(201, 320, 240)
    image.paste((255, 0, 0), (0, 0, 60, 240))
    image.paste((0, 255, 0), (0, 190, 320, 240))
    exif = Image.Exif()
    if tag is not None:
        exif[ORIENTATION] = tag
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=95, exif=exif)
    return ImageOps.exif_transpose(Image.open(buffer)), buffer.getvalue()


def test_orientation_tags(served: Served, salt: str, media_dir: Path) -> None:
    """C20: the picture as it is seen, through every door; no two tags alike but none and 1."""
    path = media_dir / f"{salt}.jpg"
    with serving(Host()) as host:
        for tag in (None, *range(1, 9)):
            seen, data = tagged(tag)
            assert (seen.height > seen.width) == (tag is not None and tag >= 5)
            path.write_bytes(data)
            host.body = data
            urls = [data_uri(data, "image/jpeg"), path.as_uri(), f"{host.url}/ok/{tag}"]
            cached = [
                served.check(ASK, seen, END, sent=around(part(url)), salt=salt) for url in urls
            ]
            # The same turned beforehand, and saved without a tag.
            cached.append(served.check(ASK, seen, END, salt=salt))
            full = served.full(ASK, seen, END)
            assert cached[1:] == [full] * 3
            first = {None: 0, 1: full}.get(tag, served.first_row(ASK, seen, END))
            assert cached[0] == first
