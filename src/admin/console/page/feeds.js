// Feeds: what each feed brought and what was rejected, the tokens of feeders, and how fresh each source is.

import { dialog, field, showSecret, text } from "./dialog.js";
import { count, h, notify, seconds, time, words } from "./dom.js";
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
  const shared = (title) => document.filter((other) => other.title === title).length > 1;
  return new Map(document.map(({ key, title }) => [key, shared(title) ? `${title} (${key})` : title]));
}

export function feeds(root) {
  const rows = h("tbody");
  const sources = h("div", { class: "sources" });
  const tokens = h("tbody");
  let listed = "";
  root.append(
    h("h1", {}, "Feeds"),
    h("section", { class: "card" },
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Feeds" },
        h("table", {}, h("thead", {}, h("tr", {}, column("Feed"), column("World"), column("Last good"), column("Accepted", "number"), column("Rejected", "number"), column("Why"), column("Upstream"))), rows))),
    h("div", { class: "title section" }, h("h2", {}, "Feeders"), h("button", { type: "button", onclick: issue }, "Issue a token")),
    h("section", { class: "card" },
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Feeders" },
        h("table", {}, h("thead", {}, h("tr", {}, column("Feeder"), column("World"), column("Token"), column("Since"), column("State"), column("Actions"))), tokens))),
    h("h2", {}, "Sources"),
    h("p", { class: "soft legend" }, "How long ago each bookmaker was last read well, over the last hour: ",
      h("span", { class: "swatch good" }, "fresh"), " ", h("span", { class: "swatch warn" }, "ageing"), " ", h("span", { class: "swatch bad" }, "stale")),
    sources);

  function issue() {
    const world = h("select", { name: "world" }, ["live", "sandbox"].map((name) => h("option", { value: name }, name)));
    dialog("Issue a token", [
      field("Name", text("name", { required: true, maxlength: 40, pattern: "[A-Za-z0-9._\\-]+" }), "Letters, digits, dots, - and _."),
      field("World", world, "The feeder sends lines to this world only."),
    ], "Issue", async (form) => {
      const issued = await command("feeds-token", { name: form.name.value.trim(), world: form.world.value });
      showSecret(issued.token, `Token of ${issued.name}`);
    });
  }

  function revoke(token) {
    dialog(`Revoke the token of ${token.name}?`, [h("p", {}, "A request in progress ends with its next batch.")], "Revoke", async () => {
      await command("feeds-token-revoke", { name: token.name });
      notify(`Token of ${token.name} revoked`);
    }, "danger");
  }

  function showTokens(all) {
    const state = JSON.stringify(all);
    if (state === listed) return;
    listed = state;
    const row = (token) => h("tr", {},
      h("th", { scope: "row" }, token.name), h("td", {}, token.world), h("td", {}, h("code", {}, token.hint)), h("td", {}, time(token.created)),
      h("td", {}, h("span", { class: `state ${token.status === "active" ? "good" : "bad"}` }, token.status)),
      h("td", {}, token.status === "active" ? h("button", { type: "button", class: "quiet danger", "aria-label": `Revoke ${token.name}`, onclick: () => revoke(token) }, "Revoke") : null));
    tokens.replaceChildren(...(all.length ? all.map(row) : [h("tr", {}, h("td", { colspan: "6", class: "soft" }, "No feeder has a token."))]));
  }

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
      const { feeds, tokens: issued, sources: all } = await command("feeds");
      showTokens(issued ?? []);
      const titles = { live: await titlesOf("live"), sandbox: await titlesOf("sandbox") };
      rows.replaceChildren(...(feeds?.length ? feeds.map(feedRow) : [h("tr", {}, h("td", { colspan: "7", class: "soft" }, "Nothing has come in since the start."))]));
      showSources(all, (await view("/api/strips")).document, titles);
    },
  };
}
