// The fair prices of an event, in a tooltip: on hover, on focus, and on a tap. It stays while the pointer is on it; Escape closes it.

import { h, words } from "./dom.js";
import { outcomeName, percent, written } from "./prices.js";

const HIDE_MS = 250;
const SHOW_MS = 120;

/** Whose probabilities they are: `power, consensus of 7 bookmakers`. */
export const origin = (method, from, books, name) =>
  `${method}, ${from === "consensus" ? `consensus of ${books} bookmakers` : name(from)}`;

/** The tooltip of a page. `read` gets the rows of fair prices of an event; `name` writes a bookmaker. */
export function fairTip(read, format, name) {
  const tip = h("div", { id: "fair", class: "tip", role: "tooltip", popover: "manual" });
  let anchor = null;
  let timer;
  let asked = 0;

  const later = (act, milliseconds) => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds);
  };

  function place() {
    if (!anchor?.isConnected) return hide();
    // Its width depends on the room to the right of it.
    tip.style.left = "0px";
    const [box, own] = [anchor.getBoundingClientRect(), tip.getBoundingClientRect()];
    const below = box.bottom + own.height + 8 <= innerHeight;
    tip.style.left = `${Math.max(8, Math.min(box.left, innerWidth - own.width - 8))}px`;
    tip.style.top = `${below ? box.bottom + 4 : Math.max(8, box.top - own.height - 4)}px`;
  }

  function hide() {
    clearTimeout(timer);
    asked += 1;
    anchor?.removeAttribute("aria-describedby");
    anchor = null;
    if (tip.matches(":popover-open")) tip.hidePopover();
  }

  function write(rows) {
    if (!rows.length) return [h("p", {}, "No fair price: fewer than three bookmakers that are not stale price every outcome.")];
    const row = (outcome, description) => h("tr", {},
      h("th", { scope: "row" }, outcomeName({ ...outcome, description }), outcome.point === null ? "" : ` ${outcome.point}`),
      h("td", { class: "number" }, outcome.price === null ? "\u2013" : written(outcome.price, format())),
      h("td", { class: "number" }, percent(outcome.probability)));
    const { method, from, bookmakers, fallback } = rows[0];
    return [
      h("table", {},
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Outcome"), h("th", { scope: "col", class: "number" }, "Fair"), h("th", { scope: "col", class: "number" }, "Probability"))),
        h("tbody", {}, rows.flatMap(({ outcomes, description }) => outcomes.map((outcome) => row(outcome, description))))),
      h("p", { class: "soft" }, origin(method, from, bookmakers.length, name)),
      fallback ? h("p", { class: "soft" }, `${words(fallback.method)} for ${fallback.bookmakers.map(name).join(", ")}`) : null,
    ].filter(Boolean);
  }

  async function fill(id) {
    const turn = (asked += 1);
    const rows = await read(id).catch((error) => error);
    if (turn !== asked) return;
    tip.replaceChildren(...(Array.isArray(rows) ? write(rows) : [h("p", { class: "bad" }, rows.message)]));
    place();
  }

  function show(button) {
    clearTimeout(timer);
    if (anchor === button) return;
    hide();
    anchor = button;
    button.setAttribute("aria-describedby", "fair");
    tip.replaceChildren(h("p", {}, "Computing\u2026"));
    tip.showPopover();
    place();
    fill(button.dataset.id);
  }

  const leave = () => { if (document.activeElement !== anchor) later(hide, HIDE_MS); };
  const key = (event) => { if (event.key === "Escape" && anchor) hide(); };
  const away = (event) => { if (anchor && !anchor.contains(event.target) && !tip.contains(event.target)) hide(); };
  tip.addEventListener("pointerenter", () => clearTimeout(timer));
  tip.addEventListener("pointerleave", leave);
  document.addEventListener("keydown", key);
  document.addEventListener("pointerdown", away);
  addEventListener("scroll", place, true);
  addEventListener("resize", place);

  return {
    element: tip,
    /** Lets a button open the tooltip, and a pointer anywhere on its cell. */
    attach(button, cell) {
      cell.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") later(() => show(button), SHOW_MS); });
      cell.addEventListener("pointerleave", leave);
      button.addEventListener("focus", () => { if (button.matches(":focus-visible")) show(button); });
      button.addEventListener("click", () => show(button));
      button.addEventListener("blur", hide);
    },
    /** The prices are other ones now. */
    refresh() {
      if (anchor?.isConnected) fill(anchor.dataset.id);
      else if (anchor) hide();
    },
    close() {
      hide();
      document.removeEventListener("keydown", key);
      document.removeEventListener("pointerdown", away);
      removeEventListener("scroll", place, true);
      removeEventListener("resize", place);
    },
  };
}
