// The account page in a real browser: limits, use, requests and rotation; where the key is kept; what an attacker's text does.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LOOKS, violations } from "./axe.js";
import { Browser, Service } from "./service.js";

const WIDE = { width: 1440, height: 900 };
/** Each would set `window.attacked` if it were parsed as HTML or run as a script. */
const ATTACKS = ["<img src=x onerror=window.attacked=1>", "<script>window.attacked=1</script>", "'\"><svg onload=window.attacked=1>"];

let service;
let browser;

before(async () => {
  service = await Service.start();
  browser = await Browser.open();
  const start = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z/, "Z");
  const now = new Date().toISOString().replace(/\.\d+Z/, "Z");
  await service.ingest([
    { type: "bookmaker", key: "attacker", title: ATTACKS[1], regions: ["us"] },
    { type: "event", sport: "mma", id: "bout-1", competition: ATTACKS[0], commence_time: start, home: ATTACKS[0], away: ATTACKS[2], status: "scheduled" },
    { type: "odds", sport: "mma", event: "bout-1", bookmaker: "attacker", market: "moneyline", last_update: now, format: "decimal", outcomes: [{ name: ATTACKS[0], price: 1.91, point: null }, { name: ATTACKS[2], price: 2.05, point: null }] },
  ]);
});

after(async () => {
  await browser?.close();
  await service?.stop();
});

const issue = (name, ...options) => service.command("keys", "issue", "--live", "--name", name, "--approved-by", "test", ...options);

/** The page with a key shown. Everything that it requests is in `page.requested`. */
async function opened(key, options = {}) {
  const page = await browser.page({ viewport: WIDE, ...options });
  page.requested = [];
  page.on("request", (request) => page.requested.push(request));
  await page.goto(`${service.address}/account`);
  await page.getByLabel("Your key").fill(key);
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByRole("heading", { name: "Limits" }).waitFor();
  return page;
}

async function assertKeptNowhere(page, key) {
  assert.ok(!(await page.content()).includes(key), "the key is only in the field");
  assert.ok(!page.url().includes(key) && page.url().endsWith("/account"));
  const kept = await page.evaluate(async () => [localStorage.length, sessionStorage.length, document.cookie, (await indexedDB.databases()).length, history.length]);
  assert.deepEqual(kept.slice(0, 4), [0, 0, "", 0]);
  assert.deepEqual(await page.context().cookies(), []);
  for (const request of page.requested) {
    assert.equal(new URL(request.url()).origin, service.address, "nothing is loaded from elsewhere");
    assert.ok(!request.url().includes(key), request.url());
    assert.ok(!request.headers().referer, "no page is named as the referrer");
  }
}

test("a key sees its limits, its use and its open streams", async () => {
  const { key, id } = await issue("seen", "--burst", "50", "--per-day", "1234", "--groups", "combat,golf");
  for (let at = 0; at < 3; at += 1) await service.get("/v1/books", key);
  const page = await opened(key);
  const facts = page.locator(".facts");
  for (const text of [id, "production, only combat, golf", "of 50 left", "3 of 1,234", "1,231 left", "0 of 10", "never"]) {
    await facts.getByText(text).first().waitFor();
  }
  const hours = page.getByRole("img", { name: /^Requests by hour, the last 24 hours \(UTC\): 3 in all/ });
  assert.equal(await hours.locator("rect").count(), 24);
  const days = page.getByRole("img", { name: /^Requests by day, the last 31 days \(UTC\): 3 in all/ });
  assert.equal(await days.locator("rect").count(), 31);
  await service.get("/v1/books", key);
  await page.getByRole("button", { name: "Refresh" }).click();
  await facts.getByText("4 of 1,234").waitFor();
  await page.getByText("This key cannot rotate itself.").waitFor();
  await assertKeptNowhere(page, key);
  await page.getByRole("button", { name: "Forget the key" }).click();
  assert.equal(await page.getByLabel("Your key").inputValue(), "");
  assert.equal(await page.getByRole("heading", { name: "Limits" }).count(), 0);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("a wrong key is told so, and nothing stays on the page", async () => {
  const { key } = await issue("right");
  const page = await opened(key);
  await page.getByLabel("Your key").fill(key.slice(0, -1));
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByRole("alert").getByText("check that it was copied whole").waitFor();
  assert.equal(await page.getByRole("heading", { name: "Limits" }).count(), 0);
  await page.context().close();
});

test("requests are tried, and the curl line has everything but the key", async () => {
  const { key } = await issue("trying");
  const page = await opened(key);
  await page.getByLabel("endpoint").selectOption({ label: "/v1/sports/{sport_key}/odds (Get odds)" });
  await page.getByRole("form", { name: "Request" }).getByLabel("limit", { exact: true }).fill("1");
  const curl = await page.getByRole("group", { name: "curl" }).textContent();
  assert.match(curl, /^curl -H "X-API-Key: \$ODDSBOX_KEY" 'http:\/\/127\.0\.0\.1:\d+\/v1\/sports\/mma\/odds\?.*limit=1.*'$/);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/^200 OK in \d+ ms$/).waitFor();
  const headers = await page.getByRole("group", { name: "Response headers" }).textContent();
  for (const name of ["x-requests-remaining", "x-request-id", "etag", "cache-control", "ratelimit"]) assert.match(headers, new RegExp(`^${name}: `, "m"));
  const body = JSON.parse(await page.getByRole("group", { name: "Response body" }).textContent());
  assert.equal(body[0].event_id, "bout-1");
  const answer = await fetch(curl.match(/'(.+)'/)[1], { headers: { "x-api-key": key } });
  assert.deepEqual((await answer.json()).map(({ id }) => id), body.map(({ id }) => id), "the curl line does the same");

  await page.getByRole("form", { name: "Request" }).getByLabel("limit", { exact: true }).fill("0");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/^400 Bad Request in \d+ ms$/).waitFor();
  await page.getByRole("textbox", { name: "sport_key" }).fill("it's 'quoted'");
  assert.equal((await page.getByRole("group", { name: "curl" }).textContent()).split("'").length, 3, "no value ends the quotes");
  await assertKeptNowhere(page, key);
  assert.deepEqual(page.faults.filter((fault) => !/400/.test(fault)), []);
  await page.context().close();
});

test("what an attacker has named is shown as text", async () => {
  const { key } = await issue(ATTACKS[0], "--self-service");
  const page = await opened(key);
  for (const label of ["/v1/sports/{sport_key}/odds (Get odds)", "/v1/sports/{sport_key}/events (List events)", "/v1/books (List bookmakers)"]) {
    await page.getByLabel("endpoint").selectOption({ label });
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("group", { name: "Response body" }).getByText("window.attacked").first().waitFor();
  }
  await page.getByLabel("endpoint").selectOption({ label: "/v1/sports/{sport_key}/odds (Get odds)" });
  for (const attack of ATTACKS) {
    await page.getByRole("textbox", { name: "sport_key" }).fill(attack);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText(/^404 Not Found in \d+ ms$/).waitFor();
  }
  assert.equal(await page.evaluate(() => window.attacked), undefined);
  assert.equal(await page.locator("main img, main script").count(), 0);

  const console_ = await browser.signedIn(service);
  await console_.getByRole("link", { name: "Keys" }).click();
  await console_.getByRole("row", { name: ATTACKS[0] }).getByText("self-service").waitFor();
  assert.equal(await console_.evaluate(() => window.attacked), undefined);
  assert.deepEqual(console_.faults, []);
  await console_.context().close();
  await page.context().close();
});

test("a script that gets into the page cannot run, and no other page can frame it or ask with its rights", async () => {
  const page = await browser.page();
  await page.goto(`${service.address}/account`);
  await page.evaluate(() => {
    document.body.setAttribute("onclick", "window.attacked = 1");
    const script = document.createElement("script");
    script.textContent = "window.attacked = 1";
    document.body.append(script);
    document.body.click();
  });
  assert.equal(await page.evaluate(() => window.attacked), undefined);
  const sent = await page.evaluate(() => fetch("http://127.0.0.1:9/leak").then(() => "sent", () => "blocked"));
  assert.equal(sent, "blocked");
  await page.context().close();
});

test("a key with self-service is rotated once, with care, and the page goes on with the new secret", async () => {
  const { key, id } = await issue("rotating", "--self-service");
  const page = await opened(key);
  const rotate = page.getByRole("button", { name: "Rotate", exact: true });
  assert.ok(await rotate.isDisabled(), "it takes a second thought");
  await page.getByLabel("I can store the new secret now").check();
  await rotate.click();
  const secret = await page.locator("output.secret").textContent();
  assert.match(secret, /^sk_live_ob_\w{36}$/);
  assert.notEqual(secret, key);
  assert.deepEqual([await service.get("/v1/sports", key), await service.get("/v1/sports", secret)], [200, 200]);
  assert.deepEqual(await violations(page), [], "with the new secret");
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByLabel("I can store the new secret now").check();
  assert.ok(!(await page.content()).includes(secret), "it was shown once");
  await rotate.click();
  await page.getByText("A key rotates itself once in 24 hours.").waitFor();
  await assertKeptNowhere(page, secret);
  await service.command("keys", "rotate", id, "--undo");
  assert.deepEqual([await service.get("/v1/sports", key), await service.get("/v1/sports", secret)], [200, 401]);
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByRole("alert").getByText("This API key is not valid").waitFor();
  await page.context().close();
});

for (const { viewport, colorScheme } of LOOKS) {
  test(`no accessibility violations and no scrolling sideways, ${colorScheme}, ${viewport.width} px`, async () => {
    const { key } = await issue("axe", "--self-service", "--per-month", "5000000");
    const page = await opened(key, { viewport, colorScheme });
    await page.getByLabel("endpoint").selectOption({ label: "/v1/sports/{sport_key}/odds (Get odds)" });
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("group", { name: "Response body" }).waitFor();
    for (const summary of await page.locator("summary").all()) await summary.click();
    assert.deepEqual(await violations(page), []);
    const [width, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(width <= screen, `${width} px wide on a screen of ${screen} px`);
    const outside = await page.evaluate(() => [...document.querySelectorAll("main form *, main button, .facts *")]
      .filter((element) => !element.closest("pre"))
      .map((element) => [element.outerHTML.slice(0, 80), element.getBoundingClientRect()])
      .filter(([, { left, right, width: own }]) => own > 0 && (left < 0 || right > innerWidth)).map(([text]) => text));
    assert.deepEqual(outside, []);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
}

test("everything can be done with the keyboard, and the page says what it needs without a script", async () => {
  const { key } = await issue("keyboard");
  const page = await browser.page();
  await page.goto(`${service.address}/account`);
  await page.waitForFunction(() => document.activeElement.id === "key");
  await page.keyboard.type(key);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Limits" }).waitFor();
  await page.getByLabel("endpoint").focus();
  await page.keyboard.type("/v1/status");
  for (let at = 0; at < 20 && !(await page.evaluate(() => document.activeElement.textContent === "Send")); at += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText(/^200 OK in \d+ ms$/).waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();
  const plain = await browser.page({ javaScriptEnabled: false });
  await plain.goto(`${service.address}/account`);
  await plain.getByText("This page needs JavaScript.").waitFor();
  assert.equal(await plain.getByRole("button").count(), 0);
  await plain.context().close();
});
