# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Pictures that the demo model is trained on: coloured shapes, or drawn digits.

What is in a picture lies on a grid of four by four cells of 28 pixels, jittered, one thing to a
cell at most: the encoder makes one row of each cell, and ``Picture.cells`` says what it holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SIDE = 112
GRID = 4
CELL = SIDE // GRID
SHAPES = ("circle", "square", "triangle", "star", "cross")
COLOURS = {
    "red": (215, 35, 35),
    "green": (40, 160, 60),
    "blue": (40, 70, 215),
    "yellow": (245, 220, 40),
    "orange": (245, 135, 25),
    "purple": (140, 45, 175),
}
MOST_SHAPES = 5
MOST_DIGITS = GRID
PLACES = ("on the left", "on the right", "at the top", "at the bottom")
# A label that no loss counts.
IGNORED = -100


@dataclass(frozen=True)
class Thing:
    """A shape of a picture; the first cell is the top left one."""

    shape: str
    colour: str
    row: int
    column: int

    @property
    def name(self) -> str:
        """With its article, as answers say it."""
        return f"{'an' if self.colour == 'orange' else 'a'} {self.colour} {self.shape}"


@dataclass(frozen=True)
class Picture:
    """A picture and what is in it.

    Attributes:
        pixels: uint8 ``[112, 112, 3]``.
        things: The shapes, if it shows shapes.
        digits: The digits from left to right, if it shows digits.
        cells: int64 ``[4, 4, 4]``: number of the shape, the colour, the digit and the place in
            each cell, from 1; 0 for none. Places are those of two shapes in a line; of other
            shapes they are ``IGNORED``.
    """

    pixels: np.ndarray
    things: tuple[Thing, ...]
    digits: tuple[int, ...]
    cells: np.ndarray

    def image(self, rng: np.random.Generator) -> Image.Image:
        """The picture with the noise that training adds too."""
        noise = rng.normal(0.0, rng.uniform(0.0, 8.0), self.pixels.shape)
        return Image.fromarray((self.pixels + noise).clip(0, 255).astype(np.uint8))


def draw_shapes(rng: np.random.Generator, count: int, *, in_a_line: bool = False) -> Picture:
    """Draws shapes in cells of their own; two of them side by side or stacked if asked."""
    if in_a_line:
        line, first, second = int(rng.integers(GRID)), *sorted(rng.permutation(GRID)[:2].tolist())
        places = [(line, first), (line, second)]
        if rng.random() < 0.5:
            places = [(column, row) for row, column in places]
        if rng.random() < 0.5:
            places.reverse()
    else:
        places = [divmod(int(cell), GRID) for cell in rng.permutation(GRID * GRID)[:count]]
    # Two different ones if there are two, so that a word can name either.
    shapes = rng.permutation(SHAPES)[:count] if count == 2 else rng.choice(SHAPES, count)
    colours = list(COLOURS)
    drawn = rng.permutation(colours)[:count] if count == 2 else rng.choice(colours, count)
    things = tuple(
        Thing(str(shape), str(colour), *place)
        for shape, colour, place in zip(shapes, drawn, places, strict=True)
    )
    image = _background(rng)
    draw = ImageDraw.Draw(image)
    cells = np.zeros((4, GRID, GRID), dtype=np.int64)
    for thing in things:
        radius = rng.uniform(8.5, 13.0)
        x, y = (_centre(rng, index) for index in (thing.column, thing.row))
        _draw_shape(draw, thing.shape, x, y, radius, _jittered(rng, COLOURS[thing.colour]))
        cells[0, thing.row, thing.column] = 1 + SHAPES.index(thing.shape)
        cells[1, thing.row, thing.column] = 1 + colours.index(thing.colour)
        cells[3, thing.row, thing.column] = IGNORED
    if in_a_line:
        for place, thing in place_things(things).items():
            cells[3, thing.row, thing.column] = 1 + PLACES.index(place)
    return Picture(np.asarray(image), things, (), cells)


def place_things(things: tuple[Thing, ...]) -> dict[str, Thing]:
    """Two shapes in a line by where they are."""
    first, second = sorted(things, key=lambda thing: (thing.row, thing.column))
    words = PLACES[:2] if first.row == second.row else PLACES[2:]
    return dict(zip(words, (first, second), strict=True))


def draw_digits(rng: np.random.Generator, count: int) -> Picture:
    """Draws digits on a line, from left to right."""
    columns = sorted(rng.permutation(GRID)[:count].tolist())
    row = int(rng.integers(GRID))
    digits = tuple(int(digit) for digit in rng.integers(0, 10, count))
    dark = rng.random() < 0.5
    image = _background(rng, dark)
    draw = ImageDraw.Draw(image)
    ink = tuple(int(v) for v in (rng.integers(200, 256, 3) if dark else rng.integers(0, 70, 3)))
    font = _font(int(rng.integers(22, 33)))
    cells = np.zeros((4, GRID, GRID), dtype=np.int64)
    for digit, column in zip(digits, columns, strict=True):
        place = (_centre(rng, column), _centre(rng, row))
        draw.text(place, str(digit), fill=ink, font=font, anchor="mm")
        cells[2, row, column] = 1 + digit
    return Picture(np.asarray(image), (), digits, cells)


def _background(rng: np.random.Generator, dark: bool | None = None) -> Image.Image:
    dark = rng.random() < 0.4 if dark is None else dark
    grey = int(rng.integers(0, 50)) if dark else int(rng.integers(205, 256))
    return Image.new("RGB", (SIDE, SIDE), _jittered(rng, (grey, grey, grey), 6))


def _jittered(
    rng: np.random.Generator, colour: tuple[int, int, int], most: int = 18
) -> tuple[int, int, int]:
    red, green, blue = np.clip(np.array(colour) + rng.integers(-most, most + 1, 3), 0, 255).tolist()
    return red, green, blue


def _centre(rng: np.random.Generator, index: int) -> float:
    return (index + 0.5) * CELL + rng.uniform(-3.0, 3.0)


@lru_cache(maxsize=32)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _draw_shape(
    draw: ImageDraw.ImageDraw, shape: str, x: float, y: float, r: float, fill: tuple[int, int, int]
) -> None:
    if shape == "circle":
        draw.ellipse((x - r, y - r, x + r, y + r), fill=fill)
    elif shape == "square":
        side = 0.88 * r
        draw.rectangle((x - side, y - side, x + side, y + side), fill=fill)
    elif shape == "triangle":
        draw.polygon([(x, y - r), (x + 0.95 * r, y + 0.75 * r), (x - 0.95 * r, y + 0.75 * r)], fill)
    elif shape == "star":
        points = []
        for i in range(10):
            far = 1.15 * r if i % 2 == 0 else 0.45 * r
            angle = math.pi * (i / 5 - 0.5)
            points.append((x + far * math.cos(angle), y + far * math.sin(angle)))
        draw.polygon(points, fill)
    else:
        arm = 0.34 * r
        draw.rectangle((x - r, y - arm, x + r, y + arm), fill=fill)
        draw.rectangle((x - arm, y - r, x + arm, y + r), fill=fill)
