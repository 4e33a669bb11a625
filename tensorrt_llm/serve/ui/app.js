// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0
// Asks the server every two seconds and writes what it says. Text goes in as text, never as HTML.

import { bar, blocksOf, drawMap, plot } from "./drawing.js";

const PERIOD_MS = 2000;
const STARTING = 503; // the engine is in its first steps, which is no failure
const SPANS_S = [120, 300, 600], PLOTTED_S = SPANS_S.at(-1), WINDOW_S = 30;
const KINDS = ["text", "image", "audio", "video"];
const STATES = [
  ["h", "held", "Held, findable"], ["p", "private", "Held, private"], ["c", "cached", "Cached"], ["f", "free", "Free"],
];
const MAP_COLORS = Object.fromEntries(STATES.map(([letter, name]) => [letter, `--${name}`]));

const byId = (id) => document.getElementById(id);
const count = (value) => Math.round(value).toLocaleString("en");
const percent = (part, whole) => (whole > 0 ? `${(100 * part / whole).toFixed(1)} %` : "–");
const sum = (counts) => Object.values(counts).reduce((a, b) => a + b, 0);
const milliseconds = (value) => (value === null ? "–" : `${count(value)} ms`);

function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit++; }
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

function age(seconds) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  return `${Math.floor(seconds)} s`;
}

function element(name, content = [], className) {
  const made = document.createElement(name);
  made.append(...[content].flat());
  if (className) made.className = className;
  return made;
}

const swatch = (name) => element("span", [], `swatch ${name}`);
const words = (text) => element("td", text, "words");

function row(first, ...cells) {
  const head = element("th", first);
  head.scope = "row";
  return element("tr", [head, ...cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : element("td", cell)))]);
}

// ---- hit rate over time ----

// What was asked and cached, as time goes: { at, asked, cached }, the oldest first.
let samples = [];
let before = null;

function remember(told) {
  const now = Date.now() / 1000, { asked, cached } = told.tokens;
  if (before === null || sum(asked) < sum(before.asked)) {
    // What the page has not seen itself is in the latest requests.
    samples = told.requests.map((one) => ({ at: one.at, asked: one.prompt_tokens, cached: one.cached_tokens })).reverse();
  } else {
    const since = (counts, last) => Object.fromEntries(Object.entries(counts).map(([kind, value]) => [kind, value - (last[kind] || 0)]));
    const sample = { at: now, asked: since(asked, before.asked), cached: since(cached, before.cached) };
    if (sum(sample.asked) > 0) samples.push(sample);
  }
  before = { asked, cached };
  samples = samples.filter((one) => one.at > now - PLOTTED_S - WINDOW_S);
}

// At each sample the rate of the half minute before it, so that one request makes no spike.
function lines() {
  const now = Date.now() / 1000, found = {};
  samples.forEach((sample, last) => {
    for (const kind of Object.keys(sample.asked)) {
      if (!sample.asked[kind] || sample.at < now - PLOTTED_S) continue;
      let asked = 0, cached = 0;
      for (let index = last; index >= 0 && samples[index].at > sample.at - WINDOW_S; index--) {
        asked += samples[index].asked[kind] || 0;
        cached += samples[index].cached[kind] || 0;
      }
      (found[kind] ||= []).push([Math.max(now - sample.at, 0), cached / asked]);
    }
  });
  return found;
}

function showRates(tokens) {
  const kinds = Object.keys(tokens.asked).sort((a, b) => KINDS.indexOf(a) - KINDS.indexOf(b));
  byId("rates").replaceChildren(...kinds.map((kind) => {
    const asked = tokens.asked[kind], cached = tokens.cached[kind] || 0;
    return row([swatch(kind), kind], count(asked), count(cached), percent(cached, asked));
  }));
  showPlot();
}

function showPlot() {
  const drawn = lines();
  const last = Object.entries(drawn).map(([kind, points]) => `${kind} ${percent(points.at(-1)[1], 1)}`);
  const oldest = Math.max(...Object.values(drawn).map((points) => points[0][0]), 0);
  const seconds = SPANS_S.find((span) => span >= oldest) ?? PLOTTED_S;
  const label = `Hit rate of the last ${seconds / 60} minutes by kind. ${last.length ? `Latest: ${last.join(", ")}.` : "No requests yet."}`;
  byId("chart").replaceChildren(plot(label, drawn, seconds, Math.max(byId("chart").clientWidth, 240)));
}

// ---- pool ----

let pool = { device: new Uint8Array(), host: new Uint8Array() };

function tally(letters) {
  const counts = new Uint32Array(256);
  for (const letter of letters) counts[letter]++;
  return STATES.map(([letter, name, title]) => ({ name, title, blocks: counts[letter.charCodeAt(0)] }));
}

function showMaps() {
  for (const [id, letters] of [["map", pool.device], ["host-map", pool.host]]) {
    if (!letters.length) continue;
    byId(id).setAttribute("aria-label", `${count(letters.length)} blocks: ${tally(letters).map((one) => `${count(one.blocks)} ${one.title.toLowerCase()}`).join("; ")}`);
    drawMap(byId(id), letters, MAP_COLORS);
  }
}

function showPool(map, kv) {
  const all = blocksOf(map);
  pool = { device: all.subarray(0, kv.maxNumBlocks), host: all.subarray(kv.maxNumBlocks) };
  byId("host").hidden = !pool.host.length;
  showMaps();
  const onHost = tally(pool.host);
  byId("states").replaceChildren(
    ...tally(pool.device).map((one) => row([swatch(one.name), one.title], count(one.blocks), percent(one.blocks, pool.device.length))),
    ...(pool.host.length ? [row([swatch("cached"), "Cached on the host"], count(onHost[2].blocks), percent(onHost[2].blocks, pool.host.length))] : []),
  );
  byId("pool-facts").textContent = `${count(kv.tokensPerBlock)} tokens a block. Held: a request uses it; private: nobody else can find it; cached: kept for whoever comes; free: empty.`;
}

// ---- media ----

// Kept from one answer of the server to the next, so that each is fetched once.
const pictures = new Map();

// Where the server has an option that shows them.
function thumbnail(one) {
  if (!one.thumbnail) return [];
  if (!pictures.has(one.thumbnail)) {
    const made = element("img");
    made.alt = `Thumbnail of ${one.modality} #${one.number}`;
    made.src = one.thumbnail;
    pictures.set(one.thumbnail, made);
  }
  return [pictures.get(one.thumbnail)];
}

function showMedia(media, items) {
  const store = media.embeddingStore;
  const facts = [
    ["Kept", `${bytes(store.currentBytes + store.hostBytes)} of ${bytes(store.maxBytes + store.hostMaxBytes)}`],
    ["Items kept", count(store.itemCount + store.hostItemCount)],
    ["Found again", count(store.hits)], ["Not found", count(store.misses)], ["Given up for room", count(store.evictions)],
    ...Object.entries(media.encoderRuns).map(([kind, runs]) => [`Encoder runs, ${kind}`, count(runs)]),
  ];
  byId("media").replaceChildren(...facts.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
  byId("items").replaceChildren(...items.map((one) => row([swatch(one.modality), ...thumbnail(one), `${one.modality} #${one.number}`],
    count(one.hits), count(one.rows), bytes(one.bytes), age(one.ageSeconds), one.pins ? "in use" : one.place)));
  for (const address of pictures.keys()) if (!items.some((one) => one.thumbnail === address)) pictures.delete(address);
  byId("no-items").hidden = items.length > 0;
}

// ---- requests ----

function showRequests(requests) {
  byId("requests").replaceChildren(...requests.map((one) => {
    const asked = sum(one.prompt_tokens), cached = sum(one.cached_tokens);
    const label = `${count(cached)} of ${count(asked)} tokens cached`;
    const made = row(new Date(1000 * one.at).toLocaleTimeString("en-GB"), bar(label, cached, asked), percent(cached, asked), `${count(cached)} / ${count(asked)}`,
      words(`${one.computed_from}, token ${count(cached)}`), milliseconds(one.first_token_ms), milliseconds(one.total_ms), words(one.error || one.outcome));
    if (one.error) made.className = "failed";
    return made;
  }));
  byId("no-requests").hidden = requests.length > 0;
}

function showTiles(told) {
  const { kvCacheStats: kv, multimodalStats: media } = told.engine;
  const asked = sum(told.tokens.asked), cached = sum(told.tokens.cached);
  const tiles = [
    ["Hit rate", percent(cached, asked), `${count(cached)} of ${count(asked)} prompt tokens`],
    ["Blocks held", count(kv.usedNumBlocks), `of ${count(kv.maxNumBlocks)}`],
    ["Blocks findable", count(kv.cachedNumBlocks), `${count(kv.evictedBlocks)} given up for room`],
    ["Encodes saved", count(media.embeddingStore.hits), `${count(sum(media.encoderRuns))} encoder runs`],
  ];
  byId("tiles").replaceChildren(...tiles.map(([name, value, more]) => element("div", [element("dt", name), element("dd", value), element("dd", more)])));
}

// ---- asking ----

function say(state, text) {
  if (byId("state").textContent !== text) byId("state").textContent = text; // said aloud only when it is new
  byId("state").className = state;
}

function show(told) {
  byId("model").textContent = told.model;
  byId("running").textContent = `${count(told.engine.numActiveRequests)} running, ${count(told.engine.numQueuedRequests)} waiting`;
  remember(told);
  showTiles(told);
  showRates(told.tokens);
  const begin = performance.now();
  showPool(told.block_map, told.engine.kvCacheStats);
  performance.measure("map", { start: begin });
  showMedia(told.engine.multimodalStats, told.items);
  showRequests(told.requests);
}

// Shows numbers and tells how long that took, in milliseconds until they are on the screen.
export async function redraw(told) {
  for (const name of ["show", "map"]) performance.clearMeasures(name);
  const begin = performance.now();
  show(told);
  // The second frame begins when the first is on the screen.
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame();
  await frame();
  const { duration } = performance.measure("show", { start: begin });
  return { show: duration, map: performance.getEntriesByName("map")[0].duration, blocks: pool.device.length };
}

let paused = false;

async function refresh() {
  try {
    const response = await fetch("state", { cache: "no-store" });
    const told = await response.json();
    if (response.status === STARTING) {
      say("", "The engine has not answered yet; asking again.");
      return;
    }
    if (!response.ok) throw new Error(told.message);
    await redraw(told);
    say("good", "Live.");
  } catch (error) {
    byId("running").textContent = "";
    say("bad", `The server does not answer: ${error.message}`);
  }
}

async function follow() {
  if (!paused && !document.hidden) await refresh();
  setTimeout(follow, PERIOD_MS);
}

function pause() {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  if (paused) say("", "Paused.");
  else refresh();
}

// ---- explain ----

function explained(told) {
  const cached = told.cached_tokens, whole = told.prompt_tokens;
  const names = {};
  const table = element("table", [element("caption", "What the prompt is made of")]);
  const heads = ["From token", "Part", "Tokens", "Cached"].map((name) => {
    const head = element("th", name, name === "Part" || name === "Cached" ? "words" : "");
    head.scope = "col";
    return head;
  });
  table.append(element("thead", element("tr", heads)), element("tbody", told.segments.map((part) => {
    const known = part.item === undefined ? undefined : ((names[part.kind] ||= []).includes(part.item) || names[part.kind].push(part.item), names[part.kind].indexOf(part.item) + 1);
    const what = known === undefined ? part.text : `${part.kind} ${known}, ${count(part.rows)} rows`;
    return row(count(part.offset), element("td", [swatch(part.kind), what], "words"), count(part.length),
      bar(`${count(part.cached)} of ${count(part.length)} tokens cached`, part.cached, part.length));
  })));
  const scroll = element("div", table, "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "What the prompt is made of");
  const advice = told.advice.length ? [element("ul", told.advice.map((one) => element("li", one)))] : [];
  return [element("p", told.message, "verdict"), ...advice, bar(`${count(cached)} of ${count(whole)} tokens of the prompt cached`, cached, whole), scroll];
}

async function explain(event) {
  event?.preventDefault();
  try {
    const headers = { "Content-Type": "application/json" };
    const response = await fetch("explain", { method: "POST", headers, body: byId("body").value });
    const told = await response.json();
    if (!response.ok) throw new Error(told.message);
    byId("answer").replaceChildren(...explained(told));
  } catch (error) {
    byId("answer").replaceChildren(element("p", error.message, "verdict bad"));
  }
}

byId("pause").addEventListener("click", pause);
byId("explain").addEventListener("submit", explain);
byId("body").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) explain(event);
});
document.addEventListener("visibilitychange", () => document.hidden || paused || refresh());
for (const redraw of [showPlot, showMaps]) {
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}
follow();
