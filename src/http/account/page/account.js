// The account page. The key is in one variable and in the field it is typed into, and is sent in a header only. Everything that
// comes from the server is put in as text: nothing here parses HTML.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const BODY_MAX = 20000;
/** Headers that a developer looks for, in the order in which they are shown. */
const SHOWN_HEADERS = ["x-requests-remaining", "x-requests-used", "ratelimit", "retry-after", "x-request-id", "etag", "cache-control", "link", "x-position", "x-as-of"];

let key = "";

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const number = new Intl.NumberFormat("en-GB");
const count = (value) => (value === null ? "no limit" : number.format(value));

/** A request with the key. No cookie goes with it, and the browser keeps nothing of the answer. */
const ask = (target, options = {}) =>
  fetch(target, { headers: { "X-API-Key": key }, cache: "no-store", credentials: "omit", redirect: "error", ...options });

/** What an error answer says, whatever its shape. */
function messageOf(status, text) {
  try {
    const body = JSON.parse(text);
    return body.error?.message ?? body.message ?? `The service answered ${status}.`;
  } catch {
    return `The service answered ${status}.`;
  }
}

// The key.

const field = make("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false", autocapitalize: "off", placeholder: "sk_test_ob_…", required: "" });
const show = make("button", { type: "submit", class: "primary" }, "Show");
const forget = make("button", { type: "button" }, "Forget the key");
const keyForm = make("form", { class: "row", "aria-label": "Key" }, make("label", { for: "key" }, "Your key", field), show, forget);
const problem = make("p", { class: "problem", role: "alert" });
const details = make("div", { id: "details" });
forget.hidden = true;

keyForm.addEventListener("submit", async (event) => {
  event.preventDefault();
  key = field.value.trim();
  show.disabled = true;
  await refresh();
  show.disabled = false;
});

forget.addEventListener("click", () => {
  key = "";
  field.value = "";
  forget.hidden = true;
  problem.textContent = "";
  details.replaceChildren();
  field.focus();
});

/** Shows the usage of the key, or why it cannot be shown. */
async function refresh() {
  problem.textContent = "";
  try {
    const response = await ask("/v1/usage");
    const text = await response.text();
    if (!response.ok) throw new Error(messageOf(response.status, text));
    forget.hidden = false;
    const usage = JSON.parse(text);
    details.replaceChildren(...limits(usage), ...charts(usage), ...rotation(usage), ...(await requests()));
  } catch (error) {
    details.replaceChildren();
    problem.textContent = error.message;
  }
}

// Limits and use.

const fact = (name, value, more = "") => make("li", {}, make("span", {}, name), make("strong", {}, value), make("small", {}, more));
const used = ({ used: taken, limit }) => (limit === null ? number.format(taken) : `${number.format(taken)} of ${number.format(limit)}`);
const left = ({ remaining }) => (remaining === null ? "no limit" : `${number.format(remaining)} left`);

function limits(usage) {
  const again = make("button", { type: "button" }, "Refresh");
  again.addEventListener("click", refresh);
  const groups = usage.groups.length ? `only ${usage.groups.join(", ").replaceAll("_", " ")}` : "every sport";
  return [
    make("h2", {}, "Limits"),
    make("ul", { class: "facts" },
      fact("Key", usage.key_id, `${usage.kind}, ${groups}`),
      fact("This minute", `${number.format(usage.minute.remaining)} of ${number.format(usage.minute.limit)} left`, `begins anew in ${usage.minute.reset_s} s`),
      fact("Today (UTC)", used(usage.day), left(usage.day)),
      fact("This month (UTC)", used(usage.month), left(usage.month)),
      fact("Open streams", `${number.format(usage.streams.open)} of ${number.format(usage.streams.limit)}`),
      fact("Expires", usage.expires_at ?? "never")),
    again,
  ];
}

const charts = (usage) => [
  make("h2", {}, "Use"),
  chart("Requests by hour, the last 24 hours (UTC)", usage.hours.map(({ start, requests }) => [start.slice(11, 16), requests])),
  chart("Requests by day, the last 31 days (UTC)", usage.days.map(({ date, requests }) => [date, requests])),
];

/** Bars, and the same numbers as a table. */
function chart(title, points) {
  const most = Math.max(1, ...points.map(([, requests]) => requests));
  const total = points.reduce((sum, [, requests]) => sum + requests, 0);
  const picture = shape("svg", { viewBox: `0 0 ${points.length * 10} 100`, preserveAspectRatio: "none", role: "img", "aria-label": `${title}: ${number.format(total)} in all, at most ${number.format(most)}` });
  picture.append(shape("line", { x1: 0, y1: 100, x2: points.length * 10, y2: 100 }));
  points.forEach(([label, requests], at) => {
    const height = (requests / most) * 98;
    const bar = shape("rect", { x: at * 10 + 1, y: 100 - height, width: 8, height });
    const name = shape("title");
    name.textContent = `${label}: ${number.format(requests)}`;
    bar.append(name);
    picture.append(bar);
  });
  const rows = points.map(([label, requests]) => make("tr", {}, make("td", {}, label), make("td", {}, number.format(requests))));
  const table = make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "When"), make("th", { scope: "col" }, "Requests"))), make("tbody", {}, ...rows));
  return make("figure", {}, make("figcaption", {}, `${title}: ${number.format(total)}`), picture, make("details", {}, make("summary", {}, "As a table"), table));
}

/** An element of a picture. */
function shape(tag, attributes = {}) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// Rotation.

function rotation(usage) {
  const heading = make("h2", {}, "Rotate the key");
  if (!usage.self_service) {
    return [heading, make("p", {}, "This key cannot rotate itself. The operator of this service can give it a new secret.")];
  }
  const sure = make("input", { id: "sure", type: "checkbox" });
  const button = make("button", { type: "button" }, "Rotate");
  const output = make("div", { "aria-live": "polite" });
  button.disabled = true;
  sure.addEventListener("change", () => { button.disabled = !sure.checked; });
  button.addEventListener("click", async () => {
    button.disabled = true;
    sure.checked = false;
    output.replaceChildren(...(await rotate()));
  });
  return [
    heading,
    make("p", {}, "The key gets a new secret, which is shown once. The old one works for 24 hours more. This can be done once a day."),
    make("div", { class: "row" }, make("label", { for: "sure", class: "sure" }, sure, " I can store the new secret now"), button),
    output,
  ];
}

async function rotate() {
  try {
    const response = await ask("/account/rotate", { method: "POST" });
    const text = await response.text();
    if (!response.ok) return [make("p", { class: "problem" }, messageOf(response.status, text))];
    const rotated = JSON.parse(text);
    key = rotated.key;
    field.value = rotated.key;
    const secret = make("output", { class: "secret", tabindex: "0", "aria-label": "New secret" }, rotated.key);
    return [
      make("p", {}, `Store the new secret now: it is not shown again. The old one works until ${rotated.old_secret_until}.`),
      secret,
      copyButton("Copy the secret", () => rotated.key, secret),
    ];
  } catch (error) {
    return [make("p", { class: "problem" }, `The request failed: ${error.message}. If the key was rotated, its old secret works for 24 hours: ask the operator to undo it.`)];
  }
}

/** The clipboard needs a secure origin; elsewhere the text is selected instead. */
function copyButton(label, text, element) {
  const button = make("button", { type: "button" }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(element);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

// Requests, from the document that describes the interface.

let description;

async function endpoints() {
  description ??= fetch("/openapi.json", { credentials: "omit" }).then((response) => response.json());
  const document = await description;
  const resolved = (value) => (value.$ref ? value.$ref.slice(2).split("/").reduce((at, name) => at[name], document) : value);
  return Object.entries(document.paths)
    // A stream has no end that could be waited for.
    .filter(([path, { get }]) => get && path.startsWith("/v") && path !== "/v1/stream")
    .map(([path, { get }]) => ({ path, summary: get.summary, example: get["x-example"], parameters: (get.parameters ?? []).map(resolved) }));
}

async function requests() {
  const all = await endpoints();
  const choice = make("select", { id: "endpoint" }, ...all.map(({ path, summary }, at) => make("option", { value: at }, `${path} (${summary})`)));
  const inputs = make("div", { class: "try" });
  const curl = make("pre", { tabindex: "0", role: "group", "aria-label": "curl" });
  const send = make("button", { type: "submit", class: "primary" }, "Send");
  const output = make("div", { "aria-live": "polite" });
  const chosen = () => all[Number(choice.value)];
  const targetNow = () => targetOf(chosen(), inputs);
  const write = () => { curl.textContent = `curl -H "X-API-Key: $ODDSBOX_KEY" '${location.origin}${targetNow()}'`; };
  const fill = () => {
    inputs.replaceChildren(...chosen().parameters.map((parameter) => parameterField(parameter, chosen())));
    write();
  };
  choice.addEventListener("change", fill);
  inputs.addEventListener("input", write);
  fill();
  const form = make("form", { class: "try", "aria-label": "Request" }, make("label", { for: "endpoint" }, make("span", {}, "endpoint"), choice), inputs, make("div", { class: "code" }, curl, copyButton("Copy", () => curl.textContent, curl)), send);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    output.replaceChildren(...(await answerTo(targetNow())));
    send.disabled = false;
  });
  return [make("h2", {}, "Try a request"), form, output];
}

/** A field for a parameter, filled in as in the example of its endpoint. */
function parameterField({ name, in: place, schema, required }, { path, example }) {
  const [examplePath, query = ""] = example.split("?");
  const at = path.split("/").indexOf(`{${name}}`);
  const value = place === "path" ? examplePath.split("/")[at] : new URLSearchParams(query).get(name) ?? "";
  const values = schema?.enum;
  const input = values
    ? make("select", {}, ...(required ? [] : [make("option", { value: "" }, "")]), ...values.map((item) => make("option", { value: item }, item)))
    : make("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  input.name = name;
  input.dataset.in = place;
  input.value = value;
  return make("label", {}, make("span", {}, name), input);
}

function targetOf({ path }, inputs) {
  const query = new URLSearchParams();
  let target = path;
  for (const input of inputs.querySelectorAll("[name]")) {
    const value = input.value.trim();
    if (input.dataset.in === "path") target = target.replace(`{${input.name}}`, () => encodeURIComponent(value));
    else if (value) query.set(input.name, value);
  }
  // An apostrophe would end the text in the curl line.
  return (query.size ? `${target}?${query}` : target).replaceAll("'", "%27");
}

async function answerTo(target) {
  const line = make("p", {}, make("code", {}, `GET ${target}`));
  try {
    const began = performance.now();
    const response = await ask(target);
    const text = await response.text();
    const took = Math.round(performance.now() - began);
    const headers = SHOWN_HEADERS.filter((name) => response.headers.has(name)).map((name) => `${name}: ${response.headers.get(name)}`);
    return [line, make("p", { class: "status" }, `${response.status} ${response.statusText} in ${took} ms`), block("Response headers", headers.join("\n")), block("Response body", pretty(text))];
  } catch (error) {
    return [line, make("p", { class: "problem" }, `The request failed: ${error.message}`)];
  }
}

const block = (name, text) => make("pre", { tabindex: "0", role: "group", "aria-label": name }, text);

function pretty(text) {
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Not JSON: lines of an archive are shown as they are.
  }
  return shown.length > BODY_MAX ? `${shown.slice(0, BODY_MAX)}\n… ${number.format(shown.length - BODY_MAX)} characters more` : shown;
}

document.getElementById("account").replaceChildren(keyForm, problem, details);
field.focus();
