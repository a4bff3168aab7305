// The table of the board: a row for each event, a column for each bookmaker, a line for each outcome.

import { h, redraw, setText, time } from "./dom.js";
import { sparkline } from "./plot.js";
import { OUTCOMES_SHOWN, percent, placeOf, signed, written } from "./prices.js";

const FLASH_MS = 1600;
const ARROWS = { 1: ["\u25b2", "up", "up in the last hour"], "-1": ["\u25bc", "down", "down in the last hour"] };

/** The table of what `state` has. `name` writes a bookmaker. */
export function makeTable(state, filters, tip, name) {
  let rows = new Map();
  let shownBooks = [];
  const opened = new Set();
  const head = h("tr");
  const body = h("tbody");
  const table = h("table", { class: "board" }, h("thead", {}, head), body);
  const element = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Prices", hidden: true }, table);

  function showHead() {
    const { stale, titles } = state;
    head.replaceChildren(
      h("th", { scope: "col", class: "what" }, "Event"), h("th", { scope: "col", class: "hour" }, "Last hour"), h("th", { scope: "col", class: "best" }, "Best"),
      ...shownBooks.map((book) => h("th", { scope: "col", class: stale.has(book) ? "book stale" : "book", title: stale.has(book) ? `${name(book)}: no good read of late` : name(book) },
        h("span", { class: "name" }, titles.get(book)?.title ?? book), titles.get(book)?.key ? h("span", { class: "own-key" }, book) : null, stale.has(book) ? h("span", { class: "mark" }, "stale") : null)));
  }

  function shownNames(group) {
    return group.names.length <= OUTCOMES_SHOWN || opened.has(group.id) ? group.names : group.names.slice(0, OUTCOMES_SHOWN);
  }

  /** The cell of the best prices: their hold, which opens the fair prices, and a line with a holder for each outcome. */
  function makeBest(group, names) {
    const hold = h("button", { type: "button", class: "quiet hold", "data-id": group.id }, "\u2013");
    const lines = names.map(() => h("span", { class: "line" }, h("span", { class: "holder" }), h("span", { class: "point" }), h("span", { class: "price" })));
    const cell = h("td", { class: "best" }, hold, lines);
    tip.attach(hold, cell);
    return { hold, lines, cell };
  }

  /** A row with a cell for each bookmaker and a line for each outcome. */
  function makeRow(group) {
    const names = shownNames(group);
    const line = () => h("span", { class: "line" }, h("span", { class: "arrow" }), h("span", { class: "point" }), h("span", { class: "price" }));
    const cell = () => h("td", { class: "book" }, names.map(line));
    const meta = h("a", { class: "meta", href: eventAddress(group.id), title: "Prices over time" });
    const opener = group.names.length > OUTCOMES_SHOWN
      ? h("button", { type: "button", class: "quiet", "data-id": group.id, "aria-expanded": String(opened.has(group.id)), onclick: () => toggle(group.id) },
        opened.has(group.id) ? "Show fewer" : `Show all ${group.names.length}`)
      : null;
    const what = h("th", { scope: "row", class: "what" }, meta, names.map((name) => h("span", { class: "line" }, name)), opener);
    const row = { shape: shapeOf(group), meta, hour: h("td", { class: "hour" }), best: makeBest(group, names), cells: new Map(shownBooks.map((book) => [book, cell()])), values: new Map() };
    row.tr = h("tr", {}, what, row.hour, row.best.cell, ...row.cells.values());
    return row;
  }

  const eventAddress = (id) => `#/event/${state.at.world}/${state.at.sport}/${encodeURIComponent(id)}/${state.at.market}/${state.at.format}`;

  function toggle(id) {
    if (!opened.delete(id)) opened.add(id);
    draw(false);
  }

  const shapeOf = (group) => `${shownNames(group).join("\n")}\n\n${shownBooks.join(" ")}`;

  /** Writes a price; says whether it moved since the last time. */
  function write(place, offer, isBest, key, row, flashes) {
    const [point, price] = [...place.children].slice(-2);
    setText(point, offer && offer.point !== null ? signed(offer.point, state.at.market) : "");
    setText(price, offer ? written(offer.price, state.at.format) : "\u2013");
    place.classList.toggle("top", isBest);
    place.classList.toggle("none", !offer);
    const before = row.values.get(key);
    const hasMoved = flashes && offer?.value !== undefined && before !== undefined && before !== offer.value;
    if (hasMoved) {
      place.classList.remove("up", "down");
      // Begins the flash anew even where one is under way.
      void place.offsetWidth;
      place.classList.add(offer.value > before ? "up" : "down");
    }
    if (offer) row.values.set(key, offer.value);
    else row.values.delete(key);
    return hasMoved;
  }

  /** Where a price went in the last hour: as a sign with a text, not by its colour alone. */
  function writeArrow(place, direction) {
    const [sign, tone, label] = ARROWS[direction] ?? ["", "", ""];
    const arrow = place.firstChild;
    if (arrow.textContent === sign) return;
    arrow.className = `arrow ${tone}`;
    arrow.replaceChildren(...(sign ? [h("span", { role: "img", "aria-label": label, title: label }, sign)] : []));
  }

  function fillBest({ hold, lines }, group) {
    const prices = state.best.get(group.id);
    const found = shownNames(group).map((name) => prices?.get(placeOf(name, group.best.get(name).point)));
    lines.forEach((line, number) => {
      const [holder, point, price] = line.children;
      const best = found[number];
      setText(holder, best ? name(best.bookmaker) : "");
      holder.title = best ? name(best.bookmaker) : "";
      setText(point, best && best.point !== null ? signed(best.point, state.at.market) : "");
      setText(price, best ? written(best.price, state.at.format) : "\u2013");
      line.classList.toggle("none", !best);
    });
    const whole = found.find((best) => best && best.hold !== null);
    const text = whole ? `hold ${percent(whole.hold, 2)}` : "fair";
    hold.hidden = !found.some(Boolean);
    setText(hold, text);
    hold.setAttribute("aria-label", `${text}, fair prices of ${shownNames(group).slice(0, 2).join(", ")}`);
    hold.classList.toggle("arbitrage", Boolean(whole) && whole.hold < 0);
  }

  function fillHour(row, group) {
    const spark = state.lines.get(group.id);
    if (row.spark === spark) return;
    row.spark = spark;
    const known = (spark?.points ?? []).filter((point) => point !== null);
    const share = (point) => `${(point / 100).toFixed(1)}\u00a0%`;
    const label = known.length ? `Chance of ${spark.outcome}: ${share(known[0])} to ${share(known.at(-1))}` : "Nothing known of the last hour";
    row.hour.replaceChildren(...(spark ? [sparkline(spark.points, label), h("span", { class: "share" }, known.length ? `${spark.outcome} ${share(known.at(-1))}` : "")] : []));
    row.hour.title = spark ? label : "";
  }

  function fillMeta(row, group) {
    const event = state.named.get(group.id);
    const status = event && event.status !== "scheduled" ? ` · ${event.status}` : "";
    const title = event?.title ?? event?.competition ?? "";
    const score = event?.status === "scheduled" ? undefined : state.scores.get(group.id);
    const points = score && score.home_score !== null ? ` ${score.home_score}\u2013${score.away_score}` : "";
    setText(row.meta, event ? `${time(event.commence_time)}${status}${points} · ${title}` : group.id);
    row.meta.classList.toggle("live", event?.status === "live");
  }

  function fillRow(row, group, flashes) {
    fillMeta(row, group);
    fillHour(row, group);
    fillBest(row.best, group);
    let hasMoved = false;
    const first = state.first.get(group.id);
    shownNames(group).forEach((name, number) => {
      const best = group.best.get(name);
      for (const [key, cell] of row.cells) {
        const offer = group.books.get(key)?.prices.get(name);
        hasMoved = write(cell.children[number], offer, best.books.has(key), `${key} ${name}`, row, flashes) || hasMoved;
        const was = offer && first?.get(key)?.get(placeOf(name, offer.point));
        writeArrow(cell.children[number], was === undefined ? 0 : Math.sign(offer.value - was));
      }
    });
    for (const [book, cell] of row.cells) cell.classList.toggle("stale", state.stale.has(book));
    if (hasMoved) mark(row);
  }

  /** Marks a row that changed, for a moment. */
  function mark(row) {
    clearTimeout(row.marked);
    row.tr.classList.add("changed");
    row.marked = setTimeout(() => row.tr.classList.remove("changed"), FLASH_MS);
  }

  /** The events that pass the filters, sorted; and the columns that have a price in any of them. */
  function selected() {
    const list = [...state.groups.values()].filter((group) => filters.accepts(state.named.get(group.id), group));
    const priced = new Set(list.flatMap((group) => [...group.books.keys()]));
    return { list: filters.sorted(list, state.named), columns: state.books.filter((book) => priced.has(book) && filters.acceptsBook(book)) };
  }

  /** Draws what differs; says how many events and bookmakers are shown. */
  function draw(flashes) {
    const { list, columns } = selected();
    const shape = `${columns.join(" ")} ${[...state.stale].sort().join(" ")} ${state.titles.size}`;
    if (head.dataset.shape !== shape || !head.firstChild) {
      shownBooks = columns;
      showHead();
      head.dataset.shape = shape;
    }
    const kept = new Map();
    const trs = [];
    for (const group of list) {
      let row = rows.get(group.id);
      if (!row || row.shape !== shapeOf(group)) row = makeRow(group);
      fillRow(row, group, flashes);
      kept.set(group.id, row);
      trs.push(row.tr);
    }
    rows = kept;
    const isSame = trs.length === body.children.length && trs.every((tr, number) => body.children[number] === tr);
    if (!isSame) redraw(body, trs);
    element.hidden = !trs.length;
    return { events: list.length, bookmakers: columns.length };
  }

  function reset() {
    [rows, shownBooks] = [new Map(), []];
    opened.clear();
    body.replaceChildren();
    head.replaceChildren();
  }

  return { element, draw, reset };
}
