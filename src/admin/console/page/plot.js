// Lines, drawn as SVG: plots of the last hour, sparklines, and strips of a source's age.

import { h, hour, setText, svg } from "./dom.js";

/** The room around the lines, in the height of the letters. */
const LEFT = 4.6;
const RIGHT = 0.6;
const TOP = 0.8;
const BOTTOM = 1.8;

/** A round number at or above the largest value. */
function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}

/** The path of a series; it breaks where nothing is known. */
function path(values, x, y) {
  let text = "";
  let isDrawn = false;
  values.forEach((value, at) => {
    if (value === null || value === undefined) {
      isDrawn = false;
      return;
    }
    const place = `${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    // A point on its own is a dot.
    text += isDrawn ? `L${place}` : `M${place}h0.1`;
    isDrawn = true;
  });
  return text;
}

/**
 * A plot with a title, its series and a line that says what is under the pointer. `draw` takes the times in
 * milliseconds and the values of each series.
 */
export function plot(title, series, write) {
  const legend = series.map(({ name, tone }) => {
    const value = h("b", {}, "–");
    return { value, item: h("span", { class: `key ${tone}` }, name, " ", value) };
  });
  const when = h("span", { class: "soft" }, "now");
  const drawing = svg("svg", { class: "plot", role: "img", tabindex: "0" });
  const figure = h("figure", {}, h("figcaption", {}, h("h2", {}, title), ...legend.map(({ item }) => item), when), drawing);
  let held = { times: [], columns: [] };
  let chosen = null;
  /** Where the lines may be, in pixels, so that letters are as large as everywhere else. */
  let room = { left: 0, right: 1, top: 0, bottom: 1, letter: 12 };
  const x = (at) => room.left + (at * (room.right - room.left)) / Math.max(held.times.length - 1, 1);
  const cursor = svg("line", { class: "cursor" });

  function measure() {
    const { width, height } = drawing.getBoundingClientRect();
    const letter = parseFloat(getComputedStyle(drawing).fontSize);
    room = { left: LEFT * letter, right: width - RIGHT * letter, top: TOP * letter, bottom: height - BOTTOM * letter, letter };
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
  }

  function tell() {
    const at = chosen ?? held.times.length - 1;
    series.forEach((_, number) => {
      const value = held.columns[number]?.[at];
      setText(legend[number].value, value === null || value === undefined ? "–" : write(value));
    });
    setText(when, chosen === null ? "now" : hour(held.times[at]));
    cursor.setAttribute("visibility", chosen === null ? "hidden" : "visible");
    cursor.setAttribute("x1", x(at));
    cursor.setAttribute("x2", x(at));
    cursor.setAttribute("y1", room.top);
    cursor.setAttribute("y2", room.bottom);
  }

  function choose(at) {
    chosen = at === null || held.times.length === 0 ? null : Math.min(Math.max(at, 0), held.times.length - 1);
    tell();
  }

  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const along = (event.clientX - box.left - room.left) / (room.right - room.left);
    choose(Math.round(along * (held.times.length - 1)));
  });
  drawing.addEventListener("pointerleave", () => choose(null));
  drawing.addEventListener("blur", () => choose(null));
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    choose((chosen ?? held.times.length - 1) + step);
  });

  function draw(times, columns) {
    held = { times, columns };
    if (!drawing.isConnected) return;
    measure();
    const top = ceiling(Math.max(0, ...columns.flat().filter((value) => value !== null && value !== undefined)));
    const y = (value) => room.bottom - (value / top) * (room.bottom - room.top);
    const lines = [0, top / 2, top].flatMap((value) => [
      svg("line", { class: "grid", x1: room.left, x2: room.right, y1: y(value), y2: y(value) }),
      svg("text", { x: room.left - room.letter / 2, y: y(value) + room.letter / 3, "text-anchor": "end" }, value === 0 ? "0" : write(value)),
    ]);
    const parts = room.right - room.left > 28 * room.letter ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1];
    const labels = times.length < 2 ? [] : parts.map((part) => {
      const at = Math.round(part * (times.length - 1));
      const anchor = { 0: "start", 1: "end" }[part] ?? "middle";
      return svg("text", { x: x(at), y: room.bottom + 1.4 * room.letter, "text-anchor": anchor }, hour(times[at]));
    });
    const drawn = columns.map((values, number) => svg("path", { class: `line ${series[number].tone}`, d: path(values, x, y) }));
    drawing.replaceChildren(...lines, ...labels, ...drawn, cursor);
    if (chosen !== null && chosen >= times.length) chosen = null;
    tell();
    const last = series.map(({ name }, number) => `${name} ${legend[number].value.textContent}`).join(", ");
    drawing.setAttribute("aria-label", `${title}, the last hour. Now: ${last}`);
  }

  new ResizeObserver(() => draw(held.times, held.columns)).observe(drawing);
  return { figure, draw };
}

/** A small line without axes; its own least and most are its edges. */
export function sparkline(points, label) {
  const known = points.filter((point) => point !== null);
  const drawing = svg("svg", { viewBox: "0 0 120 24", class: "spark", role: "img", "aria-label": label, preserveAspectRatio: "none" });
  if (known.length < 2) return drawing;
  const [least, most] = [Math.min(...known), Math.max(...known)];
  // A move of less than a per cent does not fill the height.
  const span = Math.max(most - least, 100);
  const middle = (least + most) / 2;
  const y = (value) => 12 - ((value - middle) / span) * 20;
  const x = (at) => (at * 118) / (points.length - 1) + 1;
  const tone = known.at(-1) > known[0] ? "up" : known.at(-1) < known[0] ? "down" : "";
  drawing.append(svg("path", { class: `line ${tone}`, d: path(points, x, y) }));
  return drawing;
}

/** A source's age over time, as runs of the same colour. */
export function strip(ages, staleAfter, samplesMax, label) {
  const drawing = svg("svg", { viewBox: `0 0 ${samplesMax} 10`, class: "strip", role: "img", "aria-label": label, preserveAspectRatio: "none" });
  const tone = (age) => (age > staleAfter ? "bad" : age > staleAfter / 2 ? "warn" : "good");
  const begin = samplesMax - ages.length;
  let from = 0;
  for (let at = 1; at <= ages.length; at += 1) {
    if (at < ages.length && tone(ages[at]) === tone(ages[from])) continue;
    drawing.append(svg("rect", { class: tone(ages[from]), x: begin + from, y: 0, width: at - from, height: 10 }));
    from = at;
  }
  return drawing;
}
