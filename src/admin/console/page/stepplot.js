// Prices over time as steps: a line for each bookmaker, with the best price and the median drawn over them. A range is chosen by
// dragging or with the keys + and -, a moment by pointing or with the arrow keys.

import { h, moment, setText, svg, time } from "./dom.js";

const LEFT = 4.6;
const RIGHT = 0.8;
const TOP = 0.8;
const BOTTOM = 1.8;
/** Lines that a reader can tell apart by colour; further ones are dashed. */
const TONES = 8;
const DRAG_PX = 6;
const SHORTEST_MS = 10_000;

/** The step in force at a time; `null` before the first. */
function stepAt(steps, at) {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle].at <= at) low = middle + 1;
    else high = middle;
  }
  return low ? steps[low - 1] : null;
}

function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The best price and the median of lines, at every change of any of them. */
export function overlays(lines) {
  const times = [...new Set(lines.flatMap(({ steps }) => steps.map(({ at }) => at)))].sort((one, other) => one - other);
  const [best, middle] = [[], []];
  for (const at of times) {
    const open = lines.map((line) => ({ line, step: stepAt(line.steps, at) })).filter(({ step }) => step && step.value !== null);
    const top = open.reduce((found, one) => (!found || one.step.value > found.step.value ? one : found), null);
    best.push({ at, value: top?.step.value ?? null, text: top ? `${top.step.text} ${top.line.name}` : "\u2013" });
    middle.push({ at, value: open.length ? median(open.map(({ step }) => step.value)) : null });
  }
  return { best, middle };
}

/** The plot. `write` writes a value on the axis and of the median. */
export function stepPlot(write) {
  let lines = [];
  let over = { best: [], middle: [] };
  let whole = [0, 1];
  let range = [0, 1];
  let chosen = null;
  let drag = null;
  let room = { left: 0, right: 1, top: 0, bottom: 1, letter: 12 };
  const hidden = new Set();
  const legend = h("div", { class: "keys-legend", role: "group", "aria-label": "Lines" });
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const drawing = svg("svg", { class: "plot steps", role: "img", tabindex: "0" });
  const all = h("button", { type: "button", disabled: true, onclick: () => zoom(whole) }, "All times");
  const closer = h("button", { type: "button", onclick: () => scale(0.5) }, "Closer");
  const figure = h("figure", {}, h("figcaption", {}, h("h2", {}, "Prices over time"), closer, all), drawing, readout, legend);
  const cursor = svg("line", { class: "cursor", visibility: "hidden" });
  const selection = svg("rect", { class: "selection", visibility: "hidden" });

  const x = (at) => room.left + ((at - range[0]) / (range[1] - range[0])) * (room.right - room.left);
  const timeAt = (pixel) => range[0] + ((pixel - room.left) / (room.right - room.left)) * (range[1] - range[0]);
  const within = (at) => Math.min(Math.max(at, range[0]), range[1]);
  const shown = () => lines.filter(({ key }) => !hidden.has(key));

  function measure() {
    const { width, height } = drawing.getBoundingClientRect();
    const letter = parseFloat(getComputedStyle(drawing).fontSize);
    room = { left: LEFT * letter, right: Math.max(width - RIGHT * letter, LEFT * letter + 1), top: TOP * letter, bottom: height - BOTTOM * letter, letter };
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
  }

  /** A path of steps within the range; it breaks where there is no price. */
  function pathOf(steps, y) {
    let text = "";
    let isDrawn = false;
    steps.forEach(({ at, value }, number) => {
      const end = steps[number + 1]?.at ?? whole[1];
      if (value === null || end < range[0] || at > range[1]) {
        isDrawn = false;
        return;
      }
      const [from, to] = [x(within(at)).toFixed(1), x(within(end)).toFixed(1)];
      text += isDrawn ? `V${y(value).toFixed(1)}H${to}` : `M${from} ${y(value).toFixed(1)}H${to}`;
      isDrawn = true;
    });
    return text;
  }

  /** The least and the most value that is in force within the range. */
  function bounds() {
    const values = shown().flatMap(({ steps }) => steps.filter(({ at, value }, number) =>
      value !== null && at <= range[1] && (steps[number + 1]?.at ?? whole[1]) >= range[0]).map(({ value }) => value));
    if (!values.length) return [0, 1];
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const margin = Math.max((most - least) * 0.08, most * 0.01);
    return [least - margin, most + margin];
  }

  function draw() {
    if (!drawing.isConnected || !lines.length) return;
    measure();
    over = overlays(shown());
    const [least, most] = bounds();
    const y = (value) => room.bottom - ((value - least) / (most - least)) * (room.bottom - room.top);
    const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => least + part * (most - least)).flatMap((value) => [
      svg("line", { class: "grid", x1: room.left, x2: room.right, y1: y(value), y2: y(value) }),
      svg("text", { x: room.left - room.letter / 2, y: y(value) + room.letter / 3, "text-anchor": "end" }, write(value)),
    ]);
    const parts = room.right - room.left > 36 * room.letter ? [0, 0.25, 0.5, 0.75, 1] : [0, 1];
    const labels = parts.map((part) => svg("text", { x: room.left + part * (room.right - room.left), y: room.bottom + 1.4 * room.letter, "text-anchor": { 0: "start", 1: "end" }[part] ?? "middle" },
      range[1] - range[0] < 300_000 ? moment(range[0] + part * (range[1] - range[0])) : time(range[0] + part * (range[1] - range[0]))));
    const drawn = lines.map((line, number) => (hidden.has(line.key) ? null : svg("path", { class: `step ${toneOf(number)}`, d: pathOf(line.steps, y) }))).filter(Boolean);
    const above = shown().length > 1 ? [svg("path", { class: "step middle", d: pathOf(over.middle, y) }), svg("path", { class: "step best", d: pathOf(over.best, y) })] : [];
    drawing.replaceChildren(...marks, ...labels, ...drawn, ...above, selection, cursor);
    all.disabled = range[0] === whole[0] && range[1] === whole[1];
    tell();
    drawing.setAttribute("aria-label", `Prices of ${shown().length} bookmakers from ${moment(range[0])} to ${moment(range[1])}. Arrow keys choose a moment, + and - the range.`);
  }

  const toneOf = (number) => `tone-${number % TONES}${number >= TONES ? " dashed" : ""}`;

  function showLegend() {
    const focused = legend.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const made = lines.map((line, number) => {
      const value = h("b", {}, "\u2013");
      const button = h("button", { type: "button", class: `key-toggle ${toneOf(number)}`, "data-key": line.key, "aria-pressed": String(!hidden.has(line.key)), onclick: () => toggle(line.key) }, line.name, " ", value);
      line.shownValue = value;
      return button;
    });
    const isAny = hidden.size < lines.length;
    const every = h("button", { type: "button", class: "quiet", "data-key": "", onclick: () => { hidden.clear(); if (isAny) lines.forEach(({ key }) => hidden.add(key)); showLegend(); draw(); } }, isAny ? "Hide all" : "Show all");
    legend.replaceChildren(h("span", { class: "key best-key" }, "best"), h("span", { class: "key middle-key" }, "consensus (median)"), ...made, every);
    if (focused !== null) [...legend.querySelectorAll("button")].find((button) => button.dataset.key === focused)?.focus();
  }

  function toggle(key) {
    if (!hidden.delete(key)) hidden.add(key);
    showLegend();
    draw();
  }

  function tell() {
    const at = chosen ?? range[1];
    for (const line of lines) setText(line.shownValue, stepAt(line.steps, at)?.text ?? "\u2013");
    const middle = stepAt(over.middle, at)?.value;
    const overlay = shown().length ? `best ${stepAt(over.best, at)?.text ?? "\u2013"}, consensus ${middle === null || middle === undefined ? "\u2013" : write(middle)}` : "no line is shown";
    setText(readout, `${moment(at)}: ${overlay}`);
    cursor.setAttribute("visibility", chosen === null ? "hidden" : "visible");
    for (const [name, value] of [["x1", x(at)], ["x2", x(at)], ["y1", room.top], ["y2", room.bottom]]) cursor.setAttribute(name, value);
  }

  function choose(at) {
    chosen = at === null ? null : within(at);
    tell();
  }

  /** Shows a part of the whole, of `SHORTEST_MS` or more if the whole is as long. */
  function zoom(wanted) {
    const [from, to] = [Math.max(wanted[0], whole[0]), Math.min(wanted[1], whole[1])];
    const length = Math.min(Math.max(to - from, SHORTEST_MS), whole[1] - whole[0]);
    const start = Math.min(Math.max((from + to - length) / 2, whole[0]), whole[1] - length);
    range = [start, start + length];
    if (chosen !== null) chosen = within(chosen);
    draw();
  }

  /** Half or twice the range, around the chosen moment or its end. */
  function scale(factor) {
    const middle = chosen ?? range[1];
    zoom([middle - (middle - range[0]) * factor, middle + (range[1] - middle) * factor]);
  }

  /** The next change of any line that is shown. */
  function step(direction) {
    const [at, times] = [chosen ?? range[1], over.best.map((one) => one.at)];
    const next = direction > 0 ? times.find((one) => one > at) : times.findLast((one) => one < at);
    choose(next ?? (direction > 0 ? range[1] : range[0]));
  }

  const pixel = (event) => event.clientX - drawing.getBoundingClientRect().left;
  function select(from, to) {
    selection.setAttribute("visibility", "visible");
    for (const [name, value] of [["x", Math.min(from, to)], ["y", room.top], ["width", Math.abs(to - from)], ["height", room.bottom - room.top]]) selection.setAttribute(name, value);
  }
  drawing.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    drag = pixel(event);
    drawing.setPointerCapture(event.pointerId);
  });
  drawing.addEventListener("pointermove", (event) => {
    const at = pixel(event);
    choose(timeAt(at));
    if (drag !== null && Math.abs(at - drag) > DRAG_PX) select(drag, at);
  });
  drawing.addEventListener("pointerup", (event) => {
    const [from, to] = [drag, pixel(event)];
    drag = null;
    selection.setAttribute("visibility", "hidden");
    if (from !== null && Math.abs(to - from) > DRAG_PX) zoom([timeAt(Math.min(from, to)), timeAt(Math.max(from, to))]);
  });
  drawing.addEventListener("pointercancel", () => { drag = null; selection.setAttribute("visibility", "hidden"); });
  drawing.addEventListener("pointerleave", () => { if (drag === null && document.activeElement !== drawing) choose(null); });
  drawing.addEventListener("blur", () => choose(null));
  drawing.addEventListener("keydown", (event) => {
    const act = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => choose(range[0]), End: () => choose(range[1]), "+": () => scale(0.5), "-": () => scale(2), Escape: () => zoom(whole) }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  new ResizeObserver(draw).observe(drawing);

  return {
    figure,
    /** Shows lines from one time to another. A range that was chosen stays. */
    show(next, times) {
      const isWhole = range[0] === whole[0] && range[1] === whole[1];
      lines = next;
      whole = times;
      if (isWhole) range = times;
      showLegend();
      draw();
    },
    reset() {
      [whole, range, chosen] = [[0, 1], [0, 1], null];
      hidden.clear();
    },
  };
}
