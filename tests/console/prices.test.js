// Best and fair prices, edges, history and live updates in the console, in a real browser against a real server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, Service } from "./service.js";

let service;
let browser;

before(async () => {
  service = await Service.start();
  browser = await Browser.open();
  await service.ingest([bout(), ...prices({ betmgm: [1.9, 2.0], draftkings: [1.92, 1.98], fanduel: [1.88, 2.02], betrivers: [1.9, 2.0] })]);
});

after(async () => {
  await browser?.close();
  await service?.stop();
});

const NAMES = ["Ada <b>Lark</b>", "Bea Wren"];
const second = (ms) => new Date(Math.floor(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");

const bout = () => ({ type: "event", sport: "mma", id: "bout/1", competition: "Test Night", commence_time: second(Date.now() + 3_600_000), home: NAMES[0], away: NAMES[1], status: "scheduled" });

/** Prices of the home and the away side by bookmaker. */
const prices = (books) => Object.entries(books).map(([bookmaker, both]) => ({
  type: "odds", sport: "mma", event: "bout/1", bookmaker, market: "moneyline", last_update: second(Date.now()), format: "decimal",
  outcomes: both.map((price, at) => ({ name: NAMES[at], price, point: null })),
}));

async function open(path, options) {
  const page = await browser.signedIn(service, options);
  await page.goto(`${new URL(page.url()).origin}/#/${path}`);
  return page;
}

const BOARD = "board/live/mma/moneyline/decimal/us";

test("the best column has price, holder and hold, and opens the fair prices", async () => {
  const page = await open(BOARD);
  const cell = page.getByRole("row", { name: "Bea Wren" }).locator("td.best");
  await cell.getByText("DraftKings", { exact: true }).waitFor();
  assert.deepEqual(await cell.locator(".line").allTextContents(), ["DraftKings1.92", "FanDuel2.02"]);
  const hold = cell.getByRole("button", { name: /^hold 1\.5[0-9]\s%/ });
  await hold.waitFor();
  const tip = page.getByRole("tooltip");
  assert.equal(await tip.isVisible(), false);

  await hold.focus();
  await tip.getByText("power, consensus of 4 bookmakers").waitFor();
  assert.match(await tip.textContent(), /Ada <b>Lark<\/b>1\.\d+51\.\d\s%/, "a hostile name is a text");
  assert.equal(await hold.getAttribute("aria-describedby"), "fair");
  await page.keyboard.press("Escape");
  await tip.waitFor({ state: "hidden" });

  await page.mouse.move(0, 0);
  await page.evaluate(() => document.activeElement.blur());
  await cell.hover();
  await tip.getByText("power, consensus of 4 bookmakers").waitFor();
  await tip.hover();
  await page.waitForTimeout(500);
  assert.equal(await tip.isVisible(), true, "it stays while the pointer is on it");
  await page.mouse.move(0, 0);
  await tip.waitFor({ state: "hidden" });
  assert.deepEqual(page.faults, []);

  const touch = await open(BOARD, { hasTouch: true, viewport: { width: 360, height: 740 } });
  await touch.locator("td.best .hold").first().tap();
  await touch.getByRole("tooltip").getByText("power, consensus of 4 bookmakers").waitFor();
  const { x, width } = await touch.getByRole("tooltip").boundingBox();
  assert.ok(x >= 0 && x + width <= 360, "it is on the screen");
  await touch.getByRole("heading", { name: "Board" }).tap();
  await touch.getByRole("tooltip").waitFor({ state: "hidden" });
});

test("edges are filtered and sorted, say whose probability it is, and lead to the board", async () => {
  const tennis = [1, 2].flatMap((number) => {
    const [id, home, away] = [`match-${number}`, `Home ${number}`, `Away ${number}`];
    const odds = (bookmaker, one, other) => ({ ...prices({ [bookmaker]: [one, other] })[0], sport: "tennis", event: id, outcomes: [{ name: home, price: one, point: null }, { name: away, price: other, point: null }] });
    return [{ ...bout(), sport: "tennis", id, home, away }, odds("betmgm", 1.9, 1.9), odds("draftkings", 1.91, 1.9), odds("fanduel", 1.9, 1.91), odds("betrivers", 2.2 + number / 10, 1.7)];
  });
  await service.ingest(tennis);
  const page = await open("edges");
  await page.getByText(/^2 prices with an expected value of 1\s% or more$/).waitFor();
  const edges = () => page.locator(".edges tbody tr td:first-child").allTextContents();
  assert.match(await page.locator(".edges tbody tr").first().textContent(), /Home 2 2\.40 BetRivers.*power, consensus of 4 bookmakers/);
  const [most, least] = (await edges()).map(parseFloat);
  assert.ok(most > least, `${most} is above ${least}`);

  await page.getByRole("columnheader", { name: "Edge" }).getByRole("button").click();
  assert.deepEqual((await edges()).map(parseFloat), [least, most]);
  assert.equal(await page.getByRole("columnheader", { name: "Edge" }).getAttribute("aria-sort"), "ascending");
  await page.getByLabel("Sort by").selectOption("event");
  assert.deepEqual(await page.locator(".edges tbody a").allTextContents(), ["Home 1 v Away 1", "Home 2 v Away 2"]);

  await page.getByLabel("Minimum %").fill(String(Math.ceil(least)));
  await page.getByText(/^1 price with/).waitFor();
  await page.getByLabel("Bookmaker").selectOption("betmgm");
  await page.getByText(/Lower the minimum/).waitFor();
  await page.getByLabel("Bookmaker").selectOption("");
  await page.getByLabel("Sport").selectOption("mma");
  await page.getByText(/^No price has an expected value/).waitFor();
  await page.getByLabel("Sport").selectOption("");
  await page.getByLabel("Reference").selectOption("betmgm");
  await page.getByText("power, BetMGM").first().waitFor();

  await page.getByLabel("Minimum %").fill("1");
  await page.getByRole("button", { name: "arbitrage" }).click();
  await page.getByText(/^2 sets of prices with a profit/).waitFor();
  assert.match(await page.locator(".edges tbody tr").first().textContent(), /stake \d+\.\d\s%/);
  await page.getByRole("link", { name: "Home 2 v Away 2" }).click();
  await page.getByText("Only Home 2 v Away 2.").waitFor();
  assert.equal(await page.locator(".board tbody tr").count(), 1);
  await page.getByRole("link", { name: "Show all events" }).click();
  await page.getByText(/^2 events at 4 bookmakers/).waitFor();
  assert.deepEqual(page.faults, []);
});

test("a board updates by itself, marks what changed, and shows where prices went", async () => {
  const page = await open(BOARD);
  const row = page.getByRole("row", { name: "Bea Wren" });
  await page.getByText("live", { exact: true }).first().waitFor();
  await row.locator("td.book").first().getByText("1.90").waitFor();
  await page.evaluate(() => { globalThis.isSame = true; });
  const more = page.getByRole("combobox", { name: "Order" });
  await more.focus();
  await service.ingest(prices({ betmgm: [2.05, 1.85] }));
  await row.locator("td.best").getByText("2.05").waitFor();
  const betmgm = row.locator("td.book").first();
  await betmgm.getByText("2.05").waitFor();
  assert.equal(await page.evaluate(() => globalThis.isSame), true, "the page was not loaded again");
  assert.equal(await more.evaluate((element) => element === document.activeElement), true, "the focus stays");
  await betmgm.getByRole("img", { name: "up in the last hour" }).waitFor();
  await betmgm.getByRole("img", { name: "down in the last hour" }).waitFor();
  assert.deepEqual(await betmgm.locator(".arrow").allTextContents(), ["\u25b2", "\u25bc"]);
  assert.deepEqual(page.faults, []);
});

test("the slider shows the board of a moment in history, marked as such, and goes back to now", async () => {
  const page = await open(BOARD);
  const betmgm = page.getByRole("row", { name: "Bea Wren" }).locator("td.book").first();
  await betmgm.getByText("2.05").waitFor();
  await page.getByRole("button", { name: "Earlier change" }).click();
  await page.getByText(/^Not current: the board as it was on \d+ \w+,? \d\d:\d\d:\d\d/).waitFor();
  await betmgm.getByText("1.90").waitFor();
  await page.locator("td.best").first().getByText("DraftKings").waitFor();
  assert.match(await page.getByRole("slider").getAttribute("aria-valuetext"), /\d\d:\d\d:\d\d/);
  await page.getByRole("button", { name: "Now" }).click();
  await betmgm.getByText("2.05").waitFor();
  await page.getByText(/^Not current/).waitFor({ state: "hidden" });
  await page.getByRole("slider").focus();
  await page.keyboard.press("Home");
  await betmgm.getByText("1.90").waitFor();
  assert.deepEqual(page.faults, []);
});

test("the page of an event has lines, a range, a legend, and opening and closing prices", async () => {
  const page = await open(BOARD);
  // A history of a minute, however long the tests before took: the shortest range is a part of it.
  await page.clock.setFixedTime(Date.now() + 60_000);
  await page.getByRole("row", { name: "Bea Wren" }).getByRole("link", { name: /Test Night/ }).click();
  await page.getByRole("heading", { name: "Ada <b>Lark</b> v Bea Wren" }).waitFor();
  const plot = page.locator("svg.steps");
  await plot.locator("path.step.best").waitFor({ state: "attached" });
  assert.equal(await plot.locator("path.step").count(), 6, "four bookmakers, the best and the median");
  const line = page.getByRole("region", { name: "Opening and closing" }).getByRole("row", { name: "BetMGM" });
  await page.getByLabel("Outcome").selectOption(NAMES[0]);
  await line.getByText("longer by 7.9").waitFor();
  assert.match(await line.textContent(), /BetMGM1\.90.*not yet2\.05/);

  const toggle = page.getByRole("button", { name: /^BetMGM/ });
  await toggle.click();
  assert.equal(await toggle.getAttribute("aria-pressed"), "false");
  assert.equal(await plot.locator("path.step").count(), 5);
  await toggle.click();

  await plot.focus();
  const readout = page.locator(".readout");
  await page.keyboard.press("Home");
  await readout.getByText(/best 1\.92 DraftKings, consensus 1\.90/).waitFor();
  await page.keyboard.press("End");
  await readout.getByText(/best 2\.05 BetMGM/).waitFor();

  const all = page.getByRole("button", { name: "All times" });
  assert.equal(await all.isDisabled(), true);
  const { x, y, width } = await plot.boundingBox();
  await page.mouse.move(x + width / 3, y + 60);
  await page.mouse.down();
  await page.mouse.move(x + width / 2, y + 60, { steps: 4 });
  await page.mouse.up();
  assert.equal(await all.isEnabled(), true, "a range was chosen");
  await all.click();
  assert.equal(await all.isDisabled(), true);

  await page.getByRole("link", { name: "Show it on the board" }).click();
  await page.getByText("Only Ada <b>Lark</b> v Bea Wren.").waitFor();
  await page.goto(`${new URL(page.url()).origin}/#/event/live/mma/nothing/moneyline/decimal`);
  await page.getByText(/has no event nothing/).waitFor();
});

test("the closing price of an event that started has its reason", async () => {
  const names = ["Cy Finch", "Di Rook"];
  const odds = prices({ betmgm: [1.5, 2.5] })[0];
  const outcomes = odds.outcomes.map((outcome, at) => ({ ...outcome, name: names[at] }));
  await service.ingest([{ ...bout(), sport: "boxing", id: "box", home: names[0], away: names[1] }, { ...odds, sport: "boxing", event: "box", outcomes }]);
  const page = await open("board/live/boxing/moneyline/decimal/us");
  await page.getByText("1 event at 1 bookmaker").waitFor();
  await service.ingest([{ type: "score", sport: "boxing", event: "box", status: "live", home_score: 1, away_score: 0, periods: [], updated_at: second(Date.now()) }]);
  await page.getByRole("link", { name: /live.* · Test Night/ }).click();
  await page.getByRole("row", { name: "BetMGM" }).getByText(/, it started$/).waitFor();
  assert.deepEqual(page.faults, []);
});

test("a board says that the connection is lost, and goes on by itself", async () => {
  const page = await open(BOARD);
  await page.getByText("live", { exact: true }).first().waitFor();
  await page.locator(".board tbody tr").first().waitFor();
  const { host } = new URL(await service.link());
  await service.end();
  await page.getByText("connection lost", { exact: true }).waitFor();
  await service.run("serve", { ODDSBOX_CONSOLE_LISTEN: host });
  await page.locator(".title").getByText("live", { exact: true }).waitFor();
  await service.ingest(prices({ betmgm: [2.15, 1.75] }));
  await page.getByRole("row", { name: "Bea Wren" }).locator("td.book").first().getByText("2.15").waitFor();
  const arrows = page.getByRole("row", { name: "Bea Wren" }).locator("td.book").first().locator(".arrow");
  await arrows.first().getByRole("img", { name: "up in the last hour" }).waitFor();
  await service.ingest(prices({ betmgm: [1.6, 2.6] }));
  await page.getByRole("row", { name: "Bea Wren" }).locator("td.book").first().getByText("2.60").waitFor();
  assert.deepEqual(await arrows.allTextContents(), ["\u25bc", "\u25b2"], "an arrow agrees with its price at once");
});
