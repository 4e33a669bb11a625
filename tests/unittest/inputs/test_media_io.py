# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import base64
import io
import re
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image, ImageOps
from support.av_media import video_bytes
from support.engine import wait_until
from support.flights import waiting_for_others
from support.media import clip, data_uri, image_bytes, picture, wav_bytes

from tensorrt_llm.errors import (
    LimitExceededError,
    MediaBlockedError,
    MediaError,
    RequestError,
    UnsupportedModalityError,
)
from tensorrt_llm.inputs.decode_pool import DecodePool
from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.inputs.media_decode import decode_media
from tensorrt_llm.inputs.media_io import MediaLoader
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.media_memo import MediaMemo
from tensorrt_llm.inputs.multimodal_data import HASH_ALGORITHMS, AudioData, MediaHasher

PART = "messages[0].content[1]"
LEAK = re.compile(r"0x[0-9a-f]{6,}|Traceback|File \"|site-packages|/tmp/|\.py\b|BytesIO|\bPIL\b")


@pytest.fixture(scope="module")
def hasher() -> MediaHasher:
    return MediaHasher()


@pytest.fixture
def trusted(hasher) -> MediaLoader:
    return MediaLoader(MediaAccess(trusted=True), hasher)


@pytest.fixture(scope="module")
def pool() -> Iterator[DecodePool]:
    pool = DecodePool(1)
    yield pool
    pool.close()


@pytest.fixture
def untrusted(hasher, tmp_path, pool) -> MediaLoader:
    return MediaLoader(MediaAccess(allowed_local_media_path=tmp_path), hasher, decoder=pool)


@pytest.fixture
def web(tmp_path):
    """Address of a web server over the temporary folder."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_one_picture_is_one_identity_through_every_door(trusted, web, tmp_path):
    image = picture(1)
    pixels = np.asarray(image)
    path = tmp_path / "a picture.png"
    path.write_bytes(image_bytes(image))
    (tmp_path / "again.bmp").write_bytes(image_bytes(image, "BMP"))
    unopened = Image.open(io.BytesIO(image_bytes(image, "TIFF")))
    doors = [
        str(path),
        path,
        path.as_uri(),
        f"{web}/a%20picture.png",
        f"{web}/again.bmp",
        data_uri(image_bytes(image), "image/png"),
        data_uri(image_bytes(image, "PPM"), "application/octet-stream"),
        image_bytes(image, "BMP"),
        bytearray(image_bytes(image)),
        memoryview(image_bytes(image)),
        image,
        image.convert("RGBA"),
        unopened,
        pixels,
        torch.from_numpy(pixels.copy()),
        torch.from_numpy(pixels.copy()).permute(2, 0, 1) / 255,
    ]
    items = [trusted.load("image", door) for door in doors]
    digests = {item.payload_digest for item in items}
    digests.add(
        trusted.load_base64("image", base64.b64encode(image_bytes(image)).decode()).payload_digest
    )
    assert len(digests) == 1
    for item in items:
        assert item.data.mode == "RGB"
        np.testing.assert_array_equal(np.asarray(item.data), pixels)


def test_one_clip_is_one_identity_through_every_door(trusted, web, tmp_path):
    samples = np.rint(clip(1) * 2**15).astype(np.float32) / np.float32(2**15)
    integers = (samples * 2**15).astype(np.int16)
    wav = wav_bytes(samples)
    path = tmp_path / "clip.wav"
    path.write_bytes(wav)
    flac = io.BytesIO()
    soundfile.write(flac, integers, 16000, format="FLAC")
    doors = [
        str(path),
        path.as_uri(),
        f"{web}/clip.wav",
        data_uri(wav, "audio/wav"),
        wav,
        flac.getvalue(),
        wav_bytes(samples, subtype="FLOAT"),
        AudioData(samples, 16000),
        (samples, 16000),
        [samples.astype(np.float64), 16000],
        (integers, 16000),
        (torch.from_numpy(samples)[None], 16000),
    ]
    items = [trusted.load("audio", door) for door in doors]
    items.append(trusted.load_base64("audio", base64.b64encode(wav).decode(), "wav"))
    assert len({item.payload_digest for item in items}) == 1
    for item in items:
        assert item.data.sample_rate == 16000
        np.testing.assert_array_equal(item.data.samples, samples)


def image_misses() -> dict[str, object]:
    """Pictures that are near one another and yet others."""
    raw = np.random.default_rng(3).bytes(56 * 112 * 3)
    base = np.frombuffer(raw, np.uint8).reshape(112, 56, 3)

    def changed(row: int, column: int, channel: int) -> np.ndarray:
        copy = base.copy()
        copy[row, column, channel] ^= 1
        return copy

    misses: dict[str, object] = {
        "base": Image.frombytes("RGB", (56, 112), raw),
        "same bytes, other size": Image.frombytes("RGB", (112, 56), raw),
        "same bytes, CMYK": Image.frombytes("CMYK", (56, 84), raw),
        "last row": changed(111, 55, 2),
        "first pixel": changed(0, 0, 0),
        "middle pixel": changed(56, 28, 1),
        "channels swapped": np.ascontiguousarray(base[..., ::-1]),
        "rows swapped": np.ascontiguousarray(base[::-1]),
        "cropped": base[:-1],
    }
    indices = (np.indices((64, 64)).sum(0) % 2).astype(np.uint8).tobytes()
    for name, palette in (
        ("red blue", (255, 0, 0, 0, 0, 255)),
        ("green yellow", (0, 255, 0, 255, 255, 0)),
    ):
        misses[f"palette {name}"] = Image.frombytes("P", (64, 64), indices)
        misses[f"palette {name}"].putpalette(palette)
    misses["palette bytes as gray"] = Image.frombytes("L", (64, 64), indices)
    deep = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    for step in (0, 1):
        misses[f"16 bits {step}"] = Image.fromarray(deep + np.uint16(step))
        misses[f"float {step}"] = Image.fromarray(deep.astype(np.float32) + step / 1000)
        misses[f"wide {step}"] = Image.fromarray(deep.astype(np.int32) + 100_000 + step)
        misses[f"cmyk {step}"] = Image.new("CMYK", (8, 8), (10, 20, 200, 254 + step))
    return misses


@pytest.mark.parametrize("algorithm", HASH_ALGORITHMS)
def test_other_pictures_are_other_identities(algorithm):
    loader = MediaLoader(MediaAccess(trusted=True), MediaHasher(algorithm))
    first = {name: loader.load("image", source) for name, source in image_misses().items()}
    digests = {item.payload_digest for item in first.values()}
    assert len(digests) == len(first)
    for name, source in image_misses().items():
        assert loader.load("image", source).payload_digest == first[name].payload_digest, name


def test_palette_and_rgb_of_one_picture_are_one(untrusted):
    image = image_misses()["palette red blue"]
    digest = untrusted.load("image", image).payload_digest
    assert untrusted.load("image", image.convert("RGB")).payload_digest == digest
    assert untrusted.load("image", image_bytes(image)).payload_digest == digest


def test_a_16_bit_picture_is_one_in_every_container(untrusted):
    image = Image.fromarray(np.arange(0, 60000, 100, dtype=np.uint16).reshape(20, 30))
    forms = ["PNG", "TIFF", "PPM"]
    digests = {untrusted.load("image", image_bytes(image, form)).payload_digest for form in forms}
    digests.add(untrusted.load("image", image).payload_digest)
    assert len(digests) == 1


def clip_misses() -> dict[str, object]:
    samples = clip(5, seconds=0.5)
    tail = samples.copy()
    tail[-16:] += np.float32(0.01)
    data = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()

    def header(rate: int, channels: int) -> bytes:
        layout = struct.pack("<HHIIHH", 1, channels, rate, rate * 2 * channels, 2 * channels, 16)
        chunks = (
            b"WAVEfmt " + struct.pack("<I", 16) + layout + b"data" + struct.pack("<I", len(data))
        )
        return b"RIFF" + struct.pack("<I", 36 + len(data)) + chunks + data

    return {
        "wav 16 kHz": header(16000, 1),
        "wav 8 kHz": header(8000, 1),
        "wav stereo": header(16000, 2),
        "array 16 kHz": (samples, 16000),
        "array 8 kHz": (samples, 8000),
        "tail": (tail, 16000),
        "one sample less": (samples[:-1], 16000),
        "silence after": (np.append(samples, np.float32(0)), 16000),
        "stereo of it": (np.stack([samples, samples], axis=1), 16000),
        "left only": (np.stack([samples, 0 * samples], axis=1), 16000),
        "right only": (np.stack([0 * samples, samples], axis=1), 16000),
    }


@pytest.mark.parametrize("algorithm", HASH_ALGORITHMS)
def test_other_clips_are_other_identities(algorithm):
    loader = MediaLoader(MediaAccess(trusted=True), MediaHasher(algorithm))
    first = {name: loader.load("audio", source) for name, source in clip_misses().items()}
    assert len({item.payload_digest for item in first.values()}) == len(first)
    for name, source in clip_misses().items():
        assert loader.load("audio", source).payload_digest == first[name].payload_digest, name


@pytest.mark.parametrize("tag", range(1, 9))
def test_orientation_is_part_of_the_picture(untrusted, tag):
    exif = Image.Exif()
    exif[0x0112] = tag
    buffer = io.BytesIO()
    picture(7).save(buffer, "JPEG", quality=95, exif=exif)
    tagged = untrusted.load("image", buffer.getvalue())
    with Image.open(buffer) as opened:
        upright = ImageOps.exif_transpose(opened)
        from_object = untrusted.load("image", opened)
        plain = untrusted.load("image", Image.fromarray(np.asarray(opened)))
    assert tagged.payload_digest == from_object.payload_digest
    assert tagged.payload_digest == untrusted.load("image", image_bytes(upright)).payload_digest
    assert (tagged.payload_digest == plain.payload_digest) == (tag == 1)
    assert tagged.data.size == upright.size


def test_a_name_is_no_identity(trusted, tmp_path):
    path = tmp_path / "same.png"
    digests = []
    for seed in (1, 2, 1):
        path.write_bytes(image_bytes(picture(seed)))
        digests.append(trusted.load("image", str(path)).payload_digest)
    assert digests[0] == digests[2] != digests[1]


def test_later_changes_of_the_callers_objects_change_nothing(trusted):
    image, samples = picture(1), clip(1)
    item, audio = trusted.load("image", image), trusted.load("audio", AudioData(samples, 16000))
    before, heard = np.asarray(item.data).copy(), audio.data.samples.copy()
    image.paste((1, 2, 3), (0, 0, 50, 50))
    samples[:] = 0
    np.testing.assert_array_equal(np.asarray(item.data), before)
    np.testing.assert_array_equal(audio.data.samples, heard)


def test_the_item_carries_part_and_uuid_and_the_digest_does_not(trusted):
    item = trusted.load("image", picture(1), part=PART, uuid="u-1")
    assert (item.modality, item.part, item.uuid) == ("image", PART, "u-1")
    assert trusted.load("image", picture(1)).payload_digest == item.payload_digest


def bad_sources() -> list[tuple[str, object, str]]:
    jpeg = image_bytes(picture(1), "JPEG")
    png = bytearray(image_bytes(picture(1)))
    png[png.index(b"IDAT") + 40] ^= 255
    wav = wav_bytes(clip(1))
    return [
        ("image", data_uri(jpeg[:-128], "image/jpeg"), "truncated or damaged"),
        ("image", data_uri(b"", "image/png"), "empty"),
        ("image", data_uri(b"<html></html>", "image/png"), "no readable image"),
        ("image", data_uri(bytes(png), "image/png"), "truncated or damaged"),
        ("image", data_uri(b"\x07\xfe\x11", "image/png"), "no readable image"),
        ("image", data_uri(wav, "audio/wav"), "no readable image"),
        ("audio", data_uri(jpeg, "image/jpeg"), "no readable audio"),
        ("audio", data_uri(wav[:-1000], "audio/wav"), "truncated: 31500 of 32000 frames"),
        ("audio", data_uri(wav_bytes(clip(1)[:0]), "audio/wav"), "0 frames"),
        ("audio", b"", "empty"),
        ("image", "data:image/png;base64", "comma"),
        ("image", "ftp://media.example/a.png", "unknown scheme 'ftp'"),
        ("image", "s3://bucket/a.png", "unknown scheme 's3'"),
        ("image", "javascript:alert(1)", "unknown scheme 'javascript'"),
        ("image", "", "empty"),
        ("image", None, "missing"),
        ("image", 5, "not int"),
        ("image", [picture(1)], "not list"),
        ("image", AudioData(clip(1), 16000), "not AudioData"),
        ("audio", picture(1), "not Image"),
        ("audio", clip(1), "not ndarray"),
        ("audio", (clip(1),), "not tuple"),
        ("audio", ([0.0], 16000), "not list"),
        ("audio", (clip(1), "16000"), "not str"),
        ("audio", (clip(1), 0), "not 0"),
        ("audio", (clip(1)[:0], 16000), "0 frames"),
        ("image", np.zeros((2, 2, 7), np.uint8), "shape"),
        ("image", "http://127.0.0.1:9/a.png", "public addresses only"),
        ("image", "HTTP://localhost:9/a.png", "public addresses only"),
        ("image", "//127.0.0.1/a.png", "--allowed_local_media_path"),
        ("image", "/etc/hostname", "--allowed_local_media_path"),
        ("image", "/etc/no-such-file", "--allowed_local_media_path"),
        ("image", Path("/etc/hostname"), "--allowed_local_media_path"),
        ("image", "FILE:///etc/hostname", "--allowed_local_media_path"),
        ("image", "file://elsewhere/etc/hostname", "names no host"),
    ]


@pytest.mark.parametrize(("modality", "source", "message"), bad_sources())
def test_bad_media_is_one_plain_error_that_names_the_part(untrusted, modality, source, message):
    with pytest.raises(MediaError, match=re.escape(message)) as raised:
        untrusted.load(modality, source, part=PART)
    assert raised.value.part == PART
    assert str(raised.value).startswith(f"{PART}: ")
    assert not LEAK.search(str(raised.value))


def test_a_missing_file_is_an_error(trusted, untrusted, tmp_path):
    with pytest.raises(MediaError, match=r"none\.png cannot be opened"):
        trusted.load("image", str(tmp_path / "none.png"))
    with pytest.raises(MediaError, match="the file cannot be opened") as raised:
        untrusted.load("image", f"file://{tmp_path}/none.png")
    assert not isinstance(raised.value, MediaBlockedError)


def test_limits_hold_for_everybody_and_every_door(hasher, tmp_path):
    data = image_bytes(picture(1))
    (tmp_path / "a.png").write_bytes(data)
    loader = MediaLoader(
        MediaAccess(trusted=True, limits=MediaLimits(max_bytes=len(data) - 1)), hasher
    )
    for source in (data, str(tmp_path / "a.png"), data_uri(data, "image/png")):
        with pytest.raises(LimitExceededError, match="max_bytes") as raised:
            loader.load("image", source, part=PART)
        assert (raised.value.value, raised.value.maximum) == (len(data), len(data) - 1)
        assert raised.value.part == PART
    with pytest.raises(LimitExceededError, match="max_bytes"):
        loader.load_base64("image", base64.b64encode(data).decode())
    loader = MediaLoader(
        MediaAccess(trusted=True, limits=MediaLimits(max_pixels=27_999, max_audio_seconds=1.5)),
        hasher,
    )
    with pytest.raises(LimitExceededError, match="28000 pixels exceed max_pixels"):
        loader.load("image", data)
    with pytest.raises(LimitExceededError, match=r"2\.0 seconds exceed max_audio_seconds"):
        loader.load("audio", wav_bytes(clip(1)))


def test_other_modalities_are_named(untrusted):
    with pytest.raises(
        UnsupportedModalityError, match="smell; it takes: text, image, audio, video"
    ) as raised:
        untrusted.load("smell", b"", part=PART)
    assert raised.value.part == PART


@pytest.mark.parametrize("uuid", [5, b"id", ["id"]])
def test_a_uuid_is_text(untrusted, uuid):
    with pytest.raises(RequestError, match="a str or None"):
        untrusted.load("image", picture(1), uuid=uuid)


def test_base64_errors_name_the_declared_format(untrusted):
    with pytest.raises(MediaError, match=r"no readable audio.*declared format: 'pcm16'"):
        untrusted.load_base64("audio", base64.b64encode(bytes(100)).decode(), "pcm16", part=PART)
    with pytest.raises(MediaError, match="not base64"):
        untrusted.load_base64("audio", "*", "wav")
    with pytest.raises(MediaError, match="not NoneType"):
        untrusted.load_base64("audio", None, "wav")


def test_a_good_item_loads_after_every_bad_one(untrusted):
    for modality, source, _ in bad_sources():
        with pytest.raises(MediaError):
            untrusted.load(modality, source)
        good = picture(1) if modality == "image" else (clip(1), 16000)
        assert untrusted.load(modality, good).payload_digest


def test_many_threads_agree(untrusted):
    sources = [image_bytes(picture(seed)) for seed in range(6)] * 8
    expected = [untrusted.load("image", source).payload_digest for source in sources]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda s: untrusted.load("image", s).payload_digest, sources))
    assert found == expected


def test_videos_come_through_every_door(trusted, untrusted, web, tmp_path):
    data = video_bytes(frames=6)
    (tmp_path / "a.mp4").write_bytes(data)
    item = trusted.load("video", data)
    doors = [
        (trusted, str(tmp_path / "a.mp4")),
        (trusted, f"{web}/a.mp4"),
        (trusted, item.data),
        (untrusted, (tmp_path / "a.mp4").as_uri()),
        (untrusted, data_uri(data, "video/mp4")),
    ]
    for loader, source in doors:
        again = loader.load("video", source)
        assert again.payload_digest == item.payload_digest
        np.testing.assert_array_equal(again.data.frames, item.data.frames)


@pytest.mark.parametrize(
    ("modality", "source", "options"),
    [
        ("image", image_bytes(Image.new("RGBA", (8, 8), (9, 9, 9, 90))), "rgba_background_color"),
        ("video", video_bytes(frames=6), "num_frames"),
    ],
)
def test_options_decide_the_identity_and_defaults_given_do_not(hasher, modality, source, options):
    one, other, default = {
        "image": ([0, 0, 0], [9, 0, 0], [255, 255, 255]),
        "video": (2, 3, 10),
    }[modality]
    loader = MediaLoader(MediaAccess(trusted=True), hasher)
    served = MediaLoader(
        MediaAccess(trusted=True), hasher, default_options={modality: {options: one}}
    )

    def digest(loader: MediaLoader, **given: object) -> bytes:
        return loader.load(modality, source, options=given).payload_digest

    plain, first = digest(loader), digest(loader, **{options: one})
    assert len({plain, first, digest(loader, **{options: other})}) == 3
    assert digest(loader, **{options: one}) == first == digest(served)
    assert digest(served, **{options: other}) == digest(loader, **{options: other})
    # The server's default is left behind by an explicit value, also by the release's own default.
    bounds = {"fps": 30.0} if modality == "video" else {}
    assert digest(loader, **{options: default}, **bounds) == plain


def test_unknown_options_are_refused_at_start_and_in_a_request(trusted, hasher):
    with pytest.raises(RequestError, match="smell") as raised:
        trusted.load("image", picture(1), options={"smell": 1}, part=PART)
    assert raised.value.part == "media_io_kwargs.image"
    with pytest.raises(RequestError, match="smell"):
        MediaLoader(MediaAccess(trusted=True), hasher, default_options={"image": {"smell": 1}})
    with pytest.raises(UnsupportedModalityError):
        MediaLoader(MediaAccess(trusted=True), hasher, default_options={"smell": {}})


waiting = pytest.fixture(waiting_for_others)


class Gate:
    """A decoder that waits until it is let go."""

    def __init__(self, waiting: list) -> None:
        self.go = threading.Event()
        self._entered: list[int] = []
        self._waiting = waiting

    def __call__(self, *args: object) -> object:
        self._entered.append(1)
        assert self.go.wait(60)
        return decode_media(*args)

    def open_for(self, count: int) -> None:
        """Lets all go once so many decode, or wait for one that does."""
        wait_until(lambda: len(self._entered) + len(self._waiting) == count, "all have come")
        self.go.set()

    def close(self) -> None:
        self.go.clear()
        self._entered.clear()
        self._waiting.clear()


@pytest.fixture
def gate(waiting) -> Gate:
    return Gate(waiting)


def load_together(loader: MediaLoader, gate: Gate, loads: list[tuple[object, dict]]) -> list:
    with ThreadPoolExecutor(len(loads)) as threads:
        futures = [threads.submit(loader.load, "image", data, **how) for data, how in loads]
        gate.open_for(len(loads))
        return [future.result() for future in futures]


def test_equal_items_in_flight_are_decoded_once(hasher, gate):
    loader = MediaLoader(MediaAccess(trusted=True), hasher, decoder=gate)
    data, other = image_bytes(picture(1)), image_bytes(picture(2))
    uri = data_uri(data, "image/png")
    items = load_together(loader, gate, [(data, {"uuid": str(n)}) for n in range(5)] + [(uri, {})])
    assert loader.decodes == 1
    assert len({item.payload_digest for item in items}) == 1
    assert [item.uuid for item in items] == [*"01234", None]

    gate.close()
    near = [
        (data, {"scope": "a"}),
        (data, {"scope": "b"}),
        (data, {"options": {"rgba_background_color": [1, 2, 3]}}),
        (other, {}),
        (data, {}),
    ]
    load_together(loader, gate, near)
    assert loader.decodes == 1 + len(near), "no tenant and no option is another's"


def test_failures_in_flight_name_the_part_of_each_request(hasher, gate):
    loader = MediaLoader(MediaAccess(trusted=True), hasher, decoder=gate)
    parts = [f"messages[0].content[{n}]" for n in range(4)]
    with ThreadPoolExecutor(4) as threads:
        futures = [threads.submit(loader.load, "image", b"no image", part=part) for part in parts]
        gate.open_for(4)
        assert [future.exception().part for future in futures] == parts
    assert loader.decodes == 1


class CountingFetcher:
    def __init__(self) -> None:
        self.urls: list[str] = []

    def fetch(self, url: str) -> bytes:
        self.urls.append(url)
        return image_bytes(picture(len(self.urls)))


def test_a_url_is_fetched_once_a_request_and_again_by_the_next(hasher):
    fetcher = CountingFetcher()
    loader = MediaLoader(MediaAccess(trusted=True), hasher, fetcher=fetcher)
    for count in (1, 2):
        request = loader.for_request()
        items = [request.load("image", "http://media.example/a.png") for _ in range(3)]
        assert len({item.payload_digest for item in items}) == 1
        assert len(fetcher.urls) == count
    request.load("image", "http://media.example/b.png")
    assert len(fetcher.urls) == 3


def test_a_remembered_item_is_neither_decoded_nor_even_brought_to_bytes(hasher):
    loader = MediaLoader(MediaAccess(trusted=True), hasher, memo=MediaMemo(2**20))
    data = image_bytes(picture(1))
    text = base64.b64encode(data).decode()
    forms = [
        lambda: loader.load("image", data),
        lambda: loader.load("image", data_uri(data, "image/png")),
        lambda: loader.load_base64("image", text, "png"),
    ]
    items = [form() for form in (*forms, *forms)]
    assert loader.decodes == 1
    assert len({item.payload_digest for item in items}) == 1
    for item in items[1:]:
        np.testing.assert_array_equal(np.asarray(item.data), np.asarray(items[0].data))
    assert loader.decodes == len(items), "content that someone looks at is made then"
    loader.load("image", data, scope="other tenant")
    loader.load("image", data, options={"frame": 0})
    assert loader.decodes == len(items) + 1, "another tenant decodes, a default given does not"
    assert loader.load("image", image_bytes(picture(2))).payload_digest != items[0].payload_digest


def test_a_remembered_item_passes_no_stricter_limit(hasher):
    memo, data = MediaMemo(2**20), image_bytes(picture(1))
    MediaLoader(MediaAccess(trusted=True), hasher, memo=memo).load("image", data)
    strict = MediaAccess(trusted=True, limits=MediaLimits(max_pixels=27_999))
    for source in (data, data_uri(data, "image/png")):
        with pytest.raises(LimitExceededError):
            MediaLoader(strict, hasher, memo=memo).load("image", source)


def test_failures_are_not_remembered(hasher, tmp_path):
    loader = MediaLoader(MediaAccess(trusted=True), hasher, memo=MediaMemo(2**20))
    for _ in range(2):
        with pytest.raises(MediaError):
            loader.load("image", b"no image")
    assert loader.decodes == 2
