// The console without violations of WCAG 2, levels A and AA: every view and every dialog, in both themes, on a small and
// on a large screen: see LOOKS.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LOOKS, violations } from "./axe.js";
import { Browser, Service } from "./service.js";
import { startUpstream } from "./upstream.js";

let upstream;
let service;
let browser;

before(async () => {
  upstream = await startUpstream();
  service = await Service.start("serve", upstream.settings);
  browser = await Browser.open();
  await service.ingestText("nonsense\n{\"type\":\"chess\"}\n");
  await service.command("keys", "issue", "--live", "--name", "axe", "--approved-by", "test", "--groups", "combat", "--per-month", "100");
  const { id } = await service.command("keys", "issue", "--sandbox", "--name", "old");
  await service.command("keys", "revoke", id);
  await service.command("keys", "rotate", "axe", "--grace", "24h");
  await service.command("feeds", "token", "scraper");
});

after(async () => {
  await browser?.close();
  await service?.stop();
  await upstream?.close();
});

/** What must be on each page before it is looked at. */
const VIEWS = {
  overview: (page) => page.locator(".worlds tbody tr").first().waitFor(),
  "board/live/mma/moneyline/decimal/uk,eu,au": (page) => page.locator(".board tbody tr").first().waitFor(),
  "board/live/golf/outright/american/us": (page) => page.getByText(/^No prices/).waitFor(),
  "board/sandbox/golf/outright/fractional/us": (page) => page.getByRole("button", { name: /^Show all/ }).first().click(),
  "board/sandbox/tennis/moneyline/american/us,uk,eu,au": (page) => page.locator(".board tbody tr").first().waitFor(),
  "board/sandbox/mma/moneyline/decimal/us": async (page) => {
    await page.locator(".hold:not([hidden])").first().click();
    await page.getByRole("tooltip").getByText("Probability").waitFor();
  },
  "board/sandbox/soccer/spread/decimal/us": async (page) => {
    await page.getByRole("button", { name: "Earlier change" }).click();
    await page.getByText(/^Not current/).waitFor();
    await page.locator(".board tbody tr").first().waitFor();
  },
  edges: async (page) => {
    await page.getByRole("button", { name: "sandbox" }).click();
    await page.getByLabel("Minimum %").fill("0");
    await page.locator(".edges tbody tr").first().waitFor();
  },
  event: async (page) => {
    await page.goto(`${new URL(page.url()).origin}/#/board/sandbox/tennis/moneyline/decimal/us`);
    await page.locator(".board a.meta").first().click();
    await page.locator("path.step.best").waitFor({ state: "attached" });
    await page.locator(".key-toggle").first().click();
  },
  feeds: async (page) => {
    await page.locator(".sources tbody tr").first().waitFor();
    for (const summary of await page.locator("summary").all()) await summary.click();
  },
  keys: (page) => page.getByLabel("Show revoked and expired").check(),
  audit: (page) => page.locator("tbody tr").first().waitFor(),
  service: (page) => page.getByText("Not in maintenance.").waitFor(),
};

/** The dialogs: the page that each is on, and the button that opens it. */
const DIALOGS = [["keys", "Issue a key"], ["keys", "Edit axe"], ["keys", "Rotate axe"], ["keys", "Undo rotation axe"], ["keys", "Revoke axe"], ["feeds", "Issue a token"], ["feeds", "Revoke scraper"], ["service", "Begin maintenance"], ["service", "Make a backup"]];

for (const { viewport, colorScheme } of LOOKS) {
  test(`no view and no dialog has a violation at ${viewport.width} px in the ${colorScheme} theme`, async () => {
    const page = await browser.signedIn(service, { viewport, colorScheme });
    const origin = new URL(page.url()).origin;
    for (const [path, prepare] of Object.entries(VIEWS)) {
      await page.goto(`${origin}/#/${path}`);
      await prepare(page);
      assert.deepEqual(await violations(page), [], path);
      const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(content <= screen, `${path} is ${content} px wide on a screen of ${screen} px`);
      const outside = await page.locator(".row-actions button").evaluateAll((buttons) => buttons
        .filter((button) => button.getBoundingClientRect().right > innerWidth).map((button) => button.ariaLabel));
      assert.deepEqual(outside, [], `${path}: every action can be reached without scrolling sideways`);
    }
    for (const [path, button] of DIALOGS) {
      await page.goto(`${origin}/#/${path}`);
      await page.getByRole("button", { name: button, exact: true }).click();
      if (button === "Issue a key") await page.getByLabel("Kind").selectOption("production");
      assert.deepEqual(await violations(page), [], button);
      await page.keyboard.press("Escape");
      await page.locator("dialog").waitFor({ state: "detached" });
    }
    assert.deepEqual(page.faults, []);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Signed out" }).waitFor();
    assert.deepEqual(await violations(page), [], "signed out");
    await page.goto(`${origin}/sign-in/wrong`);
    await page.getByRole("heading", { name: "This link does not open" }).waitFor();
    assert.deepEqual(await violations(page), [], "a wrong link");
    await page.context().close();
  });
}
