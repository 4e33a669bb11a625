# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Mutated files through every decoder door.

Whatever comes in, a door gives media or raises a RequestError (400), in bounded time and memory.
Anything else, a crash of the process included, is a fault of ours.

    python tests/fuzz/fuzz_media.py --inputs 100000

The tests run a quick slice of the same. Input number n of a seed is always the same input, so a
failure is repeated with ``--seed S --first N --inputs 1``.
"""

from __future__ import annotations

import argparse
import base64
import faulthandler
import io
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
import soundfile

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[folder]) for folder in (1, 2)]

from PIL import Image
from support.av_media import sound_bytes, video_bytes
from support.media import clip, image_bytes, picture, wav_bytes

from tensorrt_llm.errors import RequestError
from tensorrt_llm.inputs.data_uri import decode_base64, decode_data_uri
from tensorrt_llm.inputs.image_form import model_image
from tensorrt_llm.inputs.media_decode import decode_media, resolve_options
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.multimodal_data import MediaHasher

LIMITS = MediaLimits(
    max_bytes=2**20,
    max_pixels=2**20,
    max_audio_seconds=60,
    max_audio_samples=2**21,
    max_video_seconds=60,
    max_video_frames=16,
    max_video_pixels=2**20,
)
# A door that takes longer than this over one small file hangs.
HANG_SECONDS = 20
# How often each door is tried: as slow as its decoder is, but none seldom.
SHARES = {"image": 55, "audio": 28, "video": 9, "base64": 4, "data": 4}
_EXTREMES = (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\x01")


@dataclass
class Report:
    """What came of a run."""

    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    rss_after_tenth: int = 0
    rss_at_end: int = 0

    @property
    def inputs(self) -> int:
        """How many inputs were tried."""
        return self.taken.total() + self.refused.total() + len(self.faults)


def seeds() -> dict[str, list[bytes]]:
    """Good files of every format, by door."""
    small = picture(1, 40, 30)
    modes = [small.convert(mode) for mode in ("RGB", "RGBA", "L", "LA", "P", "1")]
    deep = Image.fromarray(np.arange(1200, dtype=np.uint16).reshape(30, 40))
    images = [image_bytes(image) for image in (*modes, deep)]
    images += [image_bytes(small, form) for form in ("JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")]
    images += [image_bytes(small, form) for form in ("JPEG2000", "AVIF", "ICO")]
    images += [
        image_bytes(small.convert("CMYK"), "TIFF"),
        image_bytes(small.convert("CMYK"), "JPEG"),
    ]
    sound = clip(1, 0.2)
    wide = clip(1, 0.2, 48_000)
    sounds = [wav_bytes(sound, subtype=kind) for kind in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32")]
    sounds += [wav_bytes(sound, subtype=kind) for kind in ("FLOAT", "ULAW", "ALAW", "IMA_ADPCM")]
    sounds += [_soundfile(sound, form) for form in ("FLAC", "OGG", "MP3", "AIFF", "RF64", "WAVEX")]
    pairs = [("mp4", "aac"), ("ipod", "alac"), ("adts", "aac"), ("webm", "libopus")]
    pairs += [("ogg", "libopus"), ("mp3", "libmp3lame"), ("mov", "pcm_s16le"), ("mpegts", "aac")]
    sounds += [sound_bytes(form, codec, wide) for form, codec in pairs]
    kinds = [("mp4", "libx264"), ("webm", "libvpx-vp9"), ("webm", "libvpx"), ("avi", "mjpeg")]
    kinds += [("matroska", "mpeg4"), ("mpegts", "libx264"), ("mp4", "libx265")]
    videos = [video_bytes(form, codec, frames=4) for form, codec in kinds]
    videos.append(video_bytes(frames=4, sound=wide))
    text = [base64.b64encode(data) for data in (images[0], sounds[1])]
    uris = [b"data:image/png;base64," + text[0], b"data:text/plain;charset=utf-8,a%20b"]
    return {"image": images, "audio": sounds, "video": videos, "base64": text, "data": uris}


def _soundfile(samples: np.ndarray, form: str) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, 16_000, format=form)
    return buffer.getvalue()


def mutate(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """Changes a file in one to four places, mostly near its front, where headers are."""
    buffer = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        if not buffer:
            break
        near = len(buffer) if rng.random() < 0.4 else min(len(buffer), 256)
        place = int(rng.integers(near))
        length = int(rng.integers(1, 32))
        match int(rng.integers(8)):
            case 0:
                buffer[place] ^= 1 << int(rng.integers(8))
            case 1:
                buffer[place] = int(rng.integers(256))
            case 2:
                buffer[place : place + 4] = _EXTREMES[int(rng.integers(len(_EXTREMES)))]
            case 3:
                del buffer[place : place + length]
            case 4:
                buffer[place:place] = buffer[place : place + length]
            case 5:
                buffer[place : place + length] = rng.bytes(length)
            case 6:
                del buffer[int(rng.integers(len(buffer))) :]
            case _:
                start = int(rng.integers(len(other) + 1))
                buffer[place : place + length] = other[start : start + length]
    return bytes(buffer)


def _decoded(modality: str) -> Callable[[bytes], object]:
    hasher, options = MediaHasher(), resolve_options(modality, None, None)

    def door(data: bytes) -> object:
        media = decode_media(modality, data, options, LIMITS)
        digest = hasher.payload_digest(modality, media)
        return model_image(media) if isinstance(media, Image.Image) else digest

    return door


DOORS: dict[str, Callable[[bytes], object]] = {
    **{modality: _decoded(modality) for modality in ("image", "audio", "video")},
    "base64": lambda data: decode_base64(data.decode("latin-1"), max_bytes=2**20),
    "data": lambda data: decode_data_uri(data.decode("latin-1"), max_bytes=2**20),
}


def run(inputs: int, seed: int = 0, first: int = 0, show: bool = False) -> Report:
    """Tries mutated files.

    Args:
        inputs: How many.
        seed: Other seeds give other files.
        first: Number of the first one.
        show: Say how far it is.
    """
    report, corpus = Report(), seeds()
    doors = [door for door, share in SHARES.items() for _ in range(share)]
    process = psutil.Process()
    for number in range(first, first + inputs):
        rng = np.random.default_rng([seed, number])
        door = doors[int(rng.integers(len(doors)))]
        files = corpus[door]
        data = mutate(
            rng, files[int(rng.integers(len(files)))], files[int(rng.integers(len(files)))]
        )
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        start = time.perf_counter()
        try:
            DOORS[door](data)
            report.taken[door] += 1
        except RequestError:
            report.refused[door] += 1
        except Exception as error:
            report.faults.append(f"seed {seed} input {number} ({door}): {error!r:.200}")
        report.slowest_s = max(report.slowest_s, time.perf_counter() - start)
        faulthandler.cancel_dump_traceback_later()
        if number - first == inputs // 10:
            report.rss_after_tenth = process.memory_info().rss
        if show and number % 1000 == 0:
            print(number, process.memory_info().rss >> 20, "MiB", flush=True, file=sys.stderr)
    report.rss_at_end = process.memory_info().rss
    return report


def main() -> int:
    """Runs and prints the report as JSON; 1 if there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    report = run(options.inputs, options.seed, options.first, show=True)
    print(json.dumps({"inputs": report.inputs, **vars(report)}, indent=2))
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
