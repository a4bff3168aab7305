// Feeds: what each feed brought and what was rejected, the tokens of feeders, and how fresh each source is.

import { dialog, done, field, showSecret, text, unconfirmed } from "./dialog.js";
import { count, counted, h, interval, redraw, seconds, stackedCell, stackedRow, stackedTable, time, titlesOf, words } from "./dom.js";
import { strip } from "./plot.js";
import { command, view } from "./server.js";

const LOOK_EVERY = 5;

const column = (name, kind) => h("th", { scope: "col", class: kind ?? null }, name);
const cell = stackedCell;
const number = (label, value) => cell(label, { class: "number" }, value);
const rowHead = (...children) => h("th", { scope: "row", role: "rowheader" }, ...children);
const emptyRow = (columns, text) => stackedRow({}, cell(null, { colspan: columns, class: "soft" }, text));
/** A table in a card. */
const table = (label, heads, body) => h("section", { class: "card" },
  h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, stackedTable(heads, body)));

function feedRow(feed) {
  return stackedRow({},
    rowHead(feed.name, feed.kind === feed.name ? null : h("span", { class: "soft" }, ` ${feed.kind}`)),
    cell("World", {}, feed.world),
    cell("Last good", {}, feed.last_good ? time(feed.last_good) : "never"),
    number("Accepted", count(feed.accepted)),
    number("Rejected", count(feed.rejected)),
    cell("Last failure", { class: "wrap" }, feed.last_failure ? h("span", { class: "bad" }, `${time(feed.last_failure.at)}: ${feed.last_failure.why}`) : "\u2013"));
}

/** What the credits of a day are spent on. */
const purposes = ({ odds_per_day, event_odds_per_day, scores_per_day }) => [["odds", odds_per_day], ["event odds", event_odds_per_day], ["scores", scores_per_day]]
  .filter(([, credits]) => credits > 0).map(([what, credits]) => `${what} ${count(credits)}`).join(", ");
/** What makes the intervals longer than configured. */
const LIMITS = { budget: "own budget", upstream: "what is left" };

/** What is left of a polled feed's credits, and how they are spent. */
function creditsRow({ name, upstream }) {
  const { plan } = upstream;
  const budget = upstream.budget_per_day === null ? "\u2013" : `${count(upstream.budget_left ?? 0)} of ${count(upstream.budget_per_day)}`;
  const left = upstream.remaining === null ? "not reported" : count(upstream.remaining);
  return stackedRow({},
    rowHead(name),
    cell("Left upstream", { class: "number" }, left, upstream.used_up_until ? h("span", { class: "state bad" }, "used up") : null),
    number("Credits a day", plan ? count(plan.credits_per_day) : "\u2013"),
    number("Interval", plan ? interval(plan.interval_s) : "\u2013"),
    cell("Resets", {}, plan?.resets ? time(plan.resets) : "\u2013"),
    number("Own budget today", budget),
    cell("Next poll", {}, upstream.next_poll ? time(upstream.next_poll) : "\u2013"),
    cell("Spent on", {}, plan ? purposes(plan) : "\u2013"),
    cell("Limited by", {}, plan ? LIMITS[plan.limited_by] ?? "nothing" : "\u2013"));
}

/** A competition or a market of it that is configured and not polled now. */
function skippedRow(name, { competition, market, why, until }) {
  return stackedRow({},
    rowHead(name),
    cell("Competition", {}, competition),
    cell("Market", {}, market ?? "all"),
    cell("Why", { class: "wrap" }, why),
    cell("Until", {}, time(until)));
}

/** A reason for which messages of a feed were rejected, with the last of them. */
function reasonItem(feed, reason, times, open) {
  const id = `${feed.world} ${feed.name} ${reason}`;
  const messages = (feed.rejected_messages[reason] ?? []).toReversed();
  const title = [h("b", {}, words(reason)), " ", h("span", { class: "soft" }, count(times))];
  if (!messages.length) return h("p", { class: "reason" }, title);
  // Only messages of a payload have no text and are counted by event; a line that is too long is not kept.
  const place = (line, text) => (line ? `, ${text === null && reason !== "line_too_long" ? "event" : "line"} ${count(line)}` : "");
  const message = ({ at, line, detail, text }) => h("li", {},
    h("span", { class: "soft" }, `${time(at)}${place(line, text)}: `), detail, text === null ? null : h("code", {}, text));
  return h("details", { class: "reason", open: open.has(id), ontoggle: (event) => { event.target.open ? open.add(id) : open.delete(id); } },
    h("summary", { "data-id": id }, title), h("ul", {}, messages.map(message)));
}

function rejectionCard(feed, open) {
  const reasons = Object.entries(feed.rejected_by_reason).sort((one, other) => other[1] - one[1]);
  return h("section", { class: "card" },
    h("header", {}, h("h3", {}, feed.name), h("span", { class: "soft" }, `${counted(feed.rejected, "message")}, ${feed.world}`)),
    reasons.map(([reason, times]) => reasonItem(feed, reason, times, open)));
}

function sourceRow(source, strips, titles) {
  const ages = strips.ages_s[`${source.world}/${source.sport}/${source.bookmaker}`] ?? [];
  const minutes = Math.round((strips.samples_max * strips.sample_s) / 60);
  const worst = Math.max(0, ...ages);
  const name = titles.get(source.bookmaker);
  const label = `Age over the last ${minutes} minutes, at most ${seconds(worst)}`;
  return h("tr", { class: source.stale ? "stale" : null },
    h("th", { scope: "row", title: source.bookmaker }, name?.title ?? source.bookmaker, name?.key ? h("small", {}, name.key) : null),
    h("td", { class: "number" }, source.stale ? h("span", { class: "state bad" }, `stale ${seconds(source.age_s)}`) : seconds(source.age_s)),
    h("td", { class: "strip-cell", title: label }, strip(ages, source.stale_after_s, strips.samples_max, label)),
    h("td", { class: "number" }, source.latency_ms ? `${count(source.latency_ms)} ms` : "\u2013"));
}

export function feeds(root) {
  const rows = h("tbody");
  const sources = h("div", { class: "sources" });
  const tokens = h("tbody");
  const credits = h("tbody");
  const creditsPart = h("div", { hidden: true },
    h("div", { class: "title section" }, h("h2", {}, "Credits")),
    table("Credits", [column("Feed"), column("Left upstream", "number"), column("Credits a day", "number"), column("Interval", "number"), column("Resets"), column("Own budget today", "number"), column("Next poll"), column("Spent on"), column("Limited by")], credits));
  const skipped = h("tbody");
  const skippedPart = h("div", { hidden: true },
    h("div", { class: "title section" }, h("h2", {}, "Not polled")),
    table("Not polled", [column("Feed"), column("Competition"), column("Market"), column("Why"), column("Until")], skipped));
  const rejections = h("div", { class: "rejections" });
  /** The reasons whose messages are shown. */
  const open = new Set();
  let listed = "";
  let rejected = "";
  root.append(
    h("h1", {}, "Feeds"),
    table("Feeds", [column("Feed"), column("World"), column("Last good"), column("Accepted", "number"), column("Rejected", "number"), column("Last failure")], rows),
    creditsPart,
    skippedPart,
    h("h2", {}, "Rejections"), rejections,
    h("div", { class: "title section" }, h("h2", {}, "Feeders"), h("button", { type: "button", onclick: issue }, "Issue a token")),
    table("Feeders", [column("Feeder"), column("World"), column("Token"), column("Since"), column("State"), column("Actions", "row-actions")], tokens),
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
      const { unconfirmed: nodes } = await command("feeds-token-revoke", { name: token.name });
      done(`Token of ${token.name} revoked`, unconfirmed(nodes, `run oddsbox feeds token ${token.name} --revoke`));
    }, "danger");
  }

  function showTokens(all) {
    const state = JSON.stringify(all);
    if (state === listed) return;
    listed = state;
    const row = (token) => stackedRow({},
      rowHead(token.name), cell("World", {}, token.world), cell("Token", {}, h("code", {}, token.hint)), cell("Since", {}, time(token.created)),
      cell("State", {}, h("span", { class: `state ${token.status === "active" ? "good" : "bad"}` }, token.status)),
      cell("Actions", { class: "row-actions" }, token.status === "active" ? h("button", { type: "button", class: "quiet danger", "aria-label": `Revoke ${token.name}`, onclick: () => revoke(token) }, "Revoke") : null));
    redraw(tokens, all.length ? all.map(row) : [emptyRow(6, "No feeder has a token.")]);
  }

  function showRejections(all) {
    const some = all.filter(({ rejected }) => rejected > 0);
    const state = JSON.stringify(some.map(({ world, name, rejected_by_reason, rejected_messages }) => [world, name, rejected_by_reason, rejected_messages]));
    if (state === rejected && rejections.firstChild) return;
    rejected = state;
    redraw(rejections, some.length ? some.map((feed) => rejectionCard(feed, open)) : [h("p", { class: "soft" }, "Nothing was rejected since the start.")]);
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
      const titles = {};
      for (const world of ["live", "sandbox"]) titles[world] = titlesOf((await view(`/api/books?world=${world}`)).document);
      rows.replaceChildren(...(feeds?.length ? feeds.map(feedRow) : [emptyRow(6, "Nothing has come in since the start.")]));
      const polled = (feeds ?? []).filter(({ upstream }) => upstream);
      creditsPart.hidden = !polled.length;
      credits.replaceChildren(...polled.map(creditsRow));
      const missing = polled.flatMap(({ name, upstream }) => upstream.skipped.map((skip) => skippedRow(name, skip)));
      skippedPart.hidden = !missing.length;
      skipped.replaceChildren(...missing);
      showRejections(feeds ?? []);
      showSources(all, (await view("/api/strips")).document, titles);
    },
  };
}
