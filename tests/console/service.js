// A server of its own for each test file: a temporary directory, free ports, and a browser that is signed in.

import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const run = promisify(execFile);
const BINARY = process.env.ODDSBOX;

/** No condition may take longer to come true, however busy the machine is. */
export const PATIENCE_MS = 60_000;

export class Service {
  /** Starts `serve`, or `demo`, with settings as environment variables. */
  static async start(command = "serve", settings = {}) {
    const service = await Service.prepare();
    await service.run(command, settings);
    return service;
  }

  /** A server that does not run yet: its directory. */
  static async prepare() {
    const service = new Service();
    service.data = await mkdtemp(join(tmpdir(), "oddsbox-console-"));
    return service;
  }

  async run(command, settings, listen = "127.0.0.1:0") {
    const environment = { ...process.env, ODDSBOX_CONSOLE_LISTEN: "127.0.0.1:0", ODDSBOX_REFRESH: "1s", NO_COLOR: "1", ...settings };
    this.process = spawn(BINARY, [command, "--data", this.data, "--listen", listen], { env: environment });
    this.log = "";
    this.process.stderr.on("data", (bytes) => { this.log += bytes; });
    this.address = await new Promise((resolve, reject) => {
      let text = "";
      this.process.stdout.on("data", (bytes) => {
        text += bytes;
        const found = text.match(/^ *listening on (\S+)$/m);
        if (found) resolve(found[1]);
      });
      this.process.on("exit", (code) => reject(new Error(`the server ended (${code}): ${this.log}`)));
    });
  }

  /** Stops the server and starts it again, with the console on the same port. */
  async restart() {
    const { host } = new URL(await this.link());
    await this.end();
    await this.run("serve", { ODDSBOX_CONSOLE_LISTEN: host });
  }

  async command(...line) {
    const { stdout } = await run(BINARY, [...line, "--json", "--data", this.data]);
    return JSON.parse(stdout);
  }

  async link() {
    return (await this.command("console")).url;
  }

  /** Takes feed lines into the live world, all of them or none. */
  async ingest(lines) {
    const report = await this.ingestText(lines.map((line) => JSON.stringify(line)).join("\n"), "--strict");
    if (!report.written) throw new Error(JSON.stringify(report));
  }

  /** The report on any text as feed lines of the live world, also where no line was accepted. */
  async ingestText(text, ...options) {
    const file = join(this.data, "lines.ndjson");
    await writeFile(file, text);
    const { stdout } = await run(BINARY, ["ingest", file, ...options, "--json", "--data", this.data]).catch((failed) => failed);
    return JSON.parse(stdout);
  }

  /** The status of a request to the public API. */
  async get(path, key) {
    return (await fetch(`${this.address}${path}`, { headers: { "x-api-key": key } })).status;
  }

  async end(signal = "SIGTERM") {
    const ended = new Promise((resolve) => this.process.on("exit", resolve));
    this.process.kill(signal);
    await ended;
  }

  async stop() {
    await this.end();
    await rm(this.data, { recursive: true });
  }
}

export class Browser {
  static async open() {
    const browser = new Browser();
    browser.chromium = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
    return browser;
  }

  /** A page with cookies of its own; what goes wrong in it is kept in `page.faults`. */
  async page(options = {}) {
    const context = await this.chromium.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    page.faults = [];
    page.on("pageerror", (error) => page.faults.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error") page.faults.push(message.text());
    });
    return page;
  }

  async signedIn(service, options) {
    const page = await this.page(options);
    await page.goto(await service.link());
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    return page;
  }

  close() {
    return this.chromium.close();
  }
}
