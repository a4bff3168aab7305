// Feeds: what each feed brought and what of it was turned away, and how fresh each source is.

import { count, h, seconds, time, words } from "./dom.js";
import { strip } from "./plot.js";
import { command, view } from "./server.js";

const LOOK_EVERY = 5;

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
  if (upstream.used_up_until) parts.push("used up upstream");
  if (upstream.next_poll) parts.push(`next poll ${time(upstream.next_poll)}`);
  return parts.join(", ") || "\u2013";
}

function feedRow(feed) {
  return h("tr", {},
    h("th", { scope: "row" }, feed.name, " ", h("span", { class: "soft" }, feed.kind)),
    h("td", {}, feed.world),
    h("td", {}, feed.last_good ? time(feed.last_good) : "never"),
    number(count(feed.accepted)),
    number(count(feed.rejected)),
    h("td", { class: "wrap" }, reasons(feed.rejected_by_reason), feed.last_failure ? h("div", { class: "bad" }, `${time(feed.last_failure.at)}: ${feed.last_failure.why}`) : null),
    h("td", { class: "wrap" }, budget(feed.upstream)));
}

function sourceRow(source, strips, titles) {
  const ages = strips.ages_s[`${source.world}/${source.sport}/${source.bookmaker}`] ?? [];
  const minutes = Math.round((strips.samples_max * strips.sample_s) / 60);
  const worst = Math.max(0, ...ages);
  const label = `Age over the last ${minutes} minutes, at most ${seconds(worst)}`;
  return h("tr", { class: source.stale ? "stale" : null },
    h("th", { scope: "row", title: source.bookmaker }, titles.get(source.bookmaker) ?? source.bookmaker),
    h("td", { class: "number" }, source.stale ? h("span", { class: "state bad" }, `stale ${seconds(source.age_s)}`) : seconds(source.age_s)),
    h("td", { class: "strip-cell", title: label }, strip(ages, source.stale_after_s, strips.samples_max, label)),
    number(source.latency_ms ? `${count(source.latency_ms)} ms` : "\u2013"));
}

async function titlesOf(world) {
  const { document } = await view(`/api/books?world=${world}`);
  return new Map(document.map(({ key, title }) => [key, title]));
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

  function showSources(all, strips, titles) {
    const groups = new Map();
    for (const source of all) {
      const key = `${source.world} · ${words(source.sport)}`;
      groups.set(key, [...(groups.get(key) ?? []), source]);
    }
    const tables = [...groups].map(([name, list]) => h("section", { class: "card" },
      h("header", {}, h("h3", {}, name), h("span", { class: "soft" }, `${list.filter(({ stale }) => stale).length} of ${list.length} stale`)),
      h("table", {}, h("thead", {}, h("tr", {}, column("Bookmaker"), column("Age", "number"), column("Last hour"), column("Latency", "number"))),
        h("tbody", {}, list.map((source) => sourceRow(source, strips, titles[source.world]))))));
    sources.replaceChildren(...(tables.length ? tables : [h("p", { class: "soft" }, "No source has been read yet.")]));
  }

  return {
    async look(number) {
      if (number % LOOK_EVERY !== 0) return;
      const { feeds, sources: all } = await command("feeds");
      const titles = { live: await titlesOf("live"), sandbox: await titlesOf("sandbox") };
      rows.replaceChildren(...(feeds?.length ? feeds.map(feedRow) : [h("tr", {}, h("td", { colspan: "7", class: "soft" }, "Nothing has come in since the start."))]));
      showSources(all, (await view("/api/strips")).document, titles);
    },
  };
}
