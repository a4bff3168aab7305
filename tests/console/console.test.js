// What an operator does in the console, in a real browser against a real server.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Browser, Service } from "./service.js";
import { startUpstream } from "./upstream.js";

let upstream;
let service;
let browser;

before(async () => {
  upstream = await startUpstream();
  service = await Service.start("serve", upstream.settings);
  browser = await Browser.open();
});

after(async () => {
  await browser?.close();
  await service?.stop();
  await upstream?.close();
});

const seconds = () => new Date(Math.floor(Date.now() / 1000) * 1000).toISOString().replace(".000Z", "Z");

function odds(home, away) {
  const outcomes = [{ name: "Ada Lark", price: home, point: null }, { name: "Bea Wren", price: away, point: null }];
  return { type: "odds", sport: "mma", event: "bout-1", bookmaker: "betmgm", market: "moneyline", last_update: seconds(), format: "decimal", outcomes };
}

const bout = () => ({
  type: "event", sport: "mma", id: "bout-1", competition: "Test Night", commence_time: new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z/, "Z"),
  home: "Ada Lark", away: "Bea Wren", status: "scheduled",
});

test("a link signs in once, and the secret leaves the address", async () => {
  const link = await service.link();
  const page = await browser.page();
  await page.goto(link);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.equal(new URL(page.url()).pathname, "/");
  assert.ok(!page.url().includes(link.split("/").at(-1)));
  const [cookie] = await page.context().cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, "Strict", "/"]);
  assert.equal(await page.evaluate(() => document.cookie), "", "no script reads it");
  for (const name of ["Board", "Edges", "Feeds", "Keys", "Audit", "Service", "Overview"]) {
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).click();
    await page.getByRole("heading", { name: name === "Audit" ? "Audit log" : name, level: 1 }).waitFor();
  }
  assert.deepEqual(page.faults, []);

  const other = await browser.page();
  await other.goto(link);
  await other.getByRole("heading", { name: "This link does not open" }).waitFor();
  await other.goto(new URL("/", link).href);
  await other.getByRole("heading", { name: "Signed out" }).waitFor();
});

test("a key is issued, used, rotated and revoked", async () => {
  const page = await browser.signedIn(service);
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("button", { name: "Issue a key" }).click();
  await page.getByLabel("Kind").selectOption("production");
  await page.getByLabel("Name").fill("desk <b>");
  await page.getByLabel("Approved by").fill("Ada");
  await page.getByLabel("combat").check();
  await page.getByRole("button", { name: "Issue", exact: true }).click();
  const secret = await page.locator("output.secret").textContent();
  assert.match(secret, /^sk_live_ob_\w{36}$/);
  assert.equal(await service.get("/v1/sports", secret), 200);
  assert.equal(await service.get("/v1/sports/golf/odds", secret), 403, "it is restricted to combat");
  await page.getByRole("button", { name: "I have stored it" }).click();
  await page.locator("dialog").waitFor({ state: "detached" });
  assert.ok(!(await page.content()).includes(secret), "the secret is shown once");
  await page.getByRole("row", { name: "desk <b>" }).getByText("only combat").waitFor();

  await page.getByRole("button", { name: "Edit desk <b>" }).click();
  await page.getByLabel("Requests a day").fill("5000");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("row", { name: "desk <b>" }).getByText("of 5,000").waitFor();

  await page.getByRole("button", { name: "Rotate desk <b>" }).click();
  await page.getByRole("button", { name: "Rotate", exact: true }).click();
  const rotated = await page.locator("output.secret").textContent();
  assert.equal(await service.get("/v1/sports", secret), 401);
  assert.equal(await service.get("/v1/sports", rotated), 200);
  await page.getByRole("button", { name: "I have stored it" }).click();
  assert.equal(await page.getByRole("button", { name: "Undo rotation desk <b>" }).count(), 0, "it left no grace period");

  await page.getByRole("button", { name: "Rotate desk <b>" }).click();
  await page.getByLabel("The old secret").selectOption("works 24 hours more");
  await page.getByRole("button", { name: "Rotate", exact: true }).click();
  const mistaken = await page.locator("output.secret").textContent();
  await page.getByRole("button", { name: "I have stored it" }).click();
  await page.getByRole("button", { name: "Undo rotation desk <b>" }).click();
  await page.getByRole("button", { name: "Undo rotation", exact: true }).click();
  await page.getByRole("button", { name: "Undo rotation desk <b>" }).waitFor({ state: "detached" });
  assert.deepEqual([await service.get("/v1/sports", rotated), await service.get("/v1/sports", mistaken)], [200, 401]);

  await page.getByRole("button", { name: "Edit desk <b>" }).click();
  await page.getByLabel("Its holder may rotate it").check();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("row", { name: "desk <b>" }).getByText("self-service").waitFor();

  await page.getByRole("button", { name: "Revoke desk <b>" }).click();
  await page.getByRole("dialog").getByText("cannot be brought back").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.equal(await service.get("/v1/sports", rotated), 200);
  await page.getByRole("button", { name: "Revoke desk <b>" }).click();
  await page.getByRole("button", { name: "Revoke", exact: true }).click();
  await page.getByRole("row", { name: "desk <b>" }).waitFor({ state: "detached" });
  assert.equal(await service.get("/v1/sports", rotated), 401);

  await page.getByRole("link", { name: "Audit" }).click();
  const log = page.getByRole("region", { name: "Audit log" });
  await log.getByText("revoke", { exact: true }).first().waitFor();
  assert.match(await log.textContent(), /console \(.+\)/);
  await page.getByLabel("Action").selectOption("revoke");
  await page.getByText(/^1 of \d+ entries/).waitFor();
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export CSV" }).click();
  assert.equal((await saved).suggestedFilename(), "oddsbox-audit.csv");
  assert.deepEqual(page.faults, []);
});

test("a price that moves is seen to move, and nothing else does", async () => {
  await service.ingest([bout(), odds(1.91, 2.05)]);
  const page = await browser.signedIn(service, { permissions: ["clipboard-read", "clipboard-write"] });
  await page.goto(`${new URL(page.url()).origin}/#/board/live/mma/moneyline/decimal/us`);
  const row = page.getByRole("row", { name: "Ada Lark" });
  const cell = row.locator("td.book").first();
  await cell.getByText("1.91").waitFor();
  const place = await cell.boundingBox();

  await service.ingest([odds(2.25, 1.7)]);
  await cell.locator(".up").getByText("2.25").waitFor();
  await cell.locator(".down").getByText("1.70").waitFor();
  assert.deepEqual(await cell.boundingBox(), place, "a tick shifts nothing");
  assert.equal(await cell.locator(".line.top").count(), 2, "the only bookmaker is the best");

  await page.getByRole("button", { name: "Copy as curl" }).click();
  const line = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(line, /^curl -H "X-API-Key: \$ODDSBOX_KEY" 'http:\/\/127\.0\.0\.1:\d+\/v1\/sports\/mma\/odds\?/);
  const key = (await service.command("keys", "issue", "--live", "--name", "curl", "--approved-by", "test")).key;
  const answer = await fetch(line.match(/'(.+)'/)[1], { headers: { "x-api-key": key } });
  assert.deepEqual((await answer.json()).map(({ outcomes }) => outcomes[0].price), [2.25]);

  await page.getByRole("button", { name: "fractional" }).click();
  await cell.getByText("5/4").waitFor();
  await page.getByRole("button", { name: "sandbox" }).click();
  await page.getByText(/as a client with a sandbox key sees them/).waitFor();
  assert.deepEqual(page.faults, []);
});

test("a page from elsewhere can do nothing", async () => {
  const page = await browser.signedIn(service);
  const console = new URL(page.url()).origin;
  const evil = createServer((_, response) => response.setHeader("content-type", "text/html").end("<h1>Evil</h1>"));
  await new Promise((resolve) => evil.listen(0, "127.0.0.1", resolve));
  const before = (await service.command("keys", "list")).length;
  // The same site, as cookies see it, and yet another origin: the strongest position that a forger can have.
  await page.goto(`http://127.0.0.1:${evil.address().port}/`);
  const outcome = await page.evaluate(async (console) => {
    const body = JSON.stringify({ command: "keys-issue", kind: "sandbox", name: "forged" });
    const send = (options) => fetch(`${console}/api/command`, { method: "POST", credentials: "include", body, ...options })
      .then((answer) => `${answer.type} ${answer.status}`, () => "blocked");
    const read = await fetch(`${console}/api/session`, { credentials: "include" }).then((answer) => answer.text(), () => "blocked");
    return [await send({}), await send({ mode: "no-cors" }), read];
  }, console);
  assert.equal(outcome[0], "blocked");
  assert.equal(outcome[2], "blocked", "the token cannot be read");
  // The console can be put into no frame.
  await page.evaluate((console) => { document.body.append(Object.assign(document.createElement("iframe"), { src: console })); }, console);
  await page.waitForFunction(() => {
    try {
      return document.querySelector("iframe").contentDocument === null;
    } catch {
      return true;
    }
  });
  assert.equal((await service.command("keys", "list")).length, before);
  evil.close();
});

test("rejected messages are shown by reason, and the plan of a polled feed's credits", async () => {
  await service.ingestText(["<img src=x onerror=alert(1)>\u202e", odds(1.5, 2.5), { ...odds(1.5, 2.5), event: "nobody" }].map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"));
  const page = await browser.signedIn(service);
  await page.goto(`${new URL(page.url()).origin}/#/feeds`);
  const push = page.locator(".rejections .card", { has: page.getByRole("heading", { name: "push" }) });
  await push.getByText("unknown event").click();
  await push.getByText("no event line has announced this event").waitFor();
  await push.getByText('"event":"nobody"').waitFor();
  await push.getByText("bad json").click();
  await push.getByText("<img src=x onerror=alert(1)>\\u{202e}").waitFor();
  await page.locator(".rejections .card", { has: page.getByRole("heading", { name: "upstream" }) }).getByText("bad time").click();
  await page.getByText("event 2:").waitFor();
  // A further rejection is added without closing what is open, and the focus stays.
  await push.locator("summary", { hasText: "bad json" }).focus();
  await service.ingestText("more nonsense");
  await push.getByText("more nonsense").waitFor();
  assert.match(await page.evaluate(() => document.activeElement.textContent), /^bad json/);

  const credits = page.getByRole("region", { name: "Credits" }).getByRole("row", { name: "upstream" });
  const cells = await credits.locator("td").allTextContents();
  assert.equal(cells[0], "450");
  assert.ok(Number(cells[1]) > 0, String(cells));
  assert.match(cells[2], /^\d+ (h|min|s)( \d+ (min|s))?$/);
  assert.match(cells[3], /^1 \w+, /, "the first of the next month");
  assert.match(cells[6], /^odds \d+$/);
  assert.equal(cells[7], "what is left");
  const missing = page.getByRole("region", { name: "Not polled" }).getByRole("row", { name: "upstream" });
  assert.deepEqual((await missing.locator("td").allTextContents()).slice(0, 3), ["soccer_nowhere", "all", "answered 404 UNKNOWN_SPORT"]);
  assert.deepEqual(page.faults, []);
});

test("bookmakers that share a title are told apart, and every chance says whose it is", async () => {
  const page = await browser.signedIn(service, { viewport: { width: 1440, height: 900 } });
  await page.goto(`${new URL(page.url()).origin}/#/board/live/mma/moneyline/decimal/uk,eu,au`);
  await page.getByRole("row", { name: "Ada Lark" }).first().waitFor();
  for (const key of ["betfair_ex_uk", "betfair_ex_eu", "betfair_ex_au"]) {
    const head = page.getByRole("columnheader", { name: `Betfair Exchange ${key}` });
    assert.equal(await head.locator(".own-key").evaluate((element) => element.scrollWidth <= element.clientWidth), true, key);
  }
  await page.getByRole("columnheader", { name: "Paddy Power", exact: true }).waitFor();
  const prices = await page.locator(".board td.book .price").allTextContents();
  assert.ok(prices.includes("1.909") && prices.includes("1.90"), String(prices));
  assert.ok(prices.every((price) => /^(\d+\.\d{2,3}|\u2013)$/.test(price)), String(prices));
  // The sparklines are asked for after the prices.
  await page.locator(".board .share").first().waitFor();
  const shares = await page.locator(".board .share").allTextContents();
  assert.ok(shares.length > 0 && shares.every((share) => /^.+ \d+\.\d\u00a0%$/.test(share)), String(shares));
  assert.deepEqual(page.faults, []);
});

test("the board counts every event, and not those of the page", async () => {
  const lines = Array.from({ length: 600 }, (_, number) => {
    const [id, home, away] = [`many-${number}`, `Home ${number}`, `Away ${number}`];
    const event = { ...bout(), sport: "boxing", id, home, away };
    const outcomes = [{ name: home, price: 1.5, point: null }, { name: away, price: 2.5, point: null }];
    return [event, { ...odds(1.5, 2.5), sport: "boxing", event: id, outcomes }];
  }).flat();
  await service.ingest(lines);
  const page = await browser.signedIn(service);
  await page.goto(`${new URL(page.url()).origin}/#/board/live/boxing/moneyline/decimal/us`);
  await page.getByText("The first 499 of 600 events at 1 bookmaker,").waitFor();
  await page.getByRole("searchbox", { name: "Search events" }).fill("Home 59");
  await page.getByText(/^\d+ of the first 499 events, 600 in all,/).waitFor();
  await page.getByRole("searchbox", { name: "Search events" }).fill("");
  await page.getByRole("button", { name: "More events" }).click();
  await page.getByText("600 events at 1 bookmaker,").waitFor();
  assert.deepEqual(page.faults, []);
});

test("a live row has its score", async () => {
  const match = { ...bout(), sport: "tennis", id: "match-1", home: "Cy Finch", away: "Di Rook" };
  const outcomes = [{ name: "Cy Finch", price: 1.5, point: null }, { name: "Di Rook", price: 2.5, point: null }];
  const score = { type: "score", sport: "tennis", event: "match-1", status: "live", home_score: 1, away_score: 0, periods: [], updated_at: seconds() };
  await service.ingest([match, { ...odds(1.5, 2.5), sport: "tennis", event: "match-1", outcomes }, score]);
  const page = await browser.signedIn(service);
  await page.goto(`${new URL(page.url()).origin}/#/board/live/tennis/moneyline/decimal/us`);
  await page.getByRole("row", { name: "Cy Finch" }).getByText("live 1\u20130").waitFor();
  assert.deepEqual(page.faults, []);
});

test("a restart of the server does not sign out", async () => {
  const page = await browser.signedIn(service);
  await page.getByRole("link", { name: "Keys" }).click();
  await service.restart();
  await page.getByRole("button", { name: "Issue a key" }).click();
  await page.getByLabel("Name").fill("after the restart");
  await page.getByRole("button", { name: "Issue", exact: true }).click();
  await page.getByRole("button", { name: "I have stored it" }).click();
  await page.getByRole("row", { name: "after the restart" }).waitFor();
  await page.reload();
  await page.getByRole("row", { name: "after the restart" }).waitFor();
});

test("a server that hangs is shown as one that does not answer, until it does", async () => {
  const page = await browser.signedIn(service);
  const state = page.locator("#state");
  await state.filter({ hasText: /ok|degraded/ }).waitFor();
  service.process.kill("SIGSTOP");
  try {
    await state.filter({ hasText: "no answer" }).waitFor();
  } finally {
    service.process.kill("SIGCONT");
  }
  await state.filter({ hasText: /ok|degraded/ }).waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("signing out from the command line ends what is open in a browser", async () => {
  const page = await browser.signedIn(service);
  await service.command("console", "--sign-out");
  await page.getByRole("heading", { name: "Signed out" }).waitFor();
});

test("everything can be reached from the keyboard, and nothing runs off a small screen", async () => {
  const page = await browser.signedIn(service, { viewport: { width: 360, height: 740 } });
  const origin = new URL(page.url()).origin;
  for (const [name, title] of [["overview", "Overview"], ["board/live/mma", "Board"], ["feeds", "Feeds"], ["keys", "Keys"], ["audit", "Audit log"]]) {
    await page.goto(`${origin}/#/${name}`);
    // The page before stays until the next has its first data.
    await page.locator("h1", { hasText: title }).waitFor();
    await page.waitForFunction(() => document.querySelectorAll("main table tbody tr").length > 0);
    const fits = page.waitForFunction(() => document.documentElement.scrollWidth <= innerWidth, null, { timeout: 10_000 });
    await assert.doesNotReject(fits, `${name} runs off the screen`);
    const unnamed = await page.evaluate(() => [...document.querySelectorAll("button, input, select, a")]
      .filter((element) => !(element.textContent.trim() || element.ariaLabel || element.labels?.length)).map((element) => element.outerHTML));
    assert.deepEqual(unnamed, []);
  }
  await page.goto(`${origin}/#/keys`);
  await page.getByRole("button", { name: "Issue a key" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Issue a key", "the focus comes back");

  // The table is drawn anew after a change; the focus still comes back to the button.
  const edit = page.getByRole("button", { name: "Edit curl" });
  await edit.focus();
  await page.keyboard.press("Enter");
  await page.getByLabel("Requests a day").fill("777");
  await page.keyboard.press("Enter");
  await page.getByRole("row", { name: "curl" }).getByText("of 777").waitFor();
  await page.locator("dialog").waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Edit curl");
  for (const button of await page.locator(".row-actions button").all()) {
    const { x, width } = await button.boundingBox();
    assert.ok(x >= 0 && x + width <= 360, "every action can be reached without scrolling");
  }

  await page.goto(`${origin}/#/board/sandbox/golf/outright/american/us`);
  const opener = page.getByRole("button", { name: /^Show all/ }).first();
  await opener.focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Show fewer", "the focus stays");
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.type), "search");
});
