// Audit log: who did what and when, with filters and export.

import { count, h, setText, stackedCell, stackedRow, stackedTable, time } from "./dom.js";
import { command } from "./server.js";

const LOOK_EVERY = 5;
const ENTRIES_MAX = 1000;
const FIELDS = ["sequence", "at", "who", "action", "subject", "detail"];

const column = (name) => h("th", { scope: "col" }, name);
const quoted = (value) => `"${String(value).replaceAll('"', '""')}"`;
/** A leading formula character would be executed by a spreadsheet. */
const harmless = (value) => (/^[=+\-@\t\r]/.test(String(value)) ? `'${value}` : value);

function save(name, type, content) {
  const link = h("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function audit(root) {
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search the audit log", autocomplete: "off", oninput: show });
  const action = h("select", { "aria-label": "Action", onchange: show }, h("option", { value: "" }, "All actions"));
  const who = h("select", { "aria-label": "Who", onchange: show }, h("option", { value: "" }, "Everyone"));
  const summary = h("p", { class: "soft", role: "status" });
  const rows = h("tbody");
  let entries = [];
  root.append(
    h("div", { class: "title" }, h("h1", {}, "Audit log"),
      h("button", { type: "button", onclick: () => save("oddsbox-audit.csv", "text/csv", csv()) }, "Export CSV"),
      h("button", { type: "button", onclick: () => save("oddsbox-audit.json", "application/json", JSON.stringify(selected(), null, 2)) }, "Export JSON")),
    h("div", { class: "filters" }, search, action, who), summary,
    h("section", { class: "card" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Audit log" },
      stackedTable([column("Time"), column("Who"), column("Action"), column("Subject"), column("Detail")], rows))));

  const csv = () => [FIELDS.join(","), ...selected().map((entry) => FIELDS.map((name) => quoted(harmless(entry[name]))).join(","))].join("\r\n");

  function selected() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return entries.filter((entry) => {
      const text = FIELDS.map((name) => entry[name]).join(" ").toLowerCase();
      return (!action.value || entry.action === action.value) && (!who.value || entry.who === who.value) && words.every((word) => text.includes(word));
    });
  }

  function show() {
    const list = selected();
    rows.replaceChildren(...list.map((entry) => stackedRow({},
      stackedCell("Time", { title: entry.at }, time(entry.at)), stackedCell("Who", {}, entry.who), stackedCell("Action", {}, h("b", {}, entry.action)),
      stackedCell("Subject", { class: "wrap" }, entry.subject), stackedCell("Detail", { class: "wrap" }, entry.detail))));
    const whole = `${entries.length === ENTRIES_MAX ? "the last " : ""}${count(entries.length)} ${entries.length === 1 ? "entry" : "entries"}`;
    setText(summary, `${list.length === entries.length ? `${whole[0].toUpperCase()}${whole.slice(1)}` : `${count(list.length)} of ${whole}`}, newest first`);
  }

  function offer(select, first, values) {
    const before = select.value;
    select.replaceChildren(h("option", { value: "" }, first), ...[...new Set(values)].sort().map((value) => h("option", { value }, value)));
    select.value = values.includes(before) ? before : "";
  }

  return {
    async look(number) {
      if (number % LOOK_EVERY !== 0) return;
      const latest = (await command("audit-tail", { limit: ENTRIES_MAX })).reverse();
      if (entries.length && latest[0]?.sequence === entries[0]?.sequence) return;
      entries = latest;
      offer(action, "All actions", entries.map((entry) => entry.action));
      offer(who, "Everyone", entries.map((entry) => entry.who));
      show();
    },
  };
}
