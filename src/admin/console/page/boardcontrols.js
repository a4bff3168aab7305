// What the board shows: world, sport, market, format, regions, and at most one event. It is in the address.

import { choice, counted, h, words } from "./dom.js";
import { who } from "./server.js";

export const FORMATS = ["american", "decimal", "fractional"];
const STORED = "board";

export function chosen(rest) {
  const stored = JSON.parse(localStorage.getItem(STORED) ?? "{}");
  const sports = who().sports.map(({ key }) => key);
  const pick = (value, known, fallback) => (known.includes(value) ? value : fallback);
  const [world, sport, market, format, regions, event] = rest;
  const list = (regions ?? stored.regions ?? "us").split(",").filter((region) => who().regions.includes(region));
  return {
    world: pick(world ?? stored.world, ["live", "sandbox"], "live"),
    sport: pick(sport ?? stored.sport, sports, sports[0]),
    // Empty until the markets of the sport are known.
    market: (market ?? (sport ? null : stored.market))?.match(/^[a-z0-9_]+$/)?.[0] ?? "",
    format: pick(format ?? stored.format, FORMATS, "american"),
    regions: (list.length ? list : ["us"]).join(","),
    event: event ?? "",
  };
}

export const store = ({ world, sport, market, format, regions }) => localStorage.setItem(STORED, JSON.stringify({ world, sport, market, format, regions }));

export const address = (at) => `#/board/${at.world}/${at.sport}/${at.market || "-"}/${at.format}/${at.regions}${at.event ? `/${encodeURIComponent(at.event)}` : ""}`;

/** The buttons and lists; `show` draws them for what is chosen and the markets that have prices. */
export function makeControls() {
  const element = h("div", { class: "controls" });

  function show(at, markets) {
    const go = (change) => { location.hash = address({ ...at, event: "", ...change }); };
    const group = (label, buttons) => h("div", { class: "tabs", role: "group", "aria-label": label }, buttons);
    const focused = document.activeElement?.dataset?.choice;
    const button = (kind, key, label, isOn, change) => {
      const made = choice(label, isOn, () => go(change));
      made.dataset.choice = `${kind} ${key}`;
      return made;
    };
    const keep = { event: at.event };
    const region = (key) => {
      const list = at.regions.split(",");
      const next = list.includes(key) ? list.filter((one) => one !== key) : who().regions.filter((one) => one === key || list.includes(one));
      return button("region", key, key, list.includes(key), { ...keep, regions: (next.length ? next : list).join(",") });
    };
    const listed = !at.market || markets.includes(at.market) ? markets : [at.market, ...markets];
    // An event can have hundreds of markets: those that are not featured are in a list.
    const [featured, others] = [true, false].map((is) => listed.filter((market) => who().markets.includes(market) === is));
    const option = (market) => h("option", { value: market, selected: market === at.market }, words(market));
    const more = h("select", { "aria-label": "Further markets", onchange: () => { if (more.value) go({ ...keep, market: more.value }); } },
      h("option", { value: "" }, counted(others.length, "further market")), others.map(option));
    more.dataset.choice = "market list";
    element.replaceChildren(...[
      group("World", ["live", "sandbox"].map((world) => button("world", world, world, world === at.world, { world }))),
      group("Sport", who().sports.map(({ key, title }) => button("sport", key, title, key === at.sport, { sport: key, market: "" }))),
      group("Market", featured.map((market) => button("market", market, words(market), market === at.market, { ...keep, market }))),
      others.length ? more : [],
      group("Regions", who().regions.map(region)),
      group("Format", FORMATS.map((format) => button("format", format, format, format === at.format, { ...keep, format }))),
    ].flat());
    if (focused) element.querySelector(`[data-choice="${focused}"]`)?.focus();
  }

  return { element, show };
}
