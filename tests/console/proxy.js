// What serves examples/browser: Caddy with the Caddyfile of that folder, or where Caddy is not installed, a server that does the
// same. In front of it a relay that keeps every byte that a browser sent or received.

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { connect, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PATIENCE_MS } from "./service.js";

const FOLDER = fileURLToPath(new URL("../../examples/browser/", import.meta.url));
const FILES = { "/": "index.html", "/index.html": "index.html", "/app.js": "app.js", "/style.css": "style.css" };
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css" };

const listen = (server) => new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address().port)));

async function freePort() {
  const server = createTcpServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Caddy at a port, or nothing where it is not installed. */
async function startCaddy(service, key, scratch) {
  const port = await freePort();
  const environment = {
    ...process.env, ODDSBOX_KEY: key, ODDSBOX_PAGE: `127.0.0.1:${port}`, ODDSBOX_UPSTREAM: new URL(service).host,
    XDG_CONFIG_HOME: scratch, XDG_DATA_HOME: scratch,
  };
  const caddy = spawn("caddy", ["run", "--config", join(FOLDER, "Caddyfile")], { cwd: FOLDER, env: environment });
  if (!(await new Promise((resolve) => caddy.on("spawn", () => resolve(true)).on("error", () => resolve(false))))) return undefined;
  let log = "";
  caddy.stdout.resume();
  caddy.stderr.on("data", (bytes) => { log += bytes; });
  const ended = new Promise((resolve) => caddy.on("exit", resolve));
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await fetch(`http://127.0.0.1:${port}/`).then(() => true, () => false))) {
    if (caddy.exitCode !== null || Date.now() > deadline) {
      caddy.kill("SIGKILL");
      throw new Error(`Caddy did not start: ${log}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { port, log: () => log, close: () => { caddy.kill("SIGTERM"); return ended; } };
}

/** The same by Node.js. */
async function startNode(service, key) {
  const server = createServer(async (from, to) => {
    const file = FILES[new URL(from.url, service).pathname];
    if (file) {
      to.writeHead(200, { "content-type": TYPES[file.split(".")[1]], "content-security-policy": "default-src 'none'; connect-src 'self'; img-src data:; script-src 'self'; style-src 'self'" });
      return to.end(await readFile(join(FOLDER, file)));
    }
    if (from.method !== "GET" || !from.url.startsWith("/v1/")) return to.writeHead(404).end();
    const { authorization, cookie, ...headers } = from.headers;
    const upstream = request(new URL(from.url, service), { headers: { ...headers, "x-api-key": key } }, (answer) => {
      to.writeHead(answer.statusCode, answer.headers).flushHeaders();
      answer.on("error", () => to.destroy()).pipe(to);
    });
    upstream.on("error", () => (to.headersSent ? to.destroy() : to.writeHead(502).end())).end();
    to.on("close", () => upstream.destroy());
  });
  const port = await listen(server);
  return { port, log: () => "", close: () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); }) };
}

/**
 * Serves the page for a service, with its key. `sent` and `received` are what browsers sent and received; between hold() and
 * release(), what they send waits.
 */
export async function startProxy(service, key, scratch) {
  const proxy = (await startCaddy(service, key, scratch)) ?? (await startNode(service, key));
  const sockets = new Set();
  let released = Promise.resolve();
  const relay = createTcpServer(async (client) => {
    sockets.add(client.on("error", () => {}));
    await released;
    const server = connect(proxy.port, "127.0.0.1");
    client.on("data", (bytes) => { kept.sent += bytes; });
    server.on("data", (bytes) => { kept.received += bytes; });
    for (const [one, other] of [[client, server], [server, client]]) {
      sockets.add(one);
      one.on("error", () => {}).on("close", () => { other.destroy(); sockets.delete(one); }).pipe(other);
    }
  });
  const kept = { sent: "", received: "", log: proxy.log };
  kept.url = `http://127.0.0.1:${await listen(relay)}`;
  const cut = () => sockets.forEach((socket) => socket.destroy());
  kept.hold = () => {
    cut();
    released = new Promise((resolve) => { kept.release = resolve; });
  };
  kept.close = async () => {
    relay.close();
    cut();
    await proxy.close();
  };
  return kept;
}
