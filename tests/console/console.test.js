// What an operator does in the console, in a real browser against a real server.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Browser, Service } from "./service.js";

let service;
let browser;

before(async () => {
  service = await Service.start();
  browser = await Browser.open();
});

after(async () => {
  await browser?.close();
  await service?.stop();
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
  for (const name of ["Board", "Feeds", "Keys", "Audit", "Service", "Overview"]) {
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
});
