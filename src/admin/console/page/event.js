// Event: what every bookmaker's price of an outcome was over time, with its opening and closing prices.

import { FORMATS, address } from "./boardcontrols.js";
import { h, moment, redraw, setText, stackedCell, stackedRow, stackedTable, time, titlesOf, words } from "./dom.js";
import { outcomeName, signed, value, written } from "./prices.js";
import { view, who } from "./server.js";
import { stepPlot } from "./stepplot.js";

const LOOK_EVERY = 5;
const REASONS = { started: "it started", scheduled_start: "scheduled start", market_closed: "market closed", missing: "no price before the start" };

/** Whether an outcome is in a record more than once, at several points. */
const hasSeveralPoints = (lines) => lines.some(({ points }) => points.some(({ outcomes }) => new Set(outcomes.map(outcomeName)).size < outcomes.length));

/** A profit for each unit staked as a price. Fractions are written as decimals: a median need not be a fraction. */
function writeValue(number, format) {
  if (format !== "american") return (number + 1).toFixed(number < 9 ? 2 : 1);
  return number >= 1 ? `+${Math.round(number * 100)}` : `\u2212${Math.round(100 / Math.max(number, 0.0001))}`;
}

function chosen(rest) {
  const [world, sport, id, market, format] = rest;
  return { world: world === "sandbox" ? "sandbox" : "live", sport: sport ?? "", id: id ?? "", market: market?.match(/^[a-z0-9_]+$/)?.[0] ?? "", format: FORMATS.includes(format) ? format : "american" };
}

export function event(root, rest) {
  let at = chosen(rest);
  let found = null;
  let titles = new Map();
  let isClosed = false;
  let outcome = "";
  const go = (change) => {
    const next = { ...at, ...change };
    location.hash = `#/event/${next.world}/${next.sport}/${encodeURIComponent(next.id)}/${next.market || "-"}/${next.format}`;
  };
  const heading = h("h1", {}, "Event");
  const back = h("a", { href: "#/board" }, "Show it on the board");
  const about = h("p", { class: "soft" });
  const market = h("select", { "aria-label": "Market", onchange: () => go({ market: market.value }) });
  const outcomes = h("select", { "aria-label": "Outcome", onchange: () => { outcome = outcomes.value; plot.reset(); show(); } });
  const format = h("select", { "aria-label": "Format", onchange: () => go({ format: format.value }) }, FORMATS.map((key) => h("option", { value: key }, key)));
  const state = h("p", { role: "status", class: "soft" }, "\u2026");
  const plot = stepPlot((number) => writeValue(number, at.format));
  const rows = h("tbody");
  const column = (label) => h("th", { scope: "col" }, label);
  const table = h("section", { class: "card lines" }, h("header", {}, h("h2", {}, "Opening and closing")),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Opening and closing" }, stackedTable([column("Bookmaker"), column("Opening"), column("Closing"), column("Last"), column("Movement")], rows)));
  const content = h("div", { hidden: true }, plot.figure, table);
  root.append(h("div", { class: "title" }, heading, back), about, h("div", { class: "filters" }, market, outcomes, format), state, content);

  const name = (book) => {
    const { title, key } = titles.get(book) ?? { title: book, key: null };
    return key ? `${title} (${key})` : title;
  };
  const key = (one, byPoint) => `${outcomeName(one)}${byPoint && one.point !== null ? ` ${signed(one.point, at.market)}` : ""}`;

  function offer(select, choices, current) {
    const text = JSON.stringify(choices);
    if (select.dataset.choices !== text) {
      select.dataset.choices = text;
      select.replaceChildren(...choices.map(([value, label]) => h("option", { value }, label)));
    }
    select.value = current;
  }

  /** A price with its point, where the market has one. */
  const priceText = (one) => `${one.point === null || one.point === undefined ? "" : `${signed(one.point, at.market)} `}${written(one.price, at.format)}`;

  /** The chosen outcome among others. */
  const pick = (list, byPoint) => list.find((one) => key(one, byPoint) === outcome);

  function stepsOf(line, byPoint) {
    return line.points.map((point) => {
      const one = pick(point.outcomes, byPoint);
      return { at: Date.parse(point.at), value: one ? value(one.price, at.format) : null, text: one ? priceText(one) : "\u2013" };
    });
  }

  function movement(opening, last) {
    if (!opening || !last) return "\u2013";
    if (opening.point !== last.point) return `${priceText(opening)} to ${priceText(last)}`;
    const change = value(last.price, at.format) - value(opening.price, at.format);
    const [sign, label] = change > 0 ? ["\u25b2", "longer"] : change < 0 ? ["\u25bc", "shorter"] : ["=", "the same"];
    const percentage = `${Math.abs((change / (value(opening.price, at.format) + 1)) * 100).toFixed(1)}\u00a0%`;
    return h("span", { class: `moved ${change > 0 ? "up" : change < 0 ? "down" : ""}` }, h("span", { "aria-hidden": "true" }, `${sign} `), change ? `${label} by ${percentage}` : label);
  }

  function makeRow(line, byPoint) {
    const opening = pick(line.opening.outcomes, byPoint);
    const closing = line.closing ? pick(line.closing.outcomes, byPoint) : null;
    const priced = line.points.findLast((point) => pick(point.outcomes, byPoint));
    const last = priced ? pick(priced.outcomes, byPoint) : null;
    const isOpen = Boolean(line.points.length && pick(line.points.at(-1).outcomes, byPoint));
    const cell = (label, one, when, note) => stackedCell(label, {}, h("span", {}, one ? h("b", {}, priceText(one)) : "\u2013", h("small", { class: "own-line" }, [when ? time(when) : null, note].filter(Boolean).join(", "))));
    return stackedRow({}, h("th", { scope: "row", role: "rowheader" }, name(line.bookmaker)),
      cell("Opening", opening, line.opening.at),
      cell("Closing", closing, line.closing?.at, line.closing_reason ? REASONS[line.closing_reason] ?? words(line.closing_reason) : "not yet"),
      cell("Last", last, priced?.at, isOpen ? "" : "closed now"),
      stackedCell("Movement", {}, movement(opening, closing ?? last)));
  }

  function show() {
    const byPoint = hasSeveralPoints(found.lines);
    const names = [...new Set(found.lines.flatMap((line) => line.points.flatMap((point) => point.outcomes.map((one) => key(one, byPoint)))))];
    if (!names.includes(outcome)) outcome = names[0] ?? "";
    offer(outcomes, names.map((one) => [one, one]), outcome);
    const lines = found.lines.map((line) => ({ key: line.bookmaker, name: name(line.bookmaker), steps: stepsOf(line, byPoint) })).filter(({ steps }) => steps.some(({ value }) => value !== null));
    content.hidden = !lines.length;
    const thinned = found.every_nth > 1 ? ` There are very many changes: every ${found.every_nth}th is drawn.` : "";
    setText(state, lines.length ? `${outcome}: prices of ${lines.length} ${lines.length === 1 ? "bookmaker" : "bookmakers"}.${thinned}` : "No price of this event is in kept history.");
    if (!lines.length) return;
    const ends = lines.flatMap(({ steps }) => steps.map((one) => one.at));
    const from = Math.min(...ends);
    // What is open goes on until now.
    const isOpen = lines.some(({ steps }) => steps.at(-1).value !== null) && ["scheduled", "live"].includes(found.status);
    const to = Math.max(from + 1000, ...ends, isOpen ? Date.now() : 0);
    plot.show(lines, [from, to]);
    redraw(rows, found.lines.filter((line) => lines.some((one) => one.key === line.bookmaker)).map((line) => makeRow(line, byPoint)));
  }

  function showAbout() {
    setText(heading, found.name || at.id);
    const sport = who().sports.find((one) => one.key === found.sport_key)?.title ?? found.sport_key;
    setText(about, `${sport} · ${found.competition} · ${moment(Date.parse(found.commence_time))} · ${found.status}`);
    back.href = address({ ...at, sport: found.sport_key, regions: who().regions.join(","), event: at.id });
    offer(market, found.markets.map((one) => [one, words(one)]), found.market ?? "");
    format.value = at.format;
  }

  function turn(rest) {
    const before = at;
    at = chosen(rest);
    if (before.id !== at.id) outcome = "";
    plot.reset();
  }

  async function look(number) {
    if (number % LOOK_EVERY !== 0) return;
    if (!at.id) return setText(state, "No event is chosen: choose one on the board.");
    const asked = at;
    const isOther = () => isClosed || asked !== at;
    try {
      titles = titlesOf((await view(`/api/books?world=${at.world}`)).document);
      const { document, isNew } = await view(`/api/lines?world=${at.world}&event=${encodeURIComponent(at.id)}&market=${at.market}&odds_format=${at.format}`);
      if (isOther() || (found && !isNew && found === document && number !== 0)) return;
      found = document;
      at.market = found.market ?? at.market;
      showAbout();
      show();
    } catch (error) {
      if (isOther()) return;
      if (error.status === 401 || error.code === "unreachable") throw error;
      content.hidden = true;
      setText(state, error.message);
    }
  }

  return { look, turn, close: () => { isClosed = true; } };
}
