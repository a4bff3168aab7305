// Feeds: what each feed brought and what of it was turned away, and how fresh each source is.

import { count, h, seconds, time, words } from "./dom.js";
import { strip } from "./plot.js";
import { command, view } from "./server.js";

const LOOK_EVERY = 5;
const SAMPLES = 120;

const column = (name, kind) => h("th", { scope: "col", class: kind ?? null }, name);
const number = (value) => h("td", { class: "number" }, value);

function reasons(rejected) {
  const list = Object.entries(rejected).sort((one, other) => other[1] - one[1]);
  return list.length ? list.map(([reason, times]) => `${words(reason)} ${count(times)}`).join(", ") : "";
}

function budget(upstream) {
  if (!upstream) return "\u2013";
  const parts = [];
  if (upstream.remaining !== null) parts.push(`${count(upstream.remaining)} left upstream`);
  if (upstream.budget_left !== null) parts.push(`${count(upstream.budget_left)} left of today's budget`);
  if (upstream.next_poll) parts.push(`next poll ${time(upstream.next_poll)}`);
  return parts.join(", ") || "\u2013";
}

function feedRow(feed) {
  const sum = Object.values(feed.rejected).reduce((all, times) => all + times, 0);
  return h("tr", {},
    h("th", { scope: "row" }, feed.name, " ", h("span", { class: "soft" }, feed.kind)),
    h("td", {}, feed.world),
    h("td", {}, feed.last_good ? time(feed.last_good) : "never"),
    number(count(feed.accepted)),
    number(count(sum)),
    h("td", { class: "wrap" }, reasons(feed.rejected), feed.last_failure ? h("div", { class: "bad" }, `${time(feed.last_failure.at)}: ${feed.last_failure.why}`) : null),
    h("td", { class: "wrap" }, budget(feed.upstream)));
}

function sourceRow(source, sample) {
  const minutes = Math.round((SAMPLES * sample) / 60);
  const worst = Math.max(0, ...source.ages_s);
  const label = `Age over the last ${minutes} minutes, at most ${seconds(worst)}`;
  return h("tr", { class: source.stale ? "stale" : null },
    h("th", { scope: "row", title: source.bookmaker }, source.title || source.bookmaker),
    h("td", { class: "number" }, source.stale ? h("span", { class: "state bad" }, `stale ${seconds(source.age_s)}`) : seconds(source.age_s)),
    h("td", { class: "strip-cell", title: label }, strip(source.ages_s, source.stale_after_s, SAMPLES, label)),
    number(source.latency_ms ? `${count(source.latency_ms)} ms` : "\u2013"));
}

export function feeds(root) {
  const rows = h("tbody");
  const sources = h("div", { class: "sources" });
  root.append(
    h("h1", {}, "Feeds"),
    h("section", { class: "card" },
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Feeds" },
        h("table", {}, h("thead", {}, h("tr", {}, column("Feed"), column("World"), column("Last good"), column("Accepted", "number"), column("Rejected", "number"), column("Why"), column("Upstream"))), rows))),
    h("h2", {}, "Sources"),
    h("p", { class: "soft legend" }, "How long ago each bookmaker was last read well, over the last hour: ",
      h("span", { class: "swatch good" }, "fresh"), " ", h("span", { class: "swatch warn" }, "ageing"), " ", h("span", { class: "swatch bad" }, "stale")),
    sources);

  function showSources({ sample_s: sample, sources: all }) {
    const groups = new Map();
    for (const source of all) {
      const key = `${source.world} · ${words(source.sport)}`;
      groups.set(key, [...(groups.get(key) ?? []), source]);
    }
    const tables = [...groups].map(([name, list]) => h("section", { class: "card" },
      h("header", {}, h("h3", {}, name), h("span", { class: "soft" }, `${list.filter(({ stale }) => stale).length} of ${list.length} stale`)),
      h("table", {}, h("thead", {}, h("tr", {}, column("Bookmaker"), column("Age", "number"), column("Last hour"), column("Latency", "number"))),
        h("tbody", {}, list.map((source) => sourceRow(source, sample))))));
    sources.replaceChildren(...(tables.length ? tables : [h("p", { class: "soft" }, "No source has been read yet.")]));
  }

  return {
    async look(number) {
      if (number % LOOK_EVERY !== 0) return;
      const [feeds, { document }] = [await command("feeds"), await view("/api/sources")];
      rows.replaceChildren(...(feeds.length ? feeds.map(feedRow) : [h("tr", {}, h("td", { colspan: "7", class: "soft" }, "Nothing has come in since the start."))]));
      showSources(document);
    },
  };
}
