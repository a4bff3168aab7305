// Edges: prices with an expected value against a reference, and prices that are an arbitrage together.

import { address } from "./boardcontrols.js";
import { choice, counted, h, redraw, seconds, setText, stackedCell, stackedRow, stackedTable, time, titlesOf, words } from "./dom.js";
import { origin } from "./fair.js";
import { outcomeName, percent, signed, written } from "./prices.js";
import { view, who } from "./server.js";

const LOOK_EVERY = 5;
const ROWS_SHOWN = 500;
const LEGS_SHOWN = 4;
/** An answer that takes longer is announced. */
const QUICK_MS = 150;
const METHODS = ["power", "shin", "multiplicative", "additive"];
const ORDERS = {
  edge: { label: "Edge", compare: (one, other) => other.edge - one.edge },
  event: { label: "Event", compare: (one, other) => nameOf(one).localeCompare(nameOf(other)) },
  start: { label: "Start", compare: (one, other) => one.event.commence_time.localeCompare(other.event.commence_time) },
  market: { label: "Market", compare: (one, other) => one.market.localeCompare(other.market) },
  age: { label: "Age", compare: (one, other) => one.age_s - other.age_s },
};

const nameOf = ({ event }) => event.title ?? [event.home_team, event.away_team].filter(Boolean).join(" v ");
const option = ([value, label]) => h("option", { value }, label);

export function edges(root) {
  let world = "live";
  let kind = "ev";
  let order = "edge";
  let isReversed = false;
  let rows = [];
  let titles = new Map();
  let isClosed = false;
  let asked = 0;
  /** What the rows that are shown were made of. */
  let drawn = [];

  const name = (book) => {
    const { title, key } = titles.get(book) ?? { title: book, key: null };
    return key ? `${title} (${key})` : title;
  };
  const list = (label, choices) => h("select", { "aria-label": label, onchange: () => read() }, choices.map(option));
  const tabs = h("div", { class: "controls" });
  const sport = list("Sport", [["", "All sports"], ...who().sports.map(({ key, title }) => [key, title])]);
  const market = list("Market", [["", "Main markets"], ["all", "All markets"], ...who().markets.map((key) => [key, words(key)])]);
  const bookmaker = list("Bookmaker", [["", "All bookmakers"]]);
  const reference = list("Reference", [["", "Reference: consensus"]]);
  const method = list("Method", METHODS.map((key) => [key, `Method: ${key}`]));
  const least = h("input", { type: "number", min: "0", max: "100", step: "0.1", value: "1", oninput: () => read() });
  const minimum = h("label", { class: "inline" }, "Minimum %", least);
  const sorting = h("select", { "aria-label": "Sort by", onchange: () => sort(sorting.value, false) }, Object.entries(ORDERS).map(([key, { label }]) => option([key, `Sort: ${label}`])));
  const summary = h("p", { class: "soft board-summary", role: "status" }, "Computing\u2026");
  const body = h("tbody");
  const heads = [["edge", "Edge", "number"], ["event", "Event"], ["start", "Start"], ["market", "Market"], [null, "Bets"], [null, "Probability"], ["age", "Age", "number"]].map(([key, label, tone]) =>
    h("th", { scope: "col", class: tone, "data-order": key }, key ? h("button", { type: "button", class: "quiet sort", onclick: () => sort(key, key === order && !isReversed) }, label) : label));
  const table = h("section", { class: "card edges", hidden: true }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Edges" }, stackedTable(heads, body)));
  root.append(h("h1", {}, "Edges"), tabs, h("div", { class: "filters" }, sport, market, bookmaker, reference, method, minimum, sorting), summary, table);

  function sort(key, reversed) {
    [order, isReversed] = [key, reversed];
    sorting.value = key;
    show();
  }

  function showTabs() {
    const group = (label, choices, chosen, choose) => h("div", { class: "tabs", role: "group", "aria-label": label },
      choices.map(([key, text]) => choice(text, key === chosen, () => { choose(key); showTabs(); read(); })));
    const focused = document.activeElement?.textContent;
    const isInside = tabs.contains(document.activeElement);
    tabs.replaceChildren(
      group("Kind", [["ev", "expected value"], ["arbitrage", "arbitrage"]], kind, (key) => { kind = key; }),
      group("World", [["live", "live"], ["sandbox", "sandbox"]], world, (key) => { world = key; titles = new Map(); }));
    if (isInside) [...tabs.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
    reference.hidden = method.hidden = kind !== "ev";
  }

  function offer(select, first, books) {
    const choices = JSON.stringify(books);
    if (select.dataset.choices === choices) return;
    const before = select.value;
    select.dataset.choices = choices;
    select.replaceChildren(option(["", first]), ...books.map(option));
    select.value = books.some(([key]) => key === before) ? before : "";
  }

  function leg({ bookmaker, stake, price, point, ...outcome }, market) {
    const at = point === null ? "" : ` ${signed(point, market)}`;
    const part = kind === "arbitrage" ? h("small", {}, ` stake ${percent(stake)}`) : null;
    return h("span", { class: "leg" }, `${outcomeName(outcome)}${at} `, h("b", {}, written(price, "decimal")), ` ${name(bookmaker)}`, part);
  }

  function bets({ legs, market }) {
    const lines = legs.map((one) => leg(one, market));
    if (legs.length <= LEGS_SHOWN) return lines;
    return [...lines.slice(0, LEGS_SHOWN), h("details", {}, h("summary", {}, counted(legs.length - LEGS_SHOWN, "further bet")), lines.slice(LEGS_SHOWN))];
  }

  function makeRow(row) {
    const href = address({ world, sport: row.sport_key, market: row.market, format: "decimal", regions: who().regions.join(","), event: row.event_id });
    const books = row.bookmakers.length;
    const whose = kind === "ev" ? origin(row.method, row.reference, books, name) : `best prices of ${counted(books, "bookmaker")}`;
    const title = who().sports.find(({ key }) => key === row.sport_key)?.title ?? row.sport_key;
    return stackedRow({},
      stackedCell("Edge", { class: "number" }, h("b", {}, percent(row.edge, 2))),
      stackedCell("Event", { class: "wrap" }, h("a", { href }, nameOf(row)), h("small", { class: "own-line" }, `${title} · ${row.event.competition}`)),
      stackedCell("Start", {}, time(row.event.commence_time)),
      stackedCell("Market", { class: "wrap-short" }, `${words(row.market)}${row.description ? `, ${row.description}` : ""}`),
      stackedCell("Bets", { class: "wrap" }, h("span", {}, bets(row))),
      stackedCell("Probability", { class: "wrap-short" }, h("span", {}, row.probability === undefined ? null : percent(row.probability), h("small", { class: "own-line" }, whose))),
      stackedCell("Age", { class: "number" }, seconds(row.age_s)));
  }

  function show() {
    const compare = ORDERS[order].compare;
    const sorted = [...rows].sort((one, other) => (isReversed ? compare(other, one) : compare(one, other)) || other.edge - one.edge);
    redraw(body, sorted.slice(0, ROWS_SHOWN).map(makeRow));
    for (const head of heads) {
      if (head.dataset.order === order) head.setAttribute("aria-sort", (order === "edge") !== isReversed ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    table.hidden = !rows.length;
    showSummary();
  }

  function showSummary() {
    const some = `${least.value || 0}\u00a0%`;
    const what = kind === "ev" ? "price has an expected value" : "set of prices is an arbitrage";
    setText(summary, rows.length
      ? `${counted(rows.length, kind === "ev" ? "price" : "set")}${kind === "ev" ? " with an expected value" : " of prices with a profit"} of ${some} or more${rows.length > ROWS_SHOWN ? `, ${ROWS_SHOWN} shown` : ""}`
      : `No ${what} of ${some} or more now. Lower the minimum, choose all markets or another reference, or wait for new prices: this page looks again by itself.`);
  }

  function path(key) {
    const [from, book] = [reference.value, bookmaker.value].map(encodeURIComponent);
    const value = kind === "ev" ? `&method=${method.value}&from=${from}&bookmaker=${book}` : "";
    const min = Math.min(Math.max(Number(least.value) || 0, 0), 100) / 100;
    return `/api/edges?world=${world}&sport=${key}&kind=${kind}&min=${min.toFixed(6)}&market=${market.value}&odds_format=decimal${value}`;
  }

  /** Has the edges computed, one sport after the other. A look that nobody asked for is not announced. */
  async function read(isQuiet = false) {
    const turn = (asked += 1);
    const isOther = () => isClosed || turn !== asked;
    const slow = setTimeout(() => {
      if (!isQuiet) setText(summary, "Computing\u2026");
      table.setAttribute("aria-busy", "true");
    }, QUICK_MS);
    try {
      const listed = (await view(`/api/books?world=${world}`)).document;
      if (isOther()) return;
      titles = titlesOf(listed);
      const books = listed.map(({ key }) => [key, name(key)]).sort((one, other) => one[1].localeCompare(other[1]));
      offer(bookmaker, "All bookmakers", books);
      offer(reference, "Reference: consensus", books.map(([key, title]) => [key, `Reference: ${title}`]));
      const found = [bookmaker.value];
      for (const key of sport.value ? [sport.value] : who().sports.map(({ key }) => key)) {
        found.push((await view(path(key))).document);
        if (isOther()) return;
      }
      clearTimeout(slow);
      const isSame = found.length === drawn.length && found.every((one, at) => one === drawn[at]);
      const [wanted, ...documents] = (drawn = found);
      rows = documents.flat().filter(({ legs }) => !wanted || legs.some((one) => one.bookmaker === wanted));
      if (isSame) showSummary();
      else show();
    } catch (error) {
      if (isOther()) return;
      [rows, drawn] = [[], []];
      table.hidden = true;
      setText(summary, error.message);
      if (error.status === 401 || error.code === "unreachable") throw error;
    } finally {
      clearTimeout(slow);
      if (turn === asked) table.removeAttribute("aria-busy");
    }
  }

  showTabs();
  return {
    look: (number) => (number % LOOK_EVERY === 0 ? read(number > 0) : undefined),
    close: () => { isClosed = true; },
  };
}
