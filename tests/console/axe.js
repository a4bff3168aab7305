// Accessibility of a page as axe-core sees it: WCAG 2.0 and 2.1, levels A and AA.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const SOURCE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];

const SCREENS = [{ width: 360, height: 740 }, { width: 1440, height: 900 }];
/** The looks that a page is checked in: each theme and each size of screen once, in the long form each theme on each screen. */
export const LOOKS = ["light", "dark"].flatMap((colorScheme, theme) => SCREENS
  .filter((_, screen) => screen === theme || process.env.ODDSBOX_LONG_TESTS === "1")
  .map((viewport) => ({ viewport, colorScheme })));

/** The violations, one line for each element. Evaluated by the browser itself, so the page's policy stays in force. */
export async function violations(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(SOURCE);
  const found = await page.evaluate((tags) => globalThis.axe.run(document, { runOnly: { type: "tag", values: tags } }), TAGS);
  if (!found.passes.length) throw new Error("axe checked nothing");
  return found.violations.flatMap(({ id, help, nodes }) => nodes.map(({ target, html }) => `${id}: ${help}: ${target} ${html.slice(0, 120)}`));
}
