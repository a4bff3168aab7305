// The moment that the board shows: now, or one in kept history.

import { h, moment as written, setText } from "./dom.js";

const SPANS = [[3600, "Last hour"], [86_400, "Last day"], [7 * 86_400, "Last week"], [0, "All history"]];
const DELAY_MS = 200;

/** The controls. `changed` is called with a second of history, or with `null` for now. */
export function makeMoment(changed) {
  let since = null;
  let now = 0;
  let asOf = null;
  let neighbours = { previous: null, next: null };
  let timer;

  const slider = h("input", { type: "range", step: "1", disabled: true, "aria-label": "Moment", oninput: () => choose(Number(slider.value), DELAY_MS) });
  const span = h("select", { disabled: true, "aria-label": "Range of the slider", onchange: () => bound() }, SPANS.map(([value, label]) => h("option", { value }, label)));
  const shown = h("output", { class: "moment-time" }, "now");
  const step = (label, side) => h("button", { type: "button", disabled: true, onclick: () => { if (neighbours[side] !== null) choose(neighbours[side], 0); } }, label);
  const [earlier, later] = [step("Earlier change", "previous"), step("Later change", "next")];
  const back = h("button", { type: "button", class: "primary", disabled: true, onclick: () => choose(null, 0) }, "Now");
  const element = h("div", { class: "moment", role: "group", "aria-label": "History" }, slider, shown, back, earlier, later, span);

  function bound() {
    const from = Math.max(since ?? now, Number(span.value) ? now - Number(span.value) : 0);
    slider.min = String(Math.min(from, asOf ?? from));
    slider.max = String(now);
    slider.value = String(asOf ?? now);
    // The row keeps its place while there is nothing to choose from: nothing below it shifts.
    slider.disabled = span.disabled = since === null || since >= now;
  }

  function tell() {
    const text = asOf === null ? "now" : written(asOf * 1000);
    setText(shown, text);
    slider.setAttribute("aria-valuetext", text);
    back.disabled = asOf === null;
    earlier.disabled = neighbours.previous === null;
    later.disabled = asOf === null || neighbours.next === null;
  }

  function choose(second, delayMs) {
    asOf = second === null || second >= now ? null : second;
    slider.value = String(asOf ?? now);
    neighbours = { previous: null, next: null };
    tell();
    clearTimeout(timer);
    timer = setTimeout(() => changed(asOf), delayMs);
  }

  return {
    element,
    asOf: () => asOf,
    /** What there is: since when, and the publications around the one that is shown. */
    offer(found) {
      since = found.since;
      if (asOf === null) now = found.now;
      neighbours = { previous: found.previous ?? null, next: found.next ?? null };
      bound();
      tell();
    },
    reset() {
      clearTimeout(timer);
      [since, asOf, neighbours] = [null, null, { previous: null, next: null }];
      bound();
      tell();
    },
  };
}
