// Elements, and how values are written. Text always goes in as text: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** Sets text only where it differs, so that nothing is laid out for nothing. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const whole = new Intl.NumberFormat("en-GB");
const brief = new Intl.NumberFormat("en-GB", { notation: "compact", maximumFractionDigits: 1 });

export const count = (number) => whole.format(number);
/** A number with its noun: `1 event`, `2 events`. */
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
export const short = (number) => (Math.abs(number) < 10_000 ? whole.format(number) : brief.format(number));

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (number >= 1024 && at < units.length - 1) {
    number /= 1024;
    at += 1;
  }
  return `${at === 0 ? number : number.toFixed(1)} ${units[at]}`;
}

export function seconds(number) {
  if (number < 120) return `${Math.floor(number)} s`;
  if (number < 7200) return `${Math.floor(number / 60)} min`;
  if (number < 172_800) return `${Math.floor(number / 3600)} h`;
  return `${Math.floor(number / 86_400)} d`;
}

/** A time between two events, in its two largest units: `2 h 23 min`. */
export function interval(number) {
  const units = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = Math.max(units.findIndex(([, size]) => number >= size), 0);
  const parts = units.slice(first, first + 2).map(([unit, size], at) => {
    const whole = Math.floor((at ? number % units[first][1] : number) / size);
    return at && !whole ? "" : `${whole} ${unit}`;
  });
  return number < 1 ? "0 s" : parts.filter(Boolean).join(" ");
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const dated = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/** A time of today as the hour, any other with its day. */
export function time(text) {
  const moment = new Date(text);
  const isToday = moment.toDateString() === new Date().toDateString();
  return isToday ? clock.format(moment) : dated.format(moment);
}

export const hour = (moment) => clock.format(moment);

const exact = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** A moment of history, with its day and its second. */
export const moment = (at) => exact.format(at);
export const words = (key) => key.replaceAll("_", " ");

/** The titles of bookmakers by key. Where several share a title, each has its key as well. */
export function titlesOf(books) {
  const uses = new Map();
  for (const { title } of books) uses.set(title, (uses.get(title) ?? 0) + 1);
  return new Map(books.map(({ key, title }) => [key, { title, key: uses.get(title) > 1 ? key : null }]));
}

/** What tells a control from the others, however often it is drawn anew. */
const identity = (element) => element.getAttribute("aria-label") ?? element.getAttribute("href") ?? element.dataset.id;

/** Replaces children; a control that has the focus keeps it if there is one like it again. */
export function redraw(parent, children) {
  const active = document.activeElement;
  const focused = active && parent !== active && parent.contains(active) ? identity(active) : null;
  parent.replaceChildren(...children);
  if (focused) [...parent.querySelectorAll("a, button, summary")].find((element) => identity(element) === focused)?.focus({ preventScroll: true });
}

// On a small screen a `stacked` table is drawn as a list, which takes its roles away unless they are named.
export const stackedRow = (attributes, ...cells) => h("tr", { role: "row", ...attributes }, ...cells);
export const stackedCell = (label, attributes, ...children) => h("td", { role: "cell", "data-label": label, ...attributes }, ...children);
export const stackedTable = (heads, body) => {
  body.setAttribute("role", "rowgroup");
  for (const head of heads) head.setAttribute("role", "columnheader");
  return h("table", { role: "table", class: "stacked" }, h("thead", { role: "rowgroup" }, stackedRow({}, ...heads)), body);
};

/** A value with its name, in a list of `facts`. */
export function fact(name) {
  const value = h("dd", {}, "–");
  return { value, item: h("div", { class: "fact" }, h("dt", {}, name), value) };
}

let hiding;

/** A line that is read out and goes away by itself. */
export function notify(text, isBad = false) {
  const notice = document.getElementById("notice");
  notice.textContent = text;
  notice.classList.toggle("bad", isBad);
  notice.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { notice.hidden = true; }, isBad ? 8000 : 4000);
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    notify(`${what} copied`);
  } catch {
    notify("The browser did not allow copying: select the text and copy it by hand", true);
  }
}

/** A button among several of which one is chosen. */
export const choice = (label, isChosen, onclick) =>
  h("button", { type: "button", class: "tab", "aria-pressed": String(isChosen), onclick }, label);
