// Board: what a client sees, now or at a moment of kept history. Follows what is published.

import { address, chosen, makeControls, store } from "./boardcontrols.js";
import { makeTable } from "./boardtable.js";
import { copy, count, counted, h, moment as written, setText, titlesOf, words } from "./dom.js";
import { fairTip } from "./fair.js";
import { makeFilters } from "./filters.js";
import { follow } from "./live.js";
import { makeMoment } from "./moment.js";
import { bestPrices, grouped, outcomeName, placeOf, value } from "./prices.js";
import { command, view } from "./server.js";

const EVENTS_PER_VIEW = 100;
const SPARKLINES_EVERY = 15;
const SOURCES_EVERY = 5;
const MARKETS_EVERY = 10;
const MOMENTS_EVERY = 10;
/** Without a publication: ages and scores change as well. */
const PRICES_EVERY = 5;
/** The order in which a sport's markets are tried when none was chosen. */
const FIRST_MARKETS = ["moneyline", "outright"];

const empty = () => ({ named: new Map(), scores: new Map(), best: new Map(), lines: new Map(), first: new Map(), groups: new Map(), books: [] });

/** The first prices of the hour, to compare with: by bookmaker, and by outcome and point. */
const firstOf = ({ first }, format) => new Map(Object.entries(first).map(([book, outcomes]) =>
  [book, new Map(outcomes.map((outcome) => [placeOf(outcomeName(outcome), outcome.point), value(outcome.price, format)]))]));

export function board(root, rest) {
  let isClosed = false;
  let pages = 1;
  let public_address = "";
  let isLiveSimulated = false;
  let markets = [];
  let isPartial = false;
  /** Of the whole view, however few pages are loaded. */
  let totals = { events: 0, bookmakers: 0 };
  /** Whether something may have been published since the prices were read. */
  let isBehind = true;
  /** Whether the last hour of this view was not read yet. */
  let isHourBehind = true;
  let isReading = false;
  let isAskedAgain = false;
  const state = { at: chosen(rest), titles: new Map(), stale: new Set(), ...empty() };

  /** The title of a bookmaker, with its key where several share the title. */
  function name(book) {
    const { title, key } = state.titles.get(book) ?? { title: book, key: null };
    return key ? `${title} (${key})` : title;
  }

  const filters = makeFilters(() => draw(false));
  const controls = makeControls();
  const moment = makeMoment(() => turnTo());
  const tip = fairTip(async (id) => (await view(`/api/fair?${query()}&event_ids=${encodeURIComponent(id)}`)).document, () => state.at.format, name);
  const table = makeTable(state, filters, tip, name);
  const summary = h("p", { class: "soft board-summary", role: "status" });
  const past = h("p", { class: "banner warn", role: "status", hidden: true });
  const only = h("p", { class: "banner", hidden: true });
  const more = h("button", { type: "button", hidden: true, onclick: () => { pages += 1; isBehind = true; } }, "More events");
  const curl = h("button", { type: "button", onclick: () => copy(curlLine(), "The curl line") }, "Copy as curl");
  const simulated = h("span", { class: "state warn", hidden: true }, "simulated");
  const connection = h("span", { class: "state", role: "status" }, "connecting");
  root.append(h("div", { class: "title" }, h("h1", {}, "Board"), connection, simulated, curl), controls.element, filters.element, moment.element, past, only, summary, table.element, more, tip.element);

  let isLost = false;
  const live = follow(() => state.at.world, () => {
    isBehind = true;
    if (moment.asOf() === null) refresh().catch(() => {});
  }, (lost) => {
    isLost = lost;
    showConnection();
  });

  function showConnection() {
    const isPast = moment.asOf() !== null;
    connection.className = `state ${isLost ? "bad" : isPast ? "warn" : "good"}`;
    setText(connection, isLost ? "connection lost" : isPast ? "history" : "live");
  }

  /** Exactly this view, for a client with a key of this world. */
  function curlLine() {
    const { at } = state;
    const time = moment.asOf() === null ? "" : `&as_of=${new Date(moment.asOf() * 1000).toISOString().replace(".000Z", "Z")}`;
    const event = at.event ? `&event_ids=${encodeURIComponent(at.event)}` : "";
    const parameters = `market=${at.market}&regions=${at.regions}&odds_format=${at.format}&limit=500${event}${time}`;
    return `curl -H "X-API-Key: $ODDSBOX_KEY" '${public_address}/v1/sports/${at.sport}/odds?${parameters}'`;
  }

  const timed = () => (moment.asOf() === null ? "" : `&as_of=${moment.asOf()}`);
  const query = () => `world=${state.at.world}&sport=${state.at.sport}&market=${state.at.market}&odds_format=${state.at.format}&regions=${state.at.regions}${timed()}`;

  async function records() {
    const all = [];
    let after = null;
    const event = state.at.event ? `&event_ids=${encodeURIComponent(state.at.event)}` : "";
    for (let page = 0; page < pages; page += 1) {
      const got = await view(`/api/odds?${query()}${event}${after ? `&after=${after}` : ""}`);
      all.push(...got.document);
      after = got.next;
      if (!after) break;
    }
    // The page may end within an event: its other bookmakers are on the next one.
    const cut = after ? all.at(-1)?.event_id : null;
    return { all: cut ? all.filter(({ event_id }) => event_id !== cut) : all, hasMore: Boolean(after) };
  }

  /** What a view has of these events. */
  async function ofEvents(path, ids, parameters = `world=${state.at.world}&sport=${state.at.sport}${timed()}`) {
    const found = [];
    for (let from = 0; from < ids.length; from += EVENTS_PER_VIEW) {
      const list = ids.slice(from, from + EVENTS_PER_VIEW).map(encodeURIComponent).join(",");
      for (let after = ""; after !== null;) {
        const got = await view(`/api/${path}?${parameters}&event_ids=${list}${after ? `&after=${after}` : ""}`);
        found.push(...got.document);
        after = got.next;
      }
    }
    return found;
  }

  function draw(flashes) {
    const { events, bookmakers } = table.draw(flashes);
    showSummary(events, bookmakers);
    const { event } = state.at;
    const shown = state.named.get(event);
    const title = shown?.title ?? [shown?.home_team, shown?.away_team].filter(Boolean).join(" v ");
    only.hidden = !event;
    if (event && only.dataset.text !== title) {
      only.dataset.text = title;
      only.replaceChildren(`Only ${title || event}. `, h("a", { href: address({ ...state.at, event: "" }) }, "Show all events"));
    }
  }

  /** The numbers are those of the whole view, whatever part of it is loaded. */
  function showSummary(shown, columns) {
    const { at, groups } = state;
    const loaded = groups.size;
    const all = isPartial ? Math.max(totals.events, loaded) : loaded;
    const isFiltered = shown !== loaded;
    const [some, books] = isPartial && isFiltered
      ? [`${count(shown)} of the first ${counted(loaded, "event")}, ${count(all)} in all,`, columns]
      : isPartial
        ? [`The first ${count(loaded)} of ${counted(all, "event")}`, Math.max(totals.bookmakers, columns)]
        : [isFiltered ? `${count(shown)} of ${counted(all, "event")}` : counted(all, "event"), columns];
    const [sees, now] = moment.asOf() === null ? ["sees", "now"] : ["saw", "then"];
    setText(summary, loaded
      ? `${some} at ${counted(books, "bookmaker")}, as a client with a ${at.world === "live" ? "production" : "sandbox"} key ${sees} them`
      : `No prices${at.market ? ` of ${words(at.market)}` : ""} in ${at.regions.split(",").join(", ")} ${now}`);
  }

  /** Shows another moment. */
  function turnTo() {
    const asOf = moment.asOf();
    past.hidden = asOf === null;
    if (asOf !== null) setText(past, `Not current: the board as it was on ${written(asOf * 1000)}. Choose Now for the current prices.`);
    showConnection();
    Object.assign(state, asOf === null ? {} : { lines: new Map(), first: new Map(), stale: new Set() });
    refresh(false).catch((error) => setText(summary, error.message));
    readMoments().catch(() => {});
    if (asOf === null) readHour().then(() => draw(false)).catch(() => {});
  }

  function turn(rest) {
    const before = state.at;
    const at = chosen(rest);
    store(at);
    const isOther = before.world !== at.world || before.sport !== at.sport;
    if (isOther) {
      [markets, state.titles, state.stale] = [[], new Map(), new Set()];
      filters.reset();
      moment.reset();
      past.hidden = true;
    }
    if (before.world !== at.world) live.turn();
    [pages, totals, isBehind, isHourBehind] = [1, { events: 0, bookmakers: 0 }, true, true];
    Object.assign(state, empty(), { at });
    table.reset();
    only.hidden = true;
    only.dataset.text = "";
    setText(summary, "…");
    controls.show(at, markets);
    showConnection();
  }

  /** Reads the prices again; one reading at a time. */
  async function refresh(flashes = true) {
    if (isReading) {
      isAskedAgain = true;
      return;
    }
    isReading = true;
    try {
      do {
        isAskedAgain = false;
        await readPrices(flashes);
      } while (isAskedAgain && !isClosed);
    } catch (error) {
      isBehind = true;
      throw error;
    } finally {
      isReading = false;
    }
  }

  async function readPrices(flashes) {
    const [asked, asOf] = [state.at, moment.asOf()];
    const isOther = () => isClosed || asked !== state.at || asOf !== moment.asOf();
    if (!asked.market) return;
    isBehind = false;
    // A publication may be announced before the page has read anything.
    if (!state.titles.size) await readTitles();
    const { all, hasMore } = await records();
    if (isOther()) return again();
    const groups = grouped(all, asked.format);
    const ids = [...groups.keys()];
    const counted = hasMore ? (await view(`/api/totals?${query()}`)).document : totals;
    const named = new Map((await ofEvents("events", ids)).map((event) => [event.id, event]));
    const running = [...named.values()].filter(({ status }) => status === "live").map(({ id }) => id);
    const scores = new Map((await ofEvents("scores", running)).map((score) => [score.event_id, score]));
    const best = bestPrices(await ofEvents("best", ids, query()));
    if (isOther()) return again();
    const books = [...new Set(all.map(({ bookmaker }) => bookmaker))].sort();
    Object.assign(state, { groups, named, scores, best, books });
    [isPartial, totals] = [hasMore, counted];
    filters.offer([...new Set([...named.values()].map((event) => event.title ?? event.competition))].sort(), books.map((book) => [book, name(book)]));
    draw(flashes && asOf === null);
    tip.refresh();
    more.hidden = !hasMore;
  }

  /** What was read is of another view than the one that is shown now. */
  function again() {
    isAskedAgain = true;
  }

  async function readTitles() {
    const { world } = state.at;
    const { document } = await view(`/api/books?world=${world}`);
    if (world === state.at.world) state.titles = titlesOf(document);
  }

  async function readHour() {
    const { at } = state;
    if (moment.asOf() !== null || !at.market) return;
    const { document } = await view(`/api/sparklines?world=${at.world}&sport=${at.sport}&market=${at.market}&odds_format=${at.format}`);
    if (at !== state.at || moment.asOf() !== null) return;
    isHourBehind = false;
    state.lines = new Map(Object.entries(document.events));
    state.first = new Map([...state.lines].map(([id, line]) => [id, firstOf(line, at.format)]));
  }

  async function readMoments() {
    const { at } = state;
    const { document } = await view(`/api/moments?world=${at.world}&sport=${at.sport}${timed()}`);
    if (at === state.at) moment.offer(document);
  }

  async function look(number) {
    const asked = state.at;
    const isOther = () => isClosed || asked !== state.at;
    if (!public_address) await readStatus();
    simulated.hidden = !(isLiveSimulated && asked.world === "live");
    if (number % MARKETS_EVERY === 0) {
      const priced = await view(`/api/markets?world=${asked.world}&sport=${asked.sport}`);
      await readTitles();
      if (isOther()) return;
      if (String(markets) !== String(priced.document)) {
        markets = priced.document;
        controls.show(asked, markets);
      }
    }
    if (number % SOURCES_EVERY === 0 && moment.asOf() === null) {
      const { sources } = await command("feeds", { world: asked.world, stale: true });
      if (isOther()) return;
      state.stale = new Set(sources.filter(({ sport }) => sport === asked.sport).map(({ bookmaker }) => bookmaker));
    }
    if (!asked.market) return chooseMarket();
    if (isBehind || (number % PRICES_EVERY === 0 && moment.asOf() === null)) await refresh();
    if (isOther()) return;
    if (number % MOMENTS_EVERY === 0 && moment.asOf() === null) await readMoments();
    if ((number % SPARKLINES_EVERY === 0 || isHourBehind) && state.groups.size && moment.asOf() === null) {
      await readHour();
      if (!isOther()) draw(false);
    }
  }

  /** Goes on to the first market that has prices; without any, to the one that the page begins with. */
  function chooseMarket() {
    const { at } = state;
    const market = FIRST_MARKETS.find((market) => markets.includes(market)) ?? markets[0] ?? FIRST_MARKETS[0];
    history.replaceState(null, "", address({ ...at, market }));
    turn([at.world, at.sport, market, at.format, at.regions, at.event]);
  }

  /** Neither changes while a server runs. */
  async function readStatus() {
    const { server, worlds } = await command("status");
    public_address = `${server.tls ? "https" : "http"}://${server.address}`;
    isLiveSimulated = worlds.live.simulated;
  }

  function close() {
    isClosed = true;
    live.close();
    tip.close();
  }

  turn(rest);
  return { look, turn, close };
}
