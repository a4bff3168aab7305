// The frame: which page is shown, how often it is refreshed, the theme, signing in and out.

import { h, notify, setText } from "./dom.js";
import { command, signIn, signOut, who, withinTime } from "./server.js";
import { overview } from "./overview.js";
import { board } from "./board.js";
import { edges } from "./edges.js";
import { event } from "./event.js";
import { feeds } from "./feeds.js";
import { keys } from "./keys.js";
import { audit } from "./audit.js";
import { service } from "./service.js";
import { cluster } from "./cluster.js";

const PAGES = { overview, board, event, edges, feeds, keys, audit, service, cluster };
const LOOK_EVERY_MS = 1000;
const STATUS_EVERY = 5;
/** A server that takes longer to answer is shown as one that does not answer. */
const LOOK_MAX_MS = 10_000;

const main = document.getElementById("main");
const state = document.getElementById("state");
const out = document.getElementById("sign-out");
const clusterLink = document.getElementById("cluster-link");

/** The page that is shown, and how many times it has looked. */
let shown = null;
let looks = 0;
let isLooking = false;
/** Whether the server answered the last time. */
let isReached = true;

function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  return { name: name in PAGES ? name : "overview", rest };
}

function show() {
  if (!who()) return;
  const { name, rest } = route();
  for (const link of document.querySelectorAll("nav[aria-label=Pages] a")) {
    // An event is reached from the board.
    const isHere = link.getAttribute("href") === `#/${name === "event" ? "board" : name}`;
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${name[0].toUpperCase()}${name.slice(1)} · oddsbox console`;
  if (shown?.name === name && shown.page.turn) {
    shown.page.turn(rest);
  } else {
    shown?.page.close?.();
    // A form belongs to its page. A secret stays until it is stored: it is not shown again.
    for (const dialog of document.querySelectorAll("dialog:not(:has(.secret))")) dialog.close();
    main.replaceChildren();
    shown = { name, page: PAGES[name](main, rest) };
  }
  looks = 0;
  look();
}

async function look() {
  if (!who() || isLooking || document.hidden) return;
  isLooking = true;
  const page = shown?.page;
  try {
    await withinTime(LOOK_MAX_MS, async () => {
      if (looks % STATUS_EVERY === 0) showStatus(await command("status"));
      await page?.look(looks);
    });
    isReached = true;
  } catch (error) {
    failed(error);
  } finally {
    isLooking = false;
    looks += 1;
    // Another page was asked for meanwhile.
    if (page !== shown?.page) {
      looks = 0;
      look();
    }
  }
}

function failed(error) {
  if (error.status === 401) {
    signedOut("You were signed out.");
  } else if (error.code === "unreachable") {
    if (isReached) notify("The server does not answer. Trying again…", true);
    isReached = false;
    state.hidden = false;
    state.className = "state bad";
    setText(state, "no answer");
  } else {
    notify(error.message, true);
  }
}

function showStatus(status) {
  state.hidden = false;
  state.className = `state ${{ ok: "good", degraded: "warn" }[status.status] ?? "bad"}`;
  setText(state, status.status);
  clusterLink.hidden = !status.server?.cluster;
}

function signedOut(message) {
  shown?.page.close?.();
  shown = null;
  state.hidden = true;
  out.hidden = true;
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  main.replaceChildren(
    h("section", { class: "signed-out" },
      h("h1", {}, "Signed out"),
      h("p", {}, message, " Run this where the server runs, and open the link that it prints:"),
      h("pre", {}, h("code", {}, "oddsbox console")),
      h("p", { class: "soft" }, "The link opens once, within five minutes. A session lasts twelve hours."))
  );
}

async function begin() {
  try {
    await signIn();
  } catch (error) {
    if (error.status === 401) return signedOut("");
    notify(error.message, true);
    setTimeout(begin, 3000);
    return;
  }
  out.hidden = false;
  show();
}

out.addEventListener("click", async () => {
  try {
    await signOut();
  } catch (error) {
    return failed(error);
  }
  signedOut("");
});

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
});

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

addEventListener("hashchange", show);
document.addEventListener("visibilitychange", look);
setInterval(look, LOOK_EVERY_MS);
begin();
