// The page of examples/browser, which follows the stream by EventSource through a proxy that adds the key, in a real browser.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startProxy } from "./proxy.js";
import { Browser, Service } from "./service.js";

let service;
let proxy;
let browser;
let page;
let key;

const NAMES = ["Ada <b>Lark</b>", "Bea Wren"];
const second = (ms) => new Date(Math.floor(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");
const bout = () => ({ type: "event", sport: "mma", id: "bout-1", competition: "Test Night", commence_time: second(Date.now() + 3_600_000), home: NAMES[0], away: NAMES[1], status: "scheduled" });
const odds = (home, away) => ({
  type: "odds", sport: "mma", event: "bout-1", bookmaker: "betmgm", market: "moneyline", last_update: second(Date.now()), format: "decimal",
  outcomes: [home, away].map((price, at) => ({ name: NAMES[at], price, point: null })),
});
const price = (text) => page.locator("tbody tr").filter({ hasText: /Bea Wren *\d/ }).getByText(text, { exact: true }).waitFor();
const state = (text) => page.locator("#state").getByText(text, { exact: true }).waitFor();
const restart = () => service.run("serve", {}, new URL(service.address).host);

before(async () => {
  service = await Service.start();
  ({ key } = await service.command("keys", "issue", "--live", "--name", "page", "--approved-by", "tests"));
  await service.ingest([bout(), odds(1.9, 2.0)]);
  proxy = await startProxy(service.address, key, service.data);
  browser = await Browser.open();
  page = await browser.page();
});

after(async () => {
  await browser?.close();
  await proxy?.close();
  await service?.stop();
});

test("the page shows the prices, and a change without being loaded again", async () => {
  await page.goto(proxy.url);
  await price("2");
  await state("live");
  assert.ok((await page.locator("tbody tr").first().textContent()).includes("Ada <b>Lark</b> v Bea Wren"), "a hostile name is a text");
  await page.evaluate(() => { globalThis.isSame = true; });
  await service.ingest([odds(1.8, 2.1)]);
  await price("2.1");
  assert.deepEqual(await page.locator("td.changed").allTextContents(), ["1.8", "2.1"]);
  assert.deepEqual(page.faults, []);
});

test("EventSource continues where it was after the service was killed", async () => {
  await service.end("SIGKILL");
  await state("connection lost");
  proxy.hold();
  await service.ingest([odds(1.7, 2.2)]);
  await restart();
  proxy.release();
  await price("2.2");
  await state("live");
  assert.match(proxy.sent, /^Last-Event-ID: \w+\.\d+\.\d+\r$/im);
});

test("the page continues by itself after EventSource gave up", async () => {
  await service.end("SIGKILL");
  await state("connection lost");
  await service.ingest([odds(1.6, 2.3)]);
  await page.waitForResponse((response) => response.status() === 502);
  await restart();
  await price("2.3");
  await state("live");
  assert.match(proxy.sent, /^GET \/v1\/stream\?\S*&since=\w+\.\d+\.\d+ /m);
  assert.equal(await page.evaluate(() => globalThis.isSame), true, "the page was not loaded again");
  assert.equal(proxy.received.split("\nevent: ready\n").length, 2, "there was one snapshot");
});

test("the proxy forwards reads of /v1 and nothing else", async () => {
  const status = async (path, options) => (await fetch(`${proxy.url}${path}`, options)).status;
  assert.equal(await status("/v1/sports", { headers: { "x-api-key": "sk_live_ob_none", cookie: "a=b" } }), 200);
  for (const path of ["/v4/sports", "/docs", "/Caddyfile", "/metrics", "/v1/%2e%2e/docs"]) assert.equal(await status(path), 404, path);
  assert.equal(await status("/v1/sports", { method: "POST" }), 404);
});

test("the key is in nothing that the browser sent or received", () => {
  assert.match(proxy.received, /^content-type: text\/event-stream/im);
  assert.ok(proxy.received.includes("event: odds"));
  for (const text of [proxy.sent, proxy.received, proxy.log()]) assert.ok(!text.includes(key));
});
