// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0
// Pictures: bars, the plot of rates, the map of the pool. Colours are the style sheet's.

const SVG = "http://www.w3.org/2000/svg";
// A pool is drawn in at most this many CSS pixels, as long as each block still has a pixel.
const MAP_HEIGHT = 260;
const LARGEST_CELL = 14;

function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// What of a prompt was cached, what was computed, and a mark between.
export function bar(label, cached, whole) {
  const made = shape("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": label });
  const stop = whole > 0 ? 100 * cached / whole : 0;
  made.append(
    shape("rect", { class: "computed", width: 100, height: 10 }),
    shape("rect", { class: "cached", width: stop, height: 10 }),
  );
  // A line keeps its width however wide the bar is.
  if (cached < whole) made.append(shape("line", { class: "stop", x1: stop, x2: stop, y1: 0, y2: 10 }));
  return made;
}

// Rates over time: lines is { kind: [[seconds ago, rate], ...] }, oldest first.
export function plot(label, lines, seconds, width) {
  const height = 200, left = 44, right = 8, top = 8, bottom = 24;
  const x = (ago) => left + (width - left - right) * (1 - ago / seconds);
  const y = (rate) => top + (height - top - bottom) * (1 - rate);
  const made = shape("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const rate of [0, .25, .5, .75, 1]) {
    made.append(shape("line", { class: "grid", x1: left, x2: width - right, y1: y(rate), y2: y(rate) }));
    if (2 * rate % 1 === 0) made.append(shape("text", { x: left - 8, y: y(rate) + 4, "text-anchor": "end" }, `${100 * rate} %`));
  }
  const minutes = seconds / 60;
  for (const ago of [minutes, minutes / 2, 0]) {
    const place = ago === 0 ? "end" : ago === minutes ? "start" : "middle";
    made.append(shape("text", { x: x(60 * ago), y: height - 4, "text-anchor": place }, ago === 0 ? "now" : `${ago} min ago`));
  }
  for (const [kind, points] of Object.entries(lines)) {
    if (!points.length) continue;
    const path = points.map(([ago, rate], index) => `${index ? "L" : "M"}${x(ago).toFixed(1)},${y(rate).toFixed(1)}`).join("");
    made.append(shape("path", { class: kind, d: path }));
    const [ago, rate] = points.at(-1);
    made.append(shape("circle", { class: kind, cx: x(ago), cy: y(rate), r: 3.5 }));
  }
  return made;
}

// "3h1p60f" as one letter code a block.
export function blocksOf(map) {
  const runs = [...map.matchAll(/(\d+)([a-z])/g)].map(([, count, letter]) => [Number(count), letter.charCodeAt(0)]);
  const letters = new Uint8Array(runs.reduce((sum, [count]) => sum + count, 0));
  let at = 0;
  for (const [count, letter] of runs) letters.fill(letter, at, at += count);
  return letters;
}

function pixel(style, name) {
  const value = parseInt(style.getPropertyValue(name).trim().slice(1), 16);
  // Bytes lie in the order red, green, blue, opacity, and every machine that runs a browser is little-endian.
  return (0xff000000 | (value & 0xff) << 16 | value & 0xff00 | value >> 16) >>> 0;
}

// One cell a block, in reading order. colors is { letter: name of a colour }.
export function drawMap(canvas, letters, colors) {
  const scale = window.devicePixelRatio || 1;
  const width = Math.max(Math.floor(canvas.clientWidth * scale), 1), most = Math.floor(MAP_HEIGHT * scale);
  let cell = Math.max(Math.floor(LARGEST_CELL * scale), 1);
  while (cell > 1 && Math.ceil(letters.length / Math.max(Math.floor(width / cell), 1)) * cell > most) cell--;
  const columns = Math.max(Math.floor(width / cell), 1), rows = Math.max(Math.ceil(letters.length / columns), 1);
  const side = cell < 4 ? cell : cell - Math.max(1, Math.round(cell / 7));
  canvas.width = width;
  canvas.height = rows * cell;
  canvas.style.height = `${rows * cell / scale}px`;
  const style = getComputedStyle(canvas);
  const table = new Uint32Array(256);
  for (const [letter, name] of Object.entries(colors)) table[letter.charCodeAt(0)] = pixel(style, name);
  const image = new ImageData(width, rows * cell);
  const pixels = new Uint32Array(image.data.buffer);
  for (let block = 0; block < letters.length; block++) {
    const color = table[letters[block]];
    let begin = Math.floor(block / columns) * cell * width + block % columns * cell;
    for (let line = 0; line < side; line++, begin += width) pixels.fill(color, begin, begin + side);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}
