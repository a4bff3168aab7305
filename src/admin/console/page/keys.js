// Keys: who may read, and how much of their limits they use.

import { dialog, done, field, showSecret, text, unconfirmed, whole } from "./dialog.js";
import { count, counted, h, redraw, setText, stackedCell, stackedRow, stackedTable, time } from "./dom.js";
import { command, who } from "./server.js";

const LOOK_EVERY = 3;
const DAY_S = 86_400;
/** Any change of a key is confirmed together with those before it. */
const SAVE_AGAIN = "edit the key and save it again";

const column = (name, kind) => h("th", { scope: "col", class: kind ?? null }, name);

function groupBoxes(chosen) {
  return h("fieldset", { class: "field" }, h("legend", {}, "Only these groups of sports"),
    h("div", { class: "boxes" }, who().groups.map((group) =>
      h("label", {}, h("input", { type: "checkbox", name: "group", value: group, checked: chosen.includes(group) }), group.replaceAll("_", " ")))),
    h("small", {}, "None chosen: all of them."));
}

const selfService = (checked) => h("label", { class: "inline" }, h("input", { type: "checkbox", name: "self", checked }), "Its holder may rotate it, once a day");
const checkedGroups = (form) => [...form].filter((input) => input.name === "group" && input.checked).map(({ value }) => value);
const numberOf = (text) => (text.trim() === "" ? null : Number(text));
const daysToSeconds = (text) => numberOf(text) === null ? null : numberOf(text) * DAY_S;

export function keys(root) {
  const rows = h("tbody");
  const filter = h("input", { type: "checkbox", onchange: () => refresh() });
  const summary = h("p", { class: "soft", role: "status" });
  let listed = "";
  root.append(
    h("div", { class: "title" }, h("h1", {}, "Keys"),
      h("label", { class: "inline" }, filter, "Show revoked and expired"),
      h("button", { type: "button", class: "primary", onclick: issue }, "Issue a key")), summary,
    h("section", { class: "card keys" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Keys" },
      stackedTable([column("Name"), column("Kind"), column("Today"), column("A minute", "number"), column("Last used"), column("State"), column("Actions", "row-actions")], rows))));

  function use(key) {
    const limit = key.limits.requests_per_day;
    const text = limit === null ? `${count(key.used_today)}` : `${count(key.used_today)} of ${count(limit)}`;
    const month = key.limits.requests_per_month;
    const meter = limit === null ? null : h("meter", { min: 0, max: limit, value: Math.min(key.used_today, limit), high: limit * 0.8, optimum: 0, "aria-label": `Used today: ${text}` });
    return stackedCell("Today", { class: "use" }, h("span", {}, text), meter, month === null ? null : h("small", {}, `${count(key.used_this_month)} of ${count(month)} this month`));
  }

  function row(key) {
    const isActive = key.status === "active";
    const notes = [
      key.groups.length ? `only ${key.groups.join(", ").replaceAll("_", " ")}` : null,
      key.expires ? `until ${time(key.expires)}` : null,
      key.old_secret_until ? `old secret until ${time(key.old_secret_until)}` : null,
      key.self_service ? "self-service" : null,
    ].filter(Boolean);
    const action = (label, act, kind) => h("button", { type: "button", class: kind ?? "quiet", "aria-label": `${label} ${key.name}`, onclick: () => act(key) }, label);
    return stackedRow({ "data-key": key.id },
      h("th", { scope: "row", role: "rowheader" }, h("span", {}, key.name), h("small", {}, h("code", {}, key.hint)), notes.length ? h("small", {}, notes.join("; ")) : null),
      stackedCell("Kind", {}, key.kind), use(key),
      stackedCell("A minute", { class: "number" }, count(key.limits.burst_per_minute)),
      stackedCell("Last used", {}, key.last_used ? time(key.last_used) : "never"),
      stackedCell("State", {}, h("span", { class: `state ${isActive ? "good" : "bad"}` }, key.status)),
      stackedCell("Actions", { class: "row-actions" }, isActive ? [action("Edit", edit), action("Rotate", rotate), key.undo_until ? action("Undo rotation", undo) : null, action("Revoke", revoke, "quiet danger")] : null));
  }

  function issue() {
    const live = h("select", { name: "kind" }, h("option", { value: "sandbox" }, "sandbox"), h("option", { value: "production" }, "production"));
    const approved = field("Approved by", text("approved"), "Who allowed it; kept in the audit log.");
    const groups = groupBoxes([]);
    const fit = () => {
      const isLive = live.value === "production";
      approved.hidden = groups.hidden = !isLive;
      approved.querySelector("input").required = isLive;
    };
    live.addEventListener("change", fit);
    fit();
    dialog("Issue a key", [
      field("Kind", live, "Sandbox keys read the simulated world, production keys the live one."),
      field("Name", text("name", { required: true, maxlength: 100 })), approved, groups,
      h("div", { class: "pair" }, field("Requests a minute", whole("burst"), "Empty: the default."), field("Requests a day", whole("day"), "Empty: the default.")),
      h("div", { class: "pair" }, field("Requests a month", whole("month"), "Empty: no limit."), field("Expires after days", whole("expires"), "Empty: never.")),
      selfService(false),
    ], "Issue", async (form) => {
      const isLive = form.kind.value === "production";
      const fields = { kind: form.kind.value, name: form.name.value.trim(), groups: isLive ? checkedGroups(form) : [], burst_per_minute: numberOf(form.burst.value), expires_in_s: daysToSeconds(form.expires.value) };
      if (form.self.checked) fields.self_service = true;
      if (isLive) fields.approved_by = form.approved.value.trim();
      if (form.day.value.trim()) fields.requests_per_day = numberOf(form.day.value);
      if (form.month.value.trim()) fields.requests_per_month = numberOf(form.month.value);
      const key = await command("keys-issue", fields);
      showSecret(key.key, `Key ${key.name} issued`);
      await refreshSoon();
    });
  }

  function rotate(key) {
    const grace = h("select", { name: "grace" }, [[0, "stops at once"], [3600, "works 1 hour more"], [DAY_S, "works 24 hours more"], [7 * DAY_S, "works 7 days more"]]
      .map(([value, label]) => h("option", { value }, label)));
    dialog(`Rotate ${key.name}`, [h("p", {}, "The key gets a new secret and keeps its limits and counters."), field("The old secret", grace)], "Rotate", async (form) => {
      const rotated = await command("keys-rotate", { id: key.id, grace_s: Number(form.grace.value) });
      showSecret(rotated.key, `New secret of ${key.name}`, unconfirmed(rotated.unconfirmed, SAVE_AGAIN));
      await refreshSoon();
    });
  }

  function undo(key) {
    dialog(`Undo the last rotation of ${key.name}?`, [
      h("p", {}, "Its old secret is the key's secret again, without an end, and the new one ends at once."),
      h("p", {}, "If somebody else has the old secret, rotate the key after this."),
    ], "Undo rotation", async () => {
      const { unconfirmed: nodes } = await command("keys-rotate-undo", { id: key.id });
      done(`Rotation of ${key.name} undone`, unconfirmed(nodes, SAVE_AGAIN));
      await refresh();
    }, "danger");
  }

  function revoke(key) {
    dialog(`Revoke ${key.name}?`, [h("p", {}, "No later request with this key succeeds, and it cannot be brought back.")], "Revoke", async () => {
      const { unconfirmed: nodes } = await command("keys-revoke", { id: key.id });
      done(`Key ${key.name} revoked`, unconfirmed(nodes, `run oddsbox keys revoke ${key.id}`));
      await refresh();
    }, "danger");
  }

  function edit(key) {
    const limits = key.limits;
    const isLive = key.kind === "production";
    dialog(`Edit ${key.name}`, [
      field("Name", text("name", { value: key.name, required: true, maxlength: 100 })), isLive ? groupBoxes(key.groups) : null,
      h("div", { class: "pair" }, field("Requests a minute", whole("burst", { value: limits.burst_per_minute, required: true })), field("Requests a day", whole("day", { value: limits.requests_per_day ?? "" }), "Empty: no limit.")),
      h("div", { class: "pair" }, field("Requests a month", whole("month", { value: limits.requests_per_month ?? "" }), "Empty: no limit."),
        field("Expires after days", text("expires", { placeholder: key.expires ? `${time(key.expires)}` : "never", pattern: "[0-9]*|never" }), "From now, or never. Empty: as it is.")),
      selfService(key.self_service),
    ], "Save", async (form) => {
      const fields = { id: key.id, name: form.name.value.trim(), burst_per_minute: numberOf(form.burst.value), requests_per_day: numberOf(form.day.value), requests_per_month: numberOf(form.month.value), self_service: form.self.checked };
      if (isLive) fields.groups = checkedGroups(form);
      const expires = form.expires.value.trim();
      if (expires) fields.expires_in_s = expires === "never" ? null : daysToSeconds(expires);
      const { unconfirmed: nodes } = await command("keys-set", fields);
      done(`Key ${fields.name} saved`, unconfirmed(nodes, SAVE_AGAIN));
      await refresh();
    });
  }

  /** Rows are replaced only if something changed, so that a button keeps its focus. */
  async function refresh() {
    const all = await command("keys-list");
    const active = all.filter(({ status }) => status === "active");
    const shown = filter.checked ? all : active;
    setText(summary, `${counted(active.length, "active key")}, ${count(all.length - active.length)} revoked or expired`);
    const text = JSON.stringify(shown);
    if (text !== listed) {
      listed = text;
      redraw(rows, shown.length ? shown.map(row) : [stackedRow({}, stackedCell(null, { colspan: "7", class: "soft" }, all.length ? "No key is active." : "There are no keys yet."))]);
    }
  }

  /** The same after a secret was shown, which must stay whatever comes of this: the next look draws the rows in any case. */
  const refreshSoon = () => refresh().catch(() => {});

  return { look: (number) => (number % LOOK_EVERY === 0 ? refresh() : undefined) };
}
