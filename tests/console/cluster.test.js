// The console of a node of a cluster, in a real browser: with answers of nodes that are made up and, where there is a
// redis-server, with two real nodes.

import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import { LOOKS, violations } from "./axe.js";
import { Browser, PATIENCE_MS, Service } from "./service.js";

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

const node = (name, fields = {}) => ({
  name, version: "0.2.0", address: "10.0.0.1:8080", started: "2026-11-14T12:00:00Z", position: "1794657600000-4", behind_ms: 0, lease_ms: 9400, serves_when_cut_off: false, on_duty: false, ...fields,
});
const FOLLOWING = {
  node: "a <b>", standing: "following", detail: null, position: "1794657600000-4", contact_ms: 420, last: "1794657600000-4",
  nodes: [node("a <b>", { on_duty: true }), node("b", { lease_ms: 0, behind_ms: 2345, serves_when_cut_off: true, position: "1794657597655-0" }), node("c", { version: null, address: null, started: null })],
};

/** Answers of the server as those of a node: `change` gets the name of a command and its answer, and returns another answer, or `null` for none. */
async function changeAnswers(page, change) {
  await page.route("**/api/command", async (route) => {
    const { command } = route.request().postDataJSON();
    const changed = command === "cluster" ? change(command, null) : null;
    if (changed) return route.fulfill({ json: changed });
    const response = await route.fetch();
    const answer = change(command, await response.json());
    if (answer === null) return route.abort();
    return route.fulfill({ response, json: answer });
  });
}

/** The same for what every page asks for. */
const asNode = (cluster) => (command, answer) => {
  if (command === "cluster") return cluster();
  if (command !== "status") return answer;
  const { node, standing } = cluster();
  return { ...answer, server: { ...answer.server, cluster: { node, standing, leased_nodes: 2 } } };
};

const facts = (page) => page.locator(".fact").evaluateAll((items) => Object.fromEntries(items.map((item) => [item.querySelector("dt").textContent, item.querySelector("dd").textContent])));

test("a single node has no page about its cluster", async () => {
  const page = await browser.signedIn(service);
  await page.getByText("Requests since start").waitFor();
  await page.locator("#state").waitFor();
  assert.match(await page.locator("#state").textContent(), /^(ok|degraded)$/, service.log);
  assert.equal(await page.getByRole("link", { name: "Cluster" }).count(), 0);
  assert.equal(await page.locator(".fact", { hasText: "Cluster" }).isVisible(), false);
  assert.deepEqual(page.faults, []);
  await page.goto(`${new URL(page.url()).origin}/#/cluster`);
  await page.getByText("This server is a single node: cluster.url is not set.").waitFor();
  assert.equal(await page.locator("table").isVisible(), false);
});

for (const { viewport, colorScheme } of LOOKS) {
  test(`every node is shown, and where this one stands, at ${viewport.width} px in the ${colorScheme} theme`, async () => {
    const page = await browser.signedIn(service, { viewport, colorScheme });
    let cluster = FOLLOWING;
    await changeAnswers(page, asNode(() => cluster));
    await page.getByRole("link", { name: "Cluster" }).click();
    await page.getByRole("heading", { name: "Cluster", level: 1 }).waitFor();
    const region = page.getByRole("region", { name: "Nodes" });
    const cells = async (name) => (await region.getByRole("row", { name }).locator("td").allTextContents()).slice(0, 7);
    await region.getByRole("row", { name: "a <b> this node" }).waitFor();
    assert.deepEqual(await cells("a <b> this node"), ["9.4 s", "1794657600000-4", "–", "yes", "refuses", "0.2.0", "10.0.0.1:8080"]);
    assert.deepEqual(await cells(/^b/), ["ended", "1794657597655-0", "2.3 s", "–", "serves", "0.2.0", "10.0.0.1:8080"]);
    assert.deepEqual(await cells(/^c/), ["9.4 s", "1794657600000-4", "–", "–", "refuses", "–", "–"]);
    assert.match(await region.getByRole("row", { name: /^b/ }).locator("td").last().textContent(), /^14 Nov, \d\d:00$/);
    assert.deepEqual(await facts(page), {
      "This node": "a <b>", Standing: "following", "Last contact with the engine": "0.4 s ago", Position: "1794657600000-4", "Last entry of the log": "1794657600000-4", "Nodes with a lease": "2",
    });
    assert.equal(await page.locator(".banner").isVisible(), false);
    const check = async () => {
      assert.deepEqual(await violations(page), []);
      const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(content <= screen, `it is ${content} px wide on a screen of ${screen} px`);
    };
    await check();

    cluster = { ...FOLLOWING, standing: "cut off", detail: "the engine does not answer", contact_ms: 75_000 };
    await page.getByText("The engine does not answer.").waitFor();
    await page.getByText("75 s ago").waitFor();
    await page.getByText("The nodes are shown as of the last contact.").waitFor();
    await check();
    cluster = { ...FOLLOWING, standing: "following", contact_ms: null, last: null, nodes: [] };
    await page.getByText("The engine has not answered yet.").waitFor();
    assert.equal((await facts(page))["Last contact with the engine"], "never");
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByText("a <b>, following").waitFor();
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
}

test("a change that nodes have not confirmed says which, and what to do", async () => {
  const { id } = await service.command("keys", "issue", "--sandbox", "--name", "desk");
  await service.command("feeds", "token", "scraper");
  const page = await browser.signedIn(service);
  let unconfirmed = ["b", "c <i>"];
  let isListed = true;
  await changeAnswers(page, (command, answer) => {
    if (["keys-rotate", "keys-rotate-undo", "keys-set", "keys-revoke", "feeds-token-revoke"].includes(command)) return { ...answer, unconfirmed };
    return command === "keys-list" && !isListed ? null : answer;
  });
  const warning = (again) => `Changed, but not confirmed by b, c <i>. A node that is cut off from the engine of the cluster may go by what was before until it is back. Stop it, or ${again} when the Cluster page shows it with a lease.`;
  const alert = page.getByRole("dialog").getByRole("alert").filter({ hasText: "not confirmed" });
  const warned = async (title, again) => {
    const box = page.getByRole("dialog", { name: title });
    await box.waitFor();
    assert.equal(await alert.textContent(), warning(again));
    await page.locator("dialog:modal").nth(1).waitFor({ state: "detached" });
    assert.deepEqual(await violations(page), [], title);
    await box.getByRole("button", { name: "Close" }).click();
    await page.locator("dialog").waitFor({ state: "detached" });
  };
  await page.getByRole("link", { name: "Keys" }).click();

  await page.getByRole("button", { name: "Edit desk" }).click();
  await page.getByLabel("Requests a day").fill("123");
  await page.getByRole("button", { name: "Save" }).click();
  await warned("Key desk saved", "edit the key and save it again");
  await page.getByRole("row", { name: "desk" }).getByText("of 123").waitFor();

  // The secret is there with the warning, also if nothing can be read after the rotation.
  isListed = false;
  await page.getByRole("button", { name: "Rotate desk" }).click();
  await page.getByLabel("The old secret").selectOption("works 24 hours more");
  await page.getByRole("button", { name: "Rotate", exact: true }).click();
  const rotated = await page.locator("output.secret").textContent();
  assert.equal(await service.get("/v1/sports", rotated), 200);
  assert.equal(await alert.textContent(), warning("edit the key and save it again"));
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Rotate desk" }).waitFor({ state: "detached" });
  assert.equal(await page.locator("output.secret").textContent(), rotated, "only its button closes it");
  assert.deepEqual(await violations(page), [], "a secret with a warning");
  isListed = true;
  await page.getByRole("button", { name: "I have stored it" }).click();

  await page.getByRole("button", { name: "Undo rotation desk" }).click();
  await page.getByRole("button", { name: "Undo rotation", exact: true }).click();
  await warned("Rotation of desk undone", "edit the key and save it again");

  await page.getByRole("button", { name: "Revoke desk" }).click();
  await page.getByRole("button", { name: "Revoke", exact: true }).click();
  await warned("Key desk revoked", `run oddsbox keys revoke ${id}`);
  await page.getByRole("row", { name: "desk" }).waitFor({ state: "detached" });

  await page.getByRole("link", { name: "Feeds" }).click();
  await page.getByRole("button", { name: "Revoke scraper" }).click();
  await page.getByRole("button", { name: "Revoke", exact: true }).click();
  await warned("Token of scraper revoked", "run oddsbox feeds token scraper --revoke");

  // All nodes have confirmed it: a line that goes away by itself.
  unconfirmed = [];
  await service.command("keys", "issue", "--sandbox", "--name", "till");
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("button", { name: "Revoke till" }).click();
  await page.getByRole("button", { name: "Revoke", exact: true }).click();
  await page.locator("#notice", { hasText: "Key till revoked" }).waitFor();
  await page.locator("dialog").waitFor({ state: "detached" });
  // Requests were made to fail, which the browser notes.
  assert.deepEqual(page.faults.filter((fault) => !fault.includes("net::ERR_FAILED")), []);
});

/** As in the tests of the engine: without a server the test is left out, unless it is required. */
const hasRedis = spawnSync("redis-server", ["--version"]).status === 0 || "ODDSBOX_REQUIRE_REDIS" in process.env;

/** An engine that keeps nothing, on a free port. */
async function startRedis() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  const redis = spawn("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
  await new Promise((resolve, reject) => {
    redis.stdout.on("data", (text) => { if (/ready to accept connections/i.test(text)) resolve(); });
    redis.on("exit", (code) => reject(new Error(`redis-server ended (${code})`)));
  });
  return { url: `redis://127.0.0.1:${port}`, kill: () => redis.kill("SIGKILL") };
}

test("two nodes see each other, and that their engine is gone", { skip: hasRedis ? false : "there is no redis-server" }, async () => {
  const redis = await startRedis();
  const settings = (node) => ({ ODDSBOX_CLUSTER_URL: redis.url, ODDSBOX_CLUSTER_NODE: node, ODDSBOX_CLUSTER_LEASE: "3s" });
  const nodes = [await Service.prepare(), await Service.prepare()];
  const begun = [];
  try {
    await promisify(execFile)(process.env.ODDSBOX, ["cluster", "init", "--data", nodes[0].data], { env: { ...process.env, ...settings("first") } });
    for (const [at, name] of ["first", "second"].entries()) {
      begun.push(nodes[at]);
      const late = setTimeout(PATIENCE_MS, null, { ref: false }).then(() => { throw new Error(`${name} does not serve: ${nodes[at].log}`); });
      await Promise.race([nodes[at].run("serve", settings(name)), late]);
    }
    const page = await browser.signedIn(nodes[1]);
    await page.getByText("second, following").waitFor();
    await page.getByRole("link", { name: "Cluster" }).click();
    const region = page.getByRole("region", { name: "Nodes" });
    await region.getByRole("row", { name: /^first .* yes refuses/ }).waitFor();
    await region.getByRole("row", { name: /^second this node .* \u2013 refuses \d+\.\d+\.\d+ / }).waitFor();
    await page.locator(".fact", { hasText: "Nodes with a lease" }).getByText("2", { exact: true }).waitFor();
    assert.deepEqual(page.faults, []);
    redis.kill();
    await page.getByText("The engine does not answer.").waitFor();
    await page.getByText("The nodes are shown as of the last contact.").waitFor();
    assert.equal((await facts(page)).Standing, "cut off");
  } finally {
    redis.kill();
    for (const node of begun) await node.stop();
  }
});
