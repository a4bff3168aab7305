// The documentation and the landing page in a real browser: accessibility, narrow screens, keyboard, search, "try it".

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LOOKS, violations } from "./axe.js";
import { Browser, Service } from "./service.js";

/** One of each kind of page. */
const PAGES = ["/", "/docs", "/docs/getOdds", "/docs/v4GetOdds", "/docs/errors", "/docs/headers", "/docs/schemas", "/docs/guide", "/docs/guide/feeds"];
const NARROW = { width: 360, height: 740 };
const WIDE = { width: 1440, height: 900 };

let demo;
let browser;

before(async () => {
  demo = await Service.start("demo");
  browser = await Browser.open();
});

after(async () => {
  await browser?.close();
  await demo?.stop();
});

/** Opens a page and waits until its script has run. */
async function opened(path, options = {}, service = demo) {
  const page = await browser.page({ viewport: WIDE, ...options });
  await page.goto(`${service.address}${path}`);
  await page.getByRole("searchbox", { name: "Search the documentation" }).waitFor();
  return page;
}

/** The page itself does not scroll sideways, and no form, result or button lies beyond its edges. */
async function assertFits(page, what) {
  const [width, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(width <= screen, `${what} is ${width} px wide on a screen of ${screen} px`);
  const outside = await page.evaluate(() => [...document.querySelectorAll("header *, main, main form *, .copy")]
    .filter((element) => !element.closest("pre"))
    .map((element) => [element.outerHTML.slice(0, 80), element.getBoundingClientRect()])
    .filter(([, { left, right, width }]) => width > 0 && (left < 0 || right > innerWidth))
    .map(([text]) => text));
  assert.deepEqual(outside, [], what);
}

const focused = (page) => page.evaluate(() => document.activeElement.outerHTML.slice(0, 80));

for (const { viewport, colorScheme } of LOOKS) {
  test(`pages have no accessibility violations and do not scroll sideways, ${colorScheme}, ${viewport.width} px`, async () => {
    const page = await opened("/", { viewport, colorScheme });
    for (const path of PAGES) {
      await page.goto(`${demo.address}${path}`);
      await page.locator("body.scripted").waitFor();
      assert.deepEqual(await violations(page), [], path);
      await assertFits(page, path);
    }
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
}

test("open menu, search results and a response have no accessibility violations", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await opened("/docs/getOdds", { viewport: NARROW, colorScheme });
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("navigation", { name: "Documentation" }).waitFor();
    assert.deepEqual(await violations(page), [], "menu");
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("group", { name: "Response body" }).waitFor();
    for (const summary of await page.locator("summary").all()) await summary.click();
    assert.deepEqual(await violations(page), [], "response");
    await assertFits(page, "response");
    await page.getByRole("searchbox").fill("price");
    await page.getByRole("list", { name: "Results" }).getByRole("link").first().waitFor();
    assert.deepEqual(await violations(page), [], "results");
    await assertFits(page, "results");
    assert.deepEqual(page.faults, []);
    await page.context().close();
  }
});

test("every page can be used with the keyboard", async () => {
  const page = await opened("/docs/getStatus");
  await page.keyboard.press("Tab");
  assert.match(await focused(page), /class="skip"/, "the first stop skips the navigation");
  await page.keyboard.press("Enter");
  assert.match(await focused(page), /<main/);
  await page.keyboard.press("Tab");
  assert.match(await focused(page), /role="tab"/, "the first stop in the content");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Python");
  await page.keyboard.press("Tab");
  assert.match(await focused(page), /<pre/, "code can be scrolled");
  await page.keyboard.press("Tab");
  assert.match(await focused(page), /class="copy"/);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: /^(Copied|Selected)$/ }).waitFor();

  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.type), "search", "/ leads to the search field");
  await page.keyboard.type("credits");
  await page.getByRole("list", { name: "Results" }).getByRole("link").first().waitFor();
  await page.keyboard.press("ArrowDown");
  assert.match(await focused(page), /<a href="\/docs/);
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement.type), "search");
  await page.keyboard.type("credits");
  await page.getByRole("list", { name: "Results" }).getByRole("link").first().waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(`${demo.address}/docs/guide/feeds`);
  assert.deepEqual(page.faults, []);
});

test("order of the Tab key is the order on the page", async () => {
  const page = await opened("/docs/getStatus");
  const stops = [];
  for (let at = 0; at < 200; at += 1) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(() => {
      const all = [...document.querySelectorAll("*")];
      return document.activeElement === document.body ? -1 : all.indexOf(document.activeElement);
    });
    if (stop === -1 || stop === stops[0]) break;
    stops.push(stop);
  }
  assert.ok(stops.length > 20, `${stops.length} stops`);
  assert.deepEqual(stops, [...stops].sort((one, other) => one - other));
});

test("a demo offers its keys and its curl lines work as pasted", async () => {
  const page = await opened("/docs/getOdds");
  const field = page.getByLabel("your key");
  const keys = page.getByRole("group", { name: "Keys of this demo" });
  await keys.getByRole("button", { name: "Demo sandbox key", pressed: true }).waitFor();
  assert.match(await field.inputValue(), /^sk_test_ob_\w{36}$/);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("200 OK").waitFor();
  await keys.getByRole("button", { name: "Demo production key" }).click();
  assert.match(await field.inputValue(), /^sk_live_ob_\w{36}$/);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("group", { name: "Response body" }).getByText("moneyline").waitFor();

  await page.goto(`${demo.address}/`);
  await page.getByText("The service responds.").waitFor();
  const line = await page.locator("pre").first().textContent();
  const [, key, url] = line.match(/^curl -H "X-API-Key: (sk_test_ob_\w{36})" \\\n  '(.+)'$/);
  assert.equal((await fetch(url, { headers: { "x-api-key": key } })).status, 200);
  assert.deepEqual(page.faults, []);
});

test("a server that is not a demo offers no key", async () => {
  const service = await Service.start();
  try {
    const requested = [];
    const page = await opened("/docs/getOdds", {}, service);
    page.on("request", (request) => requested.push(new URL(request.url()).pathname));
    await page.reload();
    await page.getByRole("button", { name: "Send" }).waitFor();
    assert.equal(await page.getByLabel("your key").inputValue(), "");
    assert.equal(await page.getByRole("group", { name: "Keys of this demo" }).count(), 0);
    assert.ok(!requested.includes("/docs/demo.json"), "the file is not even requested");
    assert.match(await page.locator("pre").first().textContent(), /\$ODDSBOX_KEY/);
    const { key } = await service.command("keys", "issue", "--sandbox", "--name", "docs");
    await page.getByLabel("your key").fill(key);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("200 OK").waitFor();
    assert.ok(!(await page.content()).includes(key), "the key is only in the field");
    assert.deepEqual(await page.evaluate(() => [localStorage.length, document.cookie]), [0, ""]);
    assert.deepEqual(page.faults, []);
  } finally {
    await service.stop();
  }
});

test("pages can be read without the script", async () => {
  const page = await browser.page({ viewport: NARROW, javaScriptEnabled: false });
  for (const path of PAGES) {
    await page.goto(`${demo.address}${path}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    assert.equal(await page.getByRole("button").count(), 0, `${path} has no button that does nothing`);
  }
});
