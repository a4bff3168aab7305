// Board: what a client sees. Events as rows, bookmakers as columns, the best price of each outcome marked.

import { choice, copy, count, counted, h, redraw, setText, time, titlesOf, words } from "./dom.js";
import { makeFilters } from "./filters.js";
import { sparkline } from "./plot.js";
import { OUTCOMES_SHOWN, grouped, signed, written } from "./prices.js";
import { command, view, who } from "./server.js";

const FORMATS = ["american", "decimal", "fractional"];
const EVENTS_PER_VIEW = 100;
const SPARKLINES_EVERY = 15;
const SOURCES_EVERY = 5;
const MARKETS_EVERY = 10;
const SCORES_EVERY = 2;
const TOTALS_EVERY = 5;
/** The order in which a sport's markets are tried when none was chosen. */
const FIRST_MARKETS = ["moneyline", "outright"];
const STORED = "board";

function chosen(rest) {
  const stored = JSON.parse(localStorage.getItem(STORED) ?? "{}");
  const sports = who().sports.map(({ key }) => key);
  const pick = (value, known, fallback) => (known.includes(value) ? value : fallback);
  const [world, sport, market, format, regions] = rest;
  const list = (regions ?? stored.regions ?? "us").split(",").filter((region) => who().regions.includes(region));
  return {
    world: pick(world ?? stored.world, ["live", "sandbox"], "live"),
    sport: pick(sport ?? stored.sport, sports, sports[0]),
    // Empty until the markets of the sport are known.
    market: (market ?? (sport ? null : stored.market))?.match(/^[a-z0-9_]+$/)?.[0] ?? "",
    format: pick(format ?? stored.format, FORMATS, "american"),
    regions: (list.length ? list : ["us"]).join(","),
  };
}

const address = (at) => `#/board/${at.world}/${at.sport}/${at.market || "-"}/${at.format}/${at.regions}`;

export function board(root, rest) {
  let at = chosen(rest);
  let isClosed = false;
  let pages = 1;
  let public_address = "";
  let isLiveSimulated = false;
  let markets = [];
  let titles = new Map();
  let scores = new Map();
  let isPartial = false;
  /** Of the whole view, however few pages are loaded. */
  let totals = { events: 0, bookmakers: 0 };
  let stale = new Set();
  let named = new Map();
  let lines = new Map();
  let groups = new Map();
  let rows = new Map();
  let books = [];
  let shownBooks = [];
  const opened = new Set();
  const filters = makeFilters(() => draw(false));

  const controls = h("div", { class: "controls" });
  const summary = h("p", { class: "soft board-summary", role: "status" });
  const head = h("tr");
  const body = h("tbody");
  const table = h("table", { class: "board" }, h("thead", {}, head), body);
  const more = h("button", { type: "button", hidden: true, onclick: () => { pages += 1; } }, "More events");
  const curl = h("button", { type: "button", onclick: () => copy(curlLine(), "The curl line") }, "Copy as curl");
  const simulated = h("span", { class: "state warn", hidden: true }, "simulated");
  const prices = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Prices", hidden: true }, table);
  root.append(h("div", { class: "title" }, h("h1", {}, "Board"), simulated, curl), controls, filters.element, summary, prices, more);

  /** Exactly this view, for a client with a key of this world. */
  function curlLine() {
    const query = `market=${at.market}&regions=${at.regions}&odds_format=${at.format}&limit=500`;
    return `curl -H "X-API-Key: $ODDSBOX_KEY" '${public_address}/v1/sports/${at.sport}/odds?${query}'`;
  }

  const go = (change) => { location.hash = address({ ...at, ...change }); };

  function showControls() {
    const group = (label, buttons) => h("div", { class: "tabs", role: "group", "aria-label": label }, buttons);
    const focused = document.activeElement?.dataset?.choice;
    const button = (kind, key, label, isOn, change) => {
      const made = choice(label, isOn, () => go(change));
      made.dataset.choice = `${kind} ${key}`;
      return made;
    };
    const region = (key) => {
      const list = at.regions.split(",");
      const next = list.includes(key) ? list.filter((one) => one !== key) : who().regions.filter((one) => one === key || list.includes(one));
      return button("region", key, key, list.includes(key), { regions: (next.length ? next : list).join(",") });
    };
    const listed = !at.market || markets.includes(at.market) ? markets : [at.market, ...markets];
    // An event can have hundreds of markets: those that are not featured are in a list.
    const [featured, others] = [true, false].map((is) => listed.filter((market) => who().markets.includes(market) === is));
    const option = (market) => h("option", { value: market, selected: market === at.market }, words(market));
    const more = h("select", { "aria-label": "Further markets", onchange: () => { if (more.value) go({ market: more.value }); } },
      h("option", { value: "" }, counted(others.length, "further market")), others.map(option));
    more.dataset.choice = "market list";
    controls.replaceChildren(...[
      group("World", ["live", "sandbox"].map((world) => button("world", world, world, world === at.world, { world }))),
      group("Sport", who().sports.map(({ key, title }) => button("sport", key, title, key === at.sport, { sport: key, market: "" }))),
      group("Market", featured.map((market) => button("market", market, words(market), market === at.market, { market }))),
      others.length ? more : [],
      group("Regions", who().regions.map(region)),
      group("Format", FORMATS.map((format) => button("format", format, format, format === at.format, { format }))),
    ].flat());
    if (focused) controls.querySelector(`[data-choice="${focused}"]`)?.focus();
  }

  async function records() {
    const all = [];
    let after = null;
    for (let page = 0; page < pages; page += 1) {
      const query = `world=${at.world}&sport=${at.sport}&market=${at.market}&odds_format=${at.format}&regions=${at.regions}`;
      const got = await view(`/api/odds?${query}${after ? `&after=${after}` : ""}`);
      all.push(...got.document);
      after = got.next;
      if (!after) break;
    }
    // The page may end within an event: its other bookmakers are on the next one.
    const cut = after ? all.at(-1)?.event_id : null;
    return { all: cut ? all.filter(({ event_id }) => event_id !== cut) : all, hasMore: Boolean(after) };
  }

  /** What a view (`events` or `scores`) has of these events. */
  async function ofEvents(path, ids) {
    const found = [];
    for (let from = 0; from < ids.length; from += EVENTS_PER_VIEW) {
      const list = ids.slice(from, from + EVENTS_PER_VIEW).map(encodeURIComponent).join(",");
      found.push(...(await view(`/api/${path}?world=${at.world}&sport=${at.sport}&event_ids=${list}`)).document);
    }
    return found;
  }

  /** The title of a bookmaker, with its key where several share the title. */
  function name(book) {
    const { title, key } = titles.get(book) ?? { title: book, key: null };
    return key ? `${title} (${key})` : title;
  }

  function showHead() {
    head.replaceChildren(
      h("th", { scope: "col", class: "what" }, "Event"), h("th", { scope: "col", class: "hour" }, "Last hour"), h("th", { scope: "col", class: "best" }, "Best"),
      ...shownBooks.map((book) => h("th", { scope: "col", class: stale.has(book) ? "book stale" : "book", title: stale.has(book) ? `${name(book)}: no good read of late` : name(book) },
        h("span", { class: "name" }, titles.get(book)?.title ?? book), titles.get(book)?.key ? h("span", { class: "own-key" }, book) : null, stale.has(book) ? h("span", { class: "mark" }, "stale") : null)));
  }

  function shownNames(group) {
    return group.names.length <= OUTCOMES_SHOWN || opened.has(group.id) ? group.names : group.names.slice(0, OUTCOMES_SHOWN);
  }

  /** A row with a cell for each bookmaker and a line for each outcome. */
  function makeRow(group) {
    const names = shownNames(group);
    const line = (name) => h("span", { class: "line" }, h("span", { class: "point" }), h("span", { class: "price" }));
    const cell = (kind) => h("td", { class: kind }, names.map(line));
    const meta = h("span", { class: "meta" });
    const opener = group.names.length > OUTCOMES_SHOWN
      ? h("button", { type: "button", class: "quiet", "data-id": group.id, "aria-expanded": String(opened.has(group.id)), onclick: () => toggle(group.id) },
        opened.has(group.id) ? "Show fewer" : `Show all ${group.names.length}`)
      : null;
    const what = h("th", { scope: "row", class: "what" }, meta, names.map((name) => h("span", { class: "line" }, name)), opener);
    const row = { shape: shapeOf(group), meta, hour: h("td", { class: "hour" }), best: cell("best"), cells: new Map(shownBooks.map((book) => [book, cell("book")])), values: new Map() };
    row.tr = h("tr", {}, what, row.hour, row.best, ...row.cells.values());
    return row;
  }

  function toggle(id) {
    if (!opened.delete(id)) opened.add(id);
    draw(false);
  }

  const shapeOf = (group) => `${shownNames(group).join("\n")}\n\n${shownBooks.join(" ")}`;

  function write(place, offer, isBest, key, row, flashes) {
    const [point, price] = place.children;
    setText(point, offer && offer.point !== null ? signed(offer.point, at.market) : "");
    setText(price, offer ? written(offer.price, at.format) : "\u2013");
    place.classList.toggle("top", isBest);
    place.classList.toggle("none", !offer);
    const before = row.values.get(key);
    if (flashes && offer && before !== undefined && before !== offer.value) {
      place.classList.remove("up", "down");
      // Begins the flash anew even where one is under way.
      void place.offsetWidth;
      place.classList.add(offer.value > before ? "up" : "down");
    }
    if (offer) row.values.set(key, offer.value);
    else row.values.delete(key);
  }

  function fillRow(row, group, flashes) {
    const event = named.get(group.id);
    const status = event && event.status !== "scheduled" ? ` · ${event.status}` : "";
    const title = event?.title ?? event?.competition ?? "";
    const score = event?.status === "scheduled" ? undefined : scores.get(group.id);
    const points = score && score.home_score !== null ? ` ${score.home_score}\u2013${score.away_score}` : "";
    setText(row.meta, event ? `${time(event.commence_time)}${status}${points} · ${title}` : group.id);
    row.meta.classList.toggle("live", event?.status === "live");
    const spark = lines.get(group.id);
    if (spark && row.spark !== spark) {
      row.spark = spark;
      const known = spark.points.filter((point) => point !== null);
      const share = (point) => `${(point / 100).toFixed(1)}\u00a0%`;
      const label = known.length ? `Chance of ${spark.outcome}: ${share(known[0])} to ${share(known.at(-1))}` : "Nothing known of the last hour";
      row.hour.replaceChildren(sparkline(spark.points, label), h("span", { class: "share" }, known.length ? `${spark.outcome} ${share(known.at(-1))}` : ""));
      row.hour.title = label;
    }
    shownNames(group).forEach((name, number) => {
      const best = group.best.get(name);
      const book = [...best.books][0];
      write(row.best.children[number], group.books.get(book)?.prices.get(name), false, `best ${name}`, row, flashes);
      for (const [key, cell] of row.cells) {
        const offer = group.books.get(key)?.prices.get(name);
        write(cell.children[number], offer, best.books.has(key), `${key} ${name}`, row, flashes);
      }
    });
    for (const [book, cell] of row.cells) cell.classList.toggle("stale", stale.has(book));
  }

  /** The events that pass the filters, sorted; and the columns that have a price in any of them. */
  function selected() {
    const list = [...groups.values()].filter((group) => filters.accepts(named.get(group.id), group));
    const priced = new Set(list.flatMap((group) => [...group.books.keys()]));
    return { list: filters.sorted(list, named), columns: books.filter((book) => priced.has(book) && filters.acceptsBook(book)) };
  }

  function draw(flashes) {
    const { list, columns } = selected();
    const shape = `${columns.join(" ")} ${[...stale].sort().join(" ")} ${titles.size}`;
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
    prices.hidden = !trs.length;
    showSummary(list.length, columns.length);
  }

  /** The numbers are those of the whole view, whatever part of it is loaded. */
  function showSummary(shown, columns) {
    const loaded = groups.size;
    const all = isPartial ? Math.max(totals.events, loaded) : loaded;
    const isFiltered = shown !== loaded;
    const [some, books] = isPartial && isFiltered
      ? [`${count(shown)} of the first ${counted(loaded, "event")}, ${count(all)} in all,`, columns]
      : isPartial
        ? [`The first ${count(loaded)} of ${counted(all, "event")}`, Math.max(totals.bookmakers, columns)]
        : [isFiltered ? `${count(shown)} of ${counted(all, "event")}` : counted(all, "event"), columns];
    setText(summary, loaded
      ? `${some} at ${counted(books, "bookmaker")}, as a client with a ${at.world === "live" ? "production" : "sandbox"} key sees them`
      : `No prices${at.market ? ` of ${words(at.market)}` : ""} in ${at.regions.split(",").join(", ")} now`);
  }

  function turn(rest) {
    const before = at;
    at = chosen(rest);
    localStorage.setItem(STORED, JSON.stringify(at));
    if (before.world !== at.world || before.sport !== at.sport) [markets, titles, stale] = [[], new Map(), new Set()];
    totals = { events: 0, bookmakers: 0 };
    [pages, named, lines, groups, rows, books, shownBooks, scores] = [1, new Map(), new Map(), new Map(), new Map(), [], [], new Map()];
    if (before.world !== at.world || before.sport !== at.sport) filters.reset();
    opened.clear();
    body.replaceChildren();
    head.replaceChildren();
    setText(summary, "…");
    showControls();
  }

  async function look(number) {
    const asked = at;
    const isOther = () => isClosed || asked !== at;
    if (!public_address) await readStatus();
    simulated.hidden = !(isLiveSimulated && at.world === "live");
    if (number % MARKETS_EVERY === 0) {
      const [priced, listed] = [await view(`/api/markets?world=${at.world}&sport=${at.sport}`), await view(`/api/books?world=${at.world}`)];
      if (isOther()) return;
      if (String(markets) !== String(priced.document)) {
        markets = priced.document;
        showControls();
      }
      titles = titlesOf(listed.document);
    }
    if (number % SOURCES_EVERY === 0) {
      const { sources } = await command("feeds", { world: at.world, stale: true });
      if (isOther()) return;
      stale = new Set(sources.filter(({ sport }) => sport === at.sport).map(({ bookmaker }) => bookmaker));
    }
    if (!at.market) return chooseMarket();
    const { all, hasMore } = await records();
    if (isOther()) return;
    groups = grouped(all, at.format);
    isPartial = hasMore;
    if (isPartial && (number % TOTALS_EVERY === 0 || !totals.events)) totals = (await view(`/api/totals?world=${at.world}&sport=${at.sport}&market=${at.market}&regions=${at.regions}`)).document;
    named = new Map((await ofEvents("events", [...groups.keys()])).map((event) => [event.id, event]));
    if (number % SCORES_EVERY === 0) await readScores();
    if (number % SPARKLINES_EVERY === 0 && groups.size) {
      const { document, isNew } = await view(`/api/sparklines?world=${at.world}&sport=${at.sport}&market=${at.market}`);
      if (isNew || !lines.size) lines = new Map(Object.entries(document.events));
    }
    if (isOther()) return;
    books = [...new Set(all.map(({ bookmaker }) => bookmaker))].sort();
    filters.offer([...new Set([...named.values()].map((event) => event.title ?? event.competition))].sort(), books.map((book) => [book, name(book)]));
    draw(true);
    more.hidden = !hasMore;
  }

  /** Goes on to the first market that has prices; without any, to the one that the page begins with. */
  function chooseMarket() {
    const market = FIRST_MARKETS.find((market) => markets.includes(market)) ?? markets[0] ?? FIRST_MARKETS[0];
    history.replaceState(null, "", address({ ...at, market }));
    turn([at.world, at.sport, market, at.format, at.regions]);
  }

  async function readScores() {
    const live = [...named.values()].filter(({ status }) => status === "live").map(({ id }) => id);
    scores = new Map((await ofEvents("scores", live)).map((score) => [score.event_id, score]));
  }

  /** Neither changes while a server runs. */
  async function readStatus() {
    const { server, worlds } = await command("status");
    public_address = `${server.tls ? "https" : "http"}://${server.address}`;
    isLiveSimulated = worlds.live.simulated;
  }

  turn(rest);
  return { look, turn, close: () => { isClosed = true; } };
}
