// Cluster: where this node stands, and every node of its cluster as it reported itself last.

import { count, fact, h, seconds, setText, stackedCell, stackedRow, stackedTable, time } from "./dom.js";
import { command } from "./server.js";

/** Nodes report themselves every second: after this, what is shown of them is old. */
const CONTACT_LATE_MS = 3000;

const column = (name, kind) => h("th", { scope: "col", class: kind ?? null }, name);
/** Tenths count in a lease of a few seconds. */
const brief = (ms) => (ms < 60_000 ? `${(Math.floor(ms / 100) / 10).toFixed(1)} s` : seconds(ms / 1000));
const tone = (standing) => ({ following: "good", "cut off": "warn", stalled: "warn" }[standing] ?? "bad");
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

function row(node, own) {
  return stackedRow({},
    h("th", { scope: "row", role: "rowheader" }, node.name, node.name === own ? h("span", { class: "soft" }, " this node") : null),
    stackedCell("Lease left", {}, node.lease_ms ? brief(node.lease_ms) : h("span", { class: "state bad" }, "ended")),
    stackedCell("Position", {}, node.position),
    stackedCell("Behind", { class: "number" }, node.behind_ms ? brief(node.behind_ms) : "\u2013"),
    stackedCell("Polls", {}, node.on_duty ? h("span", { class: "state good" }, "yes") : "\u2013"),
    stackedCell("When cut off", {}, node.serves_when_cut_off ? "serves" : "refuses"),
    stackedCell("Version", {}, node.version ?? "\u2013"),
    stackedCell("Address", {}, node.address ?? "\u2013"),
    stackedCell("Started", {}, node.started ? time(node.started) : "\u2013"));
}

export function cluster(root) {
  const facts = Object.fromEntries(
    [["node", "This node"], ["standing", "Standing"], ["contact", "Last contact with the engine"], ["position", "Position"], ["last", "Last entry of the log"],
      ["leases", "Nodes with a lease"]].map(([key, name]) => [key, fact(name)]));
  const standing = h("span", { class: "state" });
  const detail = h("p", { class: "banner warn", role: "status", hidden: true });
  const late = h("p", { class: "soft", role: "status" });
  const rows = h("tbody");
  const shown = h("div", { hidden: true },
    h("dl", { class: "facts" }, Object.values(facts).map(({ item }) => item)), late,
    h("section", { class: "card" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Nodes" },
      stackedTable([column("Node"), column("Lease left"), column("Position"), column("Behind", "number"), column("Polls"), column("When cut off"), column("Version"), column("Address"), column("Started")], rows))));
  facts.standing.value.replaceChildren(standing);
  root.append(h("h1", {}, "Cluster"), detail, shown);

  function show(answer) {
    standing.className = `state ${tone(answer.standing)}`;
    setText(standing, answer.standing);
    detail.hidden = !answer.detail;
    if (answer.detail) setText(detail, sentence(answer.detail));
    setText(facts.node.value, answer.node);
    setText(facts.contact.value, answer.contact_ms === null ? "never" : `${brief(answer.contact_ms)} ago`);
    setText(facts.position.value, answer.position);
    setText(facts.last.value, answer.last ?? "\u2013");
    setText(facts.leases.value, count(answer.nodes.filter(({ lease_ms }) => lease_ms > 0).length));
    setText(late, answer.contact_ms === null ? "The engine has not answered yet." : answer.contact_ms > CONTACT_LATE_MS ? "The nodes are shown as of the last contact." : "");
    rows.replaceChildren(...answer.nodes.map((node) => row(node, answer.node)));
    shown.hidden = false;
  }

  return {
    async look() {
      try {
        show(await command("cluster"));
      } catch (error) {
        if (error.code !== "refused") throw error;
        // A single node, whose navigation has no link to here.
        shown.hidden = true;
        detail.hidden = false;
        setText(detail, sentence(error.message));
      }
    },
  };
}
