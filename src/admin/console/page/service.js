// Service: maintenance and backup.

import { dialog, field, text } from "./dialog.js";
import { bytes, count, h, notify, setText, time } from "./dom.js";
import { command } from "./server.js";

const LOOK_EVERY = 2;
const SPANS = [["", "until it is ended"], [900, "for 15 minutes"], [3600, "for 1 hour"], [14_400, "for 4 hours"]];

export function service(root) {
  const state = h("p", {});
  const begin = h("button", { type: "button", onclick: beginMaintenance }, "Begin maintenance");
  const end = h("button", { type: "button", class: "primary", hidden: true, onclick: endMaintenance }, "End maintenance");
  const backup = h("button", { type: "button", onclick: makeBackup }, "Make a backup");
  const progress = h("p", { role: "status" });
  root.append(
    h("h1", {}, "Service"),
    h("div", { class: "worlds" },
      h("section", { class: "card" }, h("header", {}, h("h2", {}, "Maintenance")),
        h("p", { class: "soft" }, "Clients get 503 with Retry-After for everything but the status. Feeds go on."), state, begin, end),
      h("section", { class: "card" }, h("header", {}, h("h2", {}, "Backup")),
        h("p", { class: "soft" }, "A copy of the data file as of one moment, written and verified by the server while it runs. It contains no secret."), progress, backup)));

  function beginMaintenance() {
    const span = h("select", { name: "span" }, SPANS.map(([value, label]) => h("option", { value }, label)));
    dialog("Begin maintenance?", [h("p", {}, "Clients are refused at once."), field("It lasts", span)], "Begin maintenance", async (form) => {
      await command("maintenance-on", { for_s: form.span.value ? Number(form.span.value) : null });
      await look(0);
    }, "danger");
  }

  async function endMaintenance() {
    await command("maintenance-off");
    notify("Maintenance ended");
    await look(0);
  }

  function makeBackup() {
    const name = `oddsbox-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.redb`;
    dialog("Make a backup", [field("File name", text("file", { required: true, value: name, pattern: "[^\\/]+" }), "In the directory backups of the data directory. Copy it to another machine.")], "Make the backup", async (form) => {
      const made = await command("backup", { file: form.file.value.trim() });
      notify(`Backup of ${count(made.records)} records, ${bytes(made.bytes)}, written to ${made.file}`);
    });
  }

  async function look(number) {
    if (number % LOOK_EVERY !== 0) return;
    const { maintenance } = await command("status");
    begin.hidden = Boolean(maintenance);
    end.hidden = !maintenance;
    setText(state, maintenance ? `In maintenance since ${time(maintenance.since)}${maintenance.until ? `, until ${time(maintenance.until)}` : ""}.` : "Not in maintenance.");
    const { under_way, rows_done, rows_total } = await command("progress");
    setText(progress, under_way ? `${under_way}: ${count(rows_done)} of ${count(rows_total)} rows` : "");
  }

  return { look };
}
