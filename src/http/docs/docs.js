// Search, menu, tabs, copy buttons, the keys of a demo and "try it". Without this script every page can still be read.
"use strict";

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

// Examples name the address that the page was loaded from.
for (const code of document.querySelectorAll("pre, code")) {
  if (code.childElementCount === 0) code.textContent = code.textContent.replaceAll("http://127.0.0.1:8080", location.origin);
}

// Copy buttons. The clipboard needs a secure origin; elsewhere the text is selected instead.
for (const block of document.querySelectorAll("main pre")) {
  const button = make("button", { type: "button", class: "copy" }, "Copy");
  block.tabIndex = 0;
  block.setAttribute("role", "group");
  block.setAttribute("aria-label", "Code");
  const box = make("div", { class: "code" });
  block.replaceWith(box);
  box.append(block, button);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}

// Languages as tabs. The choice holds for all examples, until the page is closed.
const LANGUAGE = "oddsbox-docs-language";
const groups = [...document.querySelectorAll(".samples")].map((group, number) => {
  const sections = [...group.querySelectorAll("section")];
  const list = make("div", { role: "tablist", "aria-label": "Language" });
  const tabs = sections.map((section, at) => {
    const [id, panel] = [`tab-${number}-${at}`, `panel-${number}-${at}`];
    section.id = panel;
    section.setAttribute("role", "tabpanel");
    section.setAttribute("aria-labelledby", id);
    section.querySelector("h3").hidden = true;
    const tab = make("button", { type: "button", role: "tab", id, "aria-controls": panel }, section.dataset.language);
    tab.addEventListener("click", () => choose(section.dataset.language));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(at + step + tabs.length) % tabs.length];
      next.click();
      next.focus();
    });
    return tab;
  });
  list.append(...tabs);
  group.prepend(list);
  return { sections, tabs };
});

function choose(language) {
  sessionStorage.setItem(LANGUAGE, language);
  for (const { sections, tabs } of groups) {
    sections.forEach((section, at) => {
      const chosen = section.dataset.language === language;
      section.hidden = !chosen;
      tabs[at].setAttribute("aria-selected", String(chosen));
      tabs[at].tabIndex = chosen ? 0 : -1;
    });
  }
}
choose(sessionStorage.getItem(LANGUAGE) ?? "curl");

// The menu on narrow screens; the landing page has none.
const menu = document.getElementById("menu");
const nav = document.getElementById("nav");
document.body.classList.add("scripted");
if (menu) {
  menu.hidden = false;
  menu.addEventListener("click", () => {
    const open = nav.classList.toggle("open");
    menu.setAttribute("aria-expanded", String(open));
  });
}

// Search over all pages.
const search = document.getElementById("search");
const field = make("input", { type: "search", placeholder: "Search  /", "aria-label": "Search the documentation", autocomplete: "off" });
const results = make("ul", { "aria-label": "Results", hidden: "" });
search.append(field, results);
search.hidden = false;
let pages;

async function find() {
  pages ??= fetch("/docs/search.json").then((response) => response.json());
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const score = ({ title, text }) => {
    const [inTitle, inText] = [title.toLowerCase(), text.toLowerCase()];
    let total = 0;
    for (const word of words) {
      if (inTitle.includes(word)) total += 10;
      // A page that is about a word has it more often than one that mentions it.
      else if (inText.includes(word)) total += 1 + Math.min(9, inText.split(word).length - 1) / 10;
      else return 0;
    }
    return total;
  };
  const all = words.length ? await pages : [];
  const found = all.map((page) => ({ page, score: score(page) })).filter((hit) => hit.score > 0);
  found.sort((one, other) => other.score - one.score);
  results.replaceChildren(...found.slice(0, 8).map(({ page }) => hit(page, words[0])));
  if (words.length && !found.length) results.replaceChildren(make("li", {}, "Nothing found"));
  results.hidden = words.length === 0;
}

function hit({ url, title, text }, word) {
  // From the beginning of a word, some words before the first hit.
  const at = text.lastIndexOf(" ", Math.max(0, text.toLowerCase().indexOf(word) - 20)) + 1;
  return make("li", {}, make("a", { href: url }, make("b", {}, title), make("small", {}, text.slice(at, at + 110))));
}

field.addEventListener("input", find);
search.addEventListener("keydown", (event) => {
  const links = [...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "Escape") {
    field.value = "";
    results.hidden = true;
    field.focus();
  } else if (event.key === "ArrowDown" && links.length) {
    links[(at + 1) % links.length].focus();
    event.preventDefault();
  } else if (event.key === "ArrowUp" && links.length) {
    (at > 0 ? links[at - 1] : field).focus();
    event.preventDefault();
  } else if (event.key === "Enter" && event.target === field && links.length) {
    links[0].click();
  }
});
search.addEventListener("focusout", (event) => {
  if (!search.contains(event.relatedTarget)) results.hidden = true;
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    field.focus();
    event.preventDefault();
  }
});

// The keys of a demo. Only its pages name the file.
const demoKeys = document.body.dataset.demoKeys
  ? fetch(document.body.dataset.demoKeys).then((response) => (response.ok ? response.json() : null))
  : Promise.resolve(null);

// In a demo, curl lines work as pasted.
demoKeys.then((keys) => {
  if (!keys) return;
  for (const code of document.querySelectorAll("pre")) {
    if (code.textContent.startsWith("curl ")) code.textContent = code.textContent.replace("$ODDSBOX_KEY", keys.sandbox);
  }
  document.getElementById("key-note")?.replaceChildren("This is a demo with simulated prices. The command has its sandbox key and works as pasted.");
});

// The landing page says whether the service responds.
const health = document.getElementById("health");
if (health) {
  const show = (text, state) => {
    health.textContent = text;
    health.className = state;
    health.hidden = false;
  };
  fetch("/healthz", { cache: "no-store" }).then(
    (response) => (response.ok ? show("The service responds.", "ok") : show(`The service responds with ${response.status}.`, "failed")),
    () => show("The service does not respond.", "failed"),
  );
}

// Try it: the key stays in this page's memory.
for (const form of document.querySelectorAll("form.try")) {
  const key = make("input", { type: "password", autocomplete: "off", spellcheck: "false", placeholder: "sk_test_ob_…" });
  const send = make("button", { type: "submit" }, "Send");
  const output = make("div", { class: "output", "aria-live": "polite" });
  const keyField = make("label", {}, make("span", {}, "your key"), key);
  form.prepend(keyField);
  form.append(send, output);
  form.hidden = false;
  document.getElementById("try").hidden = false;
  demoKeys.then((keys) => keys && keyField.after(keyChoice(key, keys)));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    output.replaceChildren(...(await request(form, key.value.trim())));
    send.disabled = false;
  });
}

// Buttons that put a key of the demo into the field, which begins with the sandbox key.
function keyChoice(field, keys) {
  const choice = make("div", { class: "choice", role: "group", "aria-label": "Keys of this demo" });
  const choose = (button, key) => {
    field.value = key;
    for (const other of choice.children) other.setAttribute("aria-pressed", String(other === button));
  };
  const button = (name, key) => {
    const button = make("button", { type: "button", "aria-pressed": "false" }, name);
    button.addEventListener("click", () => choose(button, key));
    return button;
  };
  const sandbox = button("Demo sandbox key", keys.sandbox);
  choice.append(sandbox, button("Demo production key", keys.live));
  choose(sandbox, keys.sandbox);
  field.addEventListener("input", () => choose(null, field.value));
  return choice;
}

async function request(form, key) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const input of form.querySelectorAll("input[name]")) {
    const value = input.value.trim();
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(value));
    else if (value) query.set(input.name, value);
  }
  const target = query.size ? `${path}?${query}` : path;
  const line = make("p", {}, make("code", {}, `GET ${target}`));
  try {
    const response = await fetch(target, { headers: { "X-API-Key": key }, cache: "no-store" });
    const text = await response.text();
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    const status = make("p", {}, `${response.status} ${response.statusText}`);
    return [line, status, block("Response headers", headers), block("Response body", pretty(text))];
  } catch (error) {
    return [line, make("p", {}, `The request failed: ${error.message}`)];
  }
}

const block = (name, text) => make("pre", { tabindex: "0", role: "group", "aria-label": name }, text);

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2).slice(0, 20000);
  } catch {
    return text.slice(0, 20000);
  }
}
