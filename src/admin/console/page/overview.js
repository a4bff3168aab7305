// Overview: how the service is, what it answered in the last hour, and what each world holds.

import { bytes, count, counted, fact, h, redraw, seconds, setText, short, time } from "./dom.js";
import { plot } from "./plot.js";
import { command, view } from "./server.js";

const HISTORY_EVERY = 10;
const SPORTS_EVERY = 5;

const rate = (value) => (value >= 100 ? short(Math.round(value)) : value.toFixed(1));
const millis = (value) => (value >= 100 ? `${Math.round(value)} ms` : `${value.toFixed(value < 1 ? 2 : 1)} ms`);

function world(title) {
  const status = h("span", { class: "state" }, "–");
  const rows = h("tbody");
  const summary = h("p", { class: "soft" }, "–");
  const heads = ["Sport", "Events", "Books", "Active"];
  const table = h("table", {}, h("thead", {}, h("tr", {}, heads.map((name, at) => h("th", { scope: "col", class: at === 1 || at === 2 ? "number" : null }, name)))), rows);
  return { status, rows, summary, section: h("section", { class: "card" }, h("header", {}, h("h2", {}, title), status), summary, table) };
}

export function overview(root) {
  const facts = Object.fromEntries(
    [["status", "Status"], ["rate", "Requests a second"], ["requests", "Requests since start"], ["connections", "Connections"],
      ["uptime", "Up"], ["keys", "Active keys"], ["file", "File"], ["version", "Version"], ["cluster", "Cluster"]].map(([key, name]) => [key, fact(name)]));
  const plots = {
    rate: plot("Requests a second", [{ name: "requests", tone: "a" }], rate),
    latency: plot("Latency", [{ name: "p50", tone: "a" }, { name: "p99", tone: "b" }], millis),
    errors: plot("Errors a minute", [{ name: "failed", tone: "bad" }, { name: "refused", tone: "b" }], short),
  };
  facts.cluster.item.hidden = true;
  const worlds = { live: world("Live"), sandbox: world("Sandbox") };
  const maintenance = h("p", { class: "banner warn", hidden: true });
  root.append(
    h("h1", {}, "Overview"), maintenance,
    h("dl", { class: "facts" }, Object.values(facts).map(({ item }) => item)),
    h("div", { class: "plots" }, Object.values(plots).map(({ figure }) => figure)),
    h("div", { class: "worlds" }, worlds.live.section, worlds.sandbox.section));

  function showStatus(status) {
    const server = status.server;
    setText(facts.status.value, status.writable ? status.status : `${status.status}, the file takes no changes`);
    setText(facts.rate.value, rate(server.requests_per_second));
    setText(facts.requests.value, count(server.requests));
    setText(facts.connections.value, count(server.connections));
    setText(facts.uptime.value, seconds(server.uptime_s));
    setText(facts.keys.value, count(status.keys.active));
    setText(facts.file.value, bytes(status.file_bytes));
    setText(facts.version.value, status.version);
    facts.cluster.item.hidden = !server.cluster;
    if (server.cluster) setText(facts.cluster.value, `${server.cluster.node}, ${server.cluster.standing}`);
    const span = status.maintenance;
    maintenance.hidden = !span;
    if (span) setText(maintenance, `Closed for maintenance since ${time(span.since)}${span.until ? `, until ${time(span.until)}` : ""}.`);
    for (const [name, shown] of Object.entries(worlds)) {
      const held = status.worlds[name];
      const isInvented = name === "live" && held.simulated;
      shown.status.className = `state ${isInvented && held.status === "ok" ? "warn" : { ok: "good", degraded: "warn" }[held.status] ?? "bad"}`;
      setText(shown.status, isInvented ? `simulated, ${held.status}` : held.status);
      setText(shown.summary, `${counted(held.records, "price")} of ${counted(held.events, "event")} from ${counted(held.sources, "source")}, ${held.sources_stale ? `${count(held.sources_stale)} of them stale` : "none stale"}`);
    }
  }

  async function showSports(name) {
    const { document, isNew } = await view(`/api/sports?world=${name}`);
    if (!isNew && worlds[name].rows.firstChild) return;
    redraw(worlds[name].rows, document.sports.map((sport) => h("tr", {},
      h("th", { scope: "row" }, h("a", { href: `#/board/${name}/${sport.key}` }, sport.title)),
      h("td", { class: "number" }, count(sport.events)),
      h("td", { class: "number" }, count(sport.books)),
      h("td", {}, h("span", { class: `state ${sport.active ? "good" : ""}` }, sport.active ? "active" : "inactive")))));
  }

  async function showHistory() {
    const { document } = await view("/api/history");
    const step = document.step_s;
    const now = document.at_s.at(-1) ?? Date.now() / 1000;
    // Always the whole hour: what came before the start is not known.
    const steps = 3600 / step;
    const times = Array.from({ length: steps }, (_, at) => (now - (steps - 1 - at) * step) * 1000);
    const found = new Map(document.at_s.map((at, number) => [Math.round((now - at) / step), number]));
    const spread = (values) => times.map((_, at) => values[found.get(steps - 1 - at)] ?? null);
    plots.rate.draw(times, [spread(document.requests_per_s)]);
    plots.latency.draw(times, [spread(document.p50_ms), spread(document.p99_ms)]);
    // A minute's worth up to each step.
    const summed = (values) => values.map((_, at) => values.slice(Math.max(0, at + 1 - 60 / step), at + 1).reduce((sum, value) => sum + value, 0));
    plots.errors.draw(times, [spread(summed(document.failed)), spread(summed(document.refused))]);
  }

  return {
    async look(number) {
      showStatus(await command("status"));
      if (number % SPORTS_EVERY === 0) await Promise.all(Object.keys(worlds).map(showSports));
      if (number % HISTORY_EVERY === 0) await showHistory();
    },
  };
}
