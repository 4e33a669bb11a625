# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Thousands of pairs of payloads, each marked equal or different by what they mean.

Every specimen says its meaning in NumPy terms, worked out before anything is encoded: what kind of
values, their shape, and the values. Two specimens must have one identity exactly when their
meanings are equal, whatever mode, type, layout, container or door they come by.
"""

from __future__ import annotations

import base64
import io
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image

from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.inputs.media_io import MediaLoader
from tensorrt_llm.inputs.media_memo import MediaMemo
from tensorrt_llm.inputs.multimodal_data import AudioData, EmbeddingData, MediaHasher
from tensorrt_llm.inputs.video_data import VideoClip

RNG = np.random.default_rng(20_261)
ORIENTATION = 0x0112
# What a viewer does to see a picture that was stored for this tag, as NumPy says it.
VIEWS = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: a.swapaxes(0, 1)[:, ::-1],
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: a.swapaxes(0, 1)[::-1],
}


@dataclass(frozen=True, eq=False)
class Specimen:
    """One payload by one door; ``meaning`` decides which others it equals."""

    name: str
    modality: str
    source: Any
    meaning: tuple
    options: dict[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    uuid: str | None = None


def image(name: str, source: Any, kind: str, values: np.ndarray, **options: Any) -> Specimen:
    meaning = ("image", kind, values.shape, np.ascontiguousarray(values).tobytes())
    return Specimen(name, "image", source, meaning, options)


def encoded(picture: Image.Image, form: str, **how: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **how)
    return buffer.getvalue()


def exif(tag: int) -> Image.Exif:
    data = Image.Exif()
    data[ORIENTATION] = tag
    return data


def stored_for(tag: int, seen: np.ndarray) -> np.ndarray:
    """The array that, seen by way of the tag, is ``seen``."""
    inverse = {6: 8, 8: 6}.get(tag, tag)
    return np.ascontiguousarray(VIEWS[inverse](seen))


def colors() -> dict[str, np.ndarray]:
    """Small pictures that are near misses of each other."""
    base = RNG.integers(0, 128, (6, 9, 3), dtype=np.uint8)
    last = base.copy()
    last[-1, -1, -1] ^= 1
    return {
        "base": base,
        "last value": last,
        "reshaped": base.reshape(9, 6, 3),
        "mirrored": base[:, ::-1].copy(),
        "bgr": base[..., ::-1].copy(),
        "square": base.reshape(-1, 3)[:49].reshape(7, 7, 3),
    }


def color_doors(name: str, array: np.ndarray, folder: Path) -> Iterator[Specimen]:
    picture = Image.fromarray(array)
    png = encoded(picture, "PNG")
    path = folder / f"{name}.png"
    path.write_bytes(png)
    tensor = torch.from_numpy(array)
    planar = np.ascontiguousarray(array.transpose(2, 0, 1))
    opaque = np.dstack([array, np.full(array.shape[:2], 255, np.uint8)])
    other = Image.new("RGB", picture.size, (1, 2, 3))
    doors: dict[str, Any] = {
        "PIL": picture,
        "PIL RGBA": Image.fromarray(opaque),
        "PIL RGBX": picture.convert("RGBX"),
        "PIL with odd padding": Image.frombytes(
            "RGB", picture.size, np.dstack([array, array[..., :1]]).tobytes(), "raw", "RGBX"
        ),
        "PNG": png,
        "PNG uncompressed": encoded(picture, "PNG", compress_level=0),
        "BMP": encoded(picture, "BMP"),
        "TIFF": encoded(picture, "TIFF"),
        "TIFF LZW": encoded(picture, "TIFF", compression="tiff_lzw"),
        "PPM": encoded(picture, "PPM"),
        "WEBP lossless": encoded(picture, "WEBP", lossless=True),
        "pages": encoded(picture, "TIFF", save_all=True, append_images=[other]),
        "data URI": f"data:image/png;base64,{base64.b64encode(png).decode()}",
        "data URI of another type": f"DATA:text/plain;BASE64,{base64.b64encode(png).decode()}",
        "path": str(path),
        "path object": path,
        "file URI": path.as_uri(),
        "memoryview": memoryview(png),
        "array": array,
        "Fortran array": np.asfortranarray(array),
        "strided array": np.repeat(array, 2, axis=1)[:, ::2],
        "int64 array": array.astype(np.int64),
        "big-endian array": array.astype(">i4"),
        "tensor": tensor,
        "int32 tensor": tensor.int(),
        "float planes": planar / 255,
        "float32 tensor": torch.from_numpy((planar / 255).astype(np.float32)),
    }
    if name != "square":
        # Where both axes could be channels the type decides, and these would be read otherwise.
        doors["planes"] = planar
    for door, source in doors.items():
        yield image(f"{name} {door}", source, "8 bit", array)
    for tag in VIEWS:
        stored = Image.fromarray(stored_for(tag, array))
        tagged = encoded(stored, "PNG", exif=exif(tag))
        yield image(f"{name} tag {tag}", tagged, "8 bit", array)
    pages = doors["pages"]
    yield image(f"{name} page 0", pages, "8 bit", array, frame=0)
    yield image(f"{name} page 1", pages, "8 bit", np.asarray(other), frame=1)


def grays(folder: Path) -> Iterator[Specimen]:
    gray = RNG.integers(0, 128, (5, 8), dtype=np.uint8)
    seen = np.repeat(gray[..., None], 3, axis=2)
    palette = Image.frombytes("P", (8, 5), gray.tobytes())
    palette.putpalette([value for value in range(256) for _ in range(3)])
    inverted = palette.copy()
    inverted.putpalette([255 - value for value in range(256) for _ in range(3)])
    for name, source in {
        "L": Image.fromarray(gray),
        "LA": Image.fromarray(gray).convert("LA"),
        "P": palette,
        "P PNG": encoded(palette, "PNG"),
        "P GIF": encoded(palette, "GIF"),
        "array": gray,
        "array of one channel": gray[..., None],
        "RGB": Image.fromarray(seen),
        "tensor": torch.from_numpy(gray).long(),
    }.items():
        yield image(f"gray {name}", source, "8 bit", seen)
    for name, source in {"P": inverted, "PNG": encoded(inverted, "PNG")}.items():
        yield image(f"other palette {name}", source, "8 bit", 255 - seen)
    bits = RNG.integers(0, 2, (4, 8)).astype(bool)
    seen = np.repeat(bits[..., None], 3, axis=2).astype(np.uint8) * 255
    for name, source in {
        "1": Image.fromarray(bits),
        "bool": bits,
        "bool tensor": torch.from_numpy(bits),
        "L": Image.fromarray(seen[..., 0]),
        "PNG": encoded(Image.fromarray(bits), "PNG"),
    }.items():
        yield image(f"bits {name}", source, "8 bit", seen)


def clear() -> Iterator[Specimen]:
    """Pixels that are seen wholly or not at all, on backgrounds."""
    rgb = RNG.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    shown = RNG.integers(0, 2, (4, 5)).astype(bool)
    hidden_otherwise = np.where(shown[..., None], rgb, rgb ^ 255)
    for background in ((255, 255, 255), (0, 0, 0), (9, 9, 9), (9, 9, 8)):
        seen = np.where(shown[..., None], rgb, np.array(background, np.uint8))
        for name, colors_below in {"one": rgb, "other": hidden_otherwise}.items():
            rgba = np.dstack([colors_below, shown.astype(np.uint8) * 255])
            picture = Image.fromarray(rgba)
            for door, source in {"PIL": picture, "PNG": encoded(picture, "PNG")}.items():
                label = f"clear {name} {door} on {background}"
                options = {"rgba_background_color": list(background)}
                yield image(label, source, "8 bit", seen, **options)
                if background == (255, 255, 255):
                    yield image(f"{label} by default", source, "8 bit", seen)
        yield image(f"flat on {background}", Image.fromarray(seen), "8 bit", seen)
        yield image(
            f"opaque, background {background}",
            Image.fromarray(rgb),
            "8 bit",
            rgb,
            rgba_background_color=list(background),
        )


def deep() -> Iterator[Specimen]:
    """Values that eight bits do not hold."""
    values = RNG.integers(256, 65536, (4, 7)).astype(np.uint16)
    clipped_alike = np.clip(values, 300, 60000)
    for name, array in {"one": values, "other": clipped_alike, "turned": values.T.copy()}.items():
        size = (array.shape[1], array.shape[0])
        little = Image.frombytes("I;16", size, array.astype("<u2").tobytes())
        for door, source in {
            "I;16": little,
            "I;16B": Image.frombytes("I;16B", size, array.astype(">u2").tobytes()),
            "I": Image.frombytes("I", size, array.astype("<i4").tobytes()),
            "PNG": encoded(little, "PNG"),
            "TIFF": encoded(little, "TIFF"),
            "array": array,
            "big-endian array": array.astype(">u2"),
            "strided": np.repeat(array, 3, axis=0)[::3],
            "tensor": torch.from_numpy(array),
        }.items():
            yield image(f"deep {name} {door}", source, "16 bit", array)
        signed = array.astype(np.int32) - 40_000
        for door in ("PIL", "TIFF"):
            picture = Image.frombytes("I", size, signed.astype("<i4").tobytes())
            source = picture if door == "PIL" else encoded(picture, door)
            yield image(f"signed {name} {door}", source, "I", signed)
        floats = (array / 1000).astype(np.float32)
        for door in ("PIL", "TIFF"):
            picture = Image.fromarray(floats)
            source = picture if door == "PIL" else encoded(picture, door)
            yield image(f"float {name} {door}", source, "F", floats)
    inks = RNG.integers(0, 256, (4, 6, 4), dtype=np.uint8)
    for name, array in {"one": inks, "other": inks[..., ::-1].copy()}.items():
        picture = Image.frombytes("CMYK", (6, 4), array.tobytes())
        for door, source in {"PIL": picture, "TIFF": encoded(picture, "TIFF")}.items():
            yield image(f"inks {name} {door}", source, "CMYK", array)


def wav(samples: np.ndarray, rate: int, subtype: str, form: str = "WAV") -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=form, subtype=subtype)
    return buffer.getvalue()


def sounds(folder: Path) -> Iterator[Specimen]:
    mono = RNG.integers(-(2**15), 2**15, 400).astype(np.int16)
    last = mono.copy()
    last[-1] ^= 1
    stereo = RNG.integers(-(2**15), 2**15, (200, 2)).astype(np.int16)
    clips = {
        "mono": (mono, 16_000),
        "mono at 8 kHz": (mono, 8_000),
        "last sample": (last, 16_000),
        "shorter": (mono[:-1], 16_000),
        "stereo": (stereo, 16_000),
        "stereo swapped": (stereo[:, ::-1].copy(), 16_000),
        "stereo as mono": (stereo.reshape(-1), 16_000),
        "three channels": (RNG.integers(-9, 9, (100, 3)).astype(np.int16), 16_000),
    }
    for name, (samples, rate) in clips.items():
        floats = (samples / 2.0**15).astype(np.float32)
        meaning = ("audio", rate, floats.shape, floats.tobytes())
        pcm = wav(samples, rate, "PCM_16")
        path = folder / f"{name}.wav"
        path.write_bytes(pcm)
        doors: dict[str, Any] = {
            "WAV": pcm,
            "WAV 24": wav(floats, rate, "PCM_24"),
            "WAV 32": wav(floats, rate, "PCM_32"),
            "WAV float": wav(floats, rate, "FLOAT"),
            "WAV double": wav(floats, rate, "DOUBLE"),
            "WAVEX": wav(samples, rate, "PCM_16", "WAVEX"),
            "RF64": wav(samples, rate, "PCM_16", "RF64"),
            "FLAC": wav(samples, rate, "PCM_16", "FLAC"),
            "AIFF": wav(samples, rate, "PCM_16", "AIFF"),
            "data URI": f"data:audio/wav;base64,{base64.b64encode(pcm).decode()}",
            "path": str(path),
            "AudioData": AudioData(floats, rate),
            "int16": (samples, rate),
            "int32": (samples.astype(np.int32) << 16, rate),
            "float32": (floats, rate),
            "float64": (floats.astype(np.float64), rate),
            "Fortran": (np.asfortranarray(floats), rate),
            "strided": (np.repeat(floats, 2, axis=0)[::2], rate),
            "tensor": (torch.from_numpy(floats), float(rate)),
        }
        if samples.ndim == 2:
            doors["channels first"] = (floats.T, rate)
        for door, source in doors.items():
            yield Specimen(f"{name} {door}", "audio", source, meaning)
    coarse = RNG.integers(0, 256, 300).astype(np.uint8)
    floats = ((coarse.astype(np.float64) - 128) / 128).astype(np.float32)
    meaning = ("audio", 8_000, floats.shape, floats.tobytes())
    for door, source in {
        "array": (coarse, 8_000),
        "WAV 8": wav(floats, 8_000, "PCM_U8"),
        "floats": (floats, 8_000),
    }.items():
        yield Specimen(f"coarse {door}", "audio", source, meaning)


def videos() -> Iterator[Specimen]:
    frames = RNG.integers(0, 256, (3, 4, 5, 3), dtype=np.uint8)
    sound = AudioData(np.linspace(-1, 1, 50, dtype=np.float32), 8_000)
    base = {
        "frames": frames,
        "frame_indices": (0, 4, 8),
        "timestamps": (0.0, 0.5, 1.0),
        "fps": 8.0,
        "duration": 1.5,
        "total_num_frames": 12,
        "audio": None,
    }
    changes: dict[str, dict[str, Any]] = {
        "base": {},
        "Fortran": {"frames": np.asfortranarray(frames)},
        "strided": {"frames": np.repeat(frames, 2, axis=2)[:, :, ::2]},
        "order": {"frames": frames[::-1].copy()},
        "size": {"frames": frames.reshape(3, 5, 4, 3)},
        "indices": {"frame_indices": (0, 4, 9)},
        "times": {"timestamps": (0.0, 0.5, 1.1)},
        "fps": {"fps": 9.0},
        "duration": {"duration": 1.6},
        "total": {"total_num_frames": 13},
        "sound": {"audio": sound},
        "the same sound": {"audio": AudioData(sound.samples.copy(), 8_000)},
        "sound at another rate": {"audio": AudioData(sound.samples, 16_000)},
    }
    for name, change in changes.items():
        clip = VideoClip(**{**base, **change})
        heard = clip.audio and (clip.audio.sample_rate, clip.audio.samples.tobytes())
        facts = (clip.frame_indices, clip.timestamps, clip.fps, clip.duration)
        meaning = ("video", clip.frames.shape, np.ascontiguousarray(clip.frames).tobytes())
        yield Specimen(
            f"video {name}", "video", clip, (*meaning, *facts, clip.total_num_frames, heard)
        )


def rows() -> Iterator[Specimen]:
    values = torch.from_numpy(RNG.integers(-8, 8, (6, 8)).astype(np.float32))
    forms = {
        "float32": values,
        "array": values.numpy(),
        "columns first": values.T.contiguous().T,
        "strided": values.repeat_interleave(2, dim=1)[:, ::2],
        "float16": values.half(),
        "bfloat16": values.bfloat16(),
        "bfloat16 strided": values.bfloat16().T.contiguous().T,
        "float64": values.double(),
        "reshaped": values.reshape(8, 6),
        "first rows": values[:3],
        "negated": -values,
    }
    for modality in ("image", "audio"):
        for name, tensor in forms.items():
            dense = torch.as_tensor(tensor).contiguous()
            bits = dense.view(torch.uint8).numpy().tobytes()
            meaning = ("rows", modality, str(dense.dtype), tuple(dense.shape), bits)
            yield Specimen(f"{modality} rows {name}", modality, EmbeddingData(tensor), meaning)


def contexts(folder: Path) -> Iterator[Specimen]:
    """One picture under options and callers' ids."""
    array = colors()["base"]
    png = encoded(Image.fromarray(array), "PNG")
    cases: list[tuple[str, dict[str, Any], str | None]] = [
        ("plain", {"crops": 4, "processor": "p"}, None),
        ("other order", {"processor": "p", "crops": 4}, None),
        ("NumPy number", {"crops": np.int64(4), "processor": "p"}, None),
        ("other value", {"crops": 5, "processor": "p"}, None),
        ("other type", {"crops": 4.0, "processor": "p"}, None),
        ("as text", {"crops": "4", "processor": "p"}, None),
        ("other processor", {"crops": 4, "processor": "q"}, None),
        ("more", {"crops": 4, "processor": "p", "beside": "audio"}, None),
        ("id", {"crops": 4, "processor": "p"}, "a"),
        ("other id", {"crops": 4, "processor": "p"}, "b"),
        ("empty id", {"crops": 4, "processor": "p"}, ""),
    ]
    for name, context, uuid in cases:
        said = sorted(
            (k, type(v).__name__ if k != "crops" else _kind(v), str(v)) for k, v in context.items()
        )
        for door, source in {"array": array, "PNG": png}.items():
            meaning = ("image in context", array.tobytes(), tuple(said), uuid)
            yield Specimen(f"{name} {door}", "image", source, meaning, {}, context, uuid)


def _kind(value: Any) -> str:
    return "int" if isinstance(value, (int, np.integer)) else type(value).__name__


def specimens(folder: Path) -> list[Specimen]:
    found = [one for name, array in colors().items() for one in color_doors(name, array, folder)]
    for group in (grays(folder), clear(), deep(), sounds(folder), videos(), rows()):
        found += group
    return [*found, *contexts(folder)]


@pytest.mark.parametrize("algorithm", ["blake3", "xxh3_128"])
def test_two_payloads_are_one_item_exactly_when_they_mean_the_same(algorithm, tmp_path) -> None:
    hasher, memo = MediaHasher(algorithm), MediaMemo()
    loader = MediaLoader(MediaAccess(trusted=True), hasher, memo=memo)
    found: list[tuple[Specimen, bytes]] = []
    for specimen in specimens(tmp_path):
        # Twice: what the memo says of a repeat must be what decoding said.
        first, again = (
            loader.load(specimen.modality, specimen.source, options=specimen.options)
            for _ in range(2)
        )
        assert first.payload_digest == again.payload_digest, specimen.name
        identity = hasher.identity(
            specimen.modality, first.payload_digest, specimen.context, specimen.uuid
        )
        assert identity is not None
        found.append((specimen, identity))
    assert memo.stats.hits > 100
    equal = different = 0
    wrong = []
    for (one, left), (other, right) in itertools.combinations(found, 2):
        same = one.meaning == other.meaning
        equal, different = equal + same, different + (not same)
        if (left == right) != same:
            wrong.append(f"{one.name} / {other.name}: {'must' if same else 'must not'} be equal")
    assert not wrong, f"{len(wrong)} wrong: " + "; ".join(wrong[:10])
    assert equal >= 2_000, equal
    assert different >= 2_000, different
