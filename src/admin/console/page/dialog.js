// Dialogs: forms that change something, and secrets that are shown once.

import { copy, h, notify } from "./dom.js";

/** A dialog, removed from the page when it closes. If `act` throws, the dialog stays open and shows the reason. */
export function dialog(title, content, label, act, kind = "primary") {
  const problem = h("p", { class: "bad problem", role: "alert" });
  const cancel = h("button", { type: "button", onclick: () => box.close() }, act ? "Cancel" : label);
  const go = act ? h("button", { type: "submit", class: kind }, label) : null;
  const form = h("form", {}, h("h2", {}, title), ...content, problem, h("div", { class: "actions" }, cancel, go));
  const box = h("dialog", { "aria-label": title }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      await act(form.elements);
      box.close();
    } catch (error) {
      problem.textContent = error.message;
    } finally {
      go.disabled = false;
    }
  });
  // The table behind may have been drawn anew: then the focus goes to the same button of the new one.
  const opener = document.activeElement;
  const name = opener?.getAttribute("aria-label");
  box.addEventListener("close", () => {
    box.remove();
    const target = opener?.isConnected ? opener : name && document.querySelector(`main [aria-label="${CSS.escape(name)}"]`);
    if (target && document.activeElement === document.body) target.focus();
  });
  document.body.append(box);
  box.showModal();
  return box;
}

export const field = (label, input, hint) => h("label", { class: "field" }, h("span", {}, label), input, hint ? h("small", {}, hint) : null);
export const text = (name, attributes) => h("input", { name, type: "text", autocomplete: "off", spellcheck: "false", ...attributes });
export const whole = (name, attributes) => text(name, { inputmode: "numeric", pattern: "[0-9]*", ...attributes });

/** What to do about nodes that have not confirmed a change of a key or a token; `null` if all have. `again` has them confirm it later. */
export const unconfirmed = (nodes, again) => (nodes?.length
  ? h("p", { class: "banner", role: "alert" }, h("b", {}, `Changed, but not confirmed by ${nodes.join(", ")}.`),
    ` A node that is cut off from the engine of the cluster may go by what was before until it is back. Stop it, or ${again} when the Cluster page shows it with a lease.`)
  : null);

/** Says that something is done: in a line that goes away by itself, or with a warning that stays until it is closed. */
export function done(text, warning) {
  if (warning) dialog(text, [warning], "Close");
  else notify(text);
}

/** Shows a secret, which the server never shows again. */
export function showSecret(value, title, warning = null) {
  const secret = h("output", { class: "secret" }, value);
  const box = dialog(title, [
    warning,
    h("p", {}, "This is the only time that the secret is shown. Keep it where its owner's server can read it."),
    secret,
    h("div", { class: "actions start" }, h("button", { type: "button", class: "primary", onclick: () => copy(value, "The secret") }, "Copy secret")),
  ], "I have stored it");
  // Only the button closes it: the secret cannot be shown again.
  box.addEventListener("cancel", (event) => event.preventDefault());
  box.addEventListener("keydown", (event) => { if (event.key === "Escape") event.preventDefault(); });
  // The secret does not stay in the page.
  box.addEventListener("close", () => { secret.textContent = ""; });
}
