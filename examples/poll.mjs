#!/usr/bin/env node
// A polite poller: prints each price that moves, and asks no more often than there can be something new.
//
//     ODDSBOX_KEY=sk_test_ob_... examples/poll.mjs [--once | --count N] [PATH]
//
// PATH is a list of odds, /v1/sports/mma/odds by default; ODDSBOX_URL is http://127.0.0.1:8080 by default. Moves go to
// standard output, everything else to standard error. Needs Node 18 and nothing else. Keys stay on servers: never send
// one to a browser.

import { setTimeout as sleep } from "node:timers/promises";

const LONGEST_BACK_OFF_S = 60;
const note = (text) => console.error(text);

/** The service said no, and asking again would not help. */
class Refused extends Error {}

/** Asking again will help, after `waitS` if the service said how long. */
class Later extends Error {
  constructor(message, waitS) {
    super(message);
    this.waitS = waitS;
  }
}

/** A list of odds as it was last seen. */
class Odds {
  #etag;
  #prices;

  constructor(url, key) {
    this.url = url;
    this.key = key;
  }

  /** Asks once, prints the moves, and gives the seconds until there can be others. */
  async look() {
    const headers = { "X-API-Key": this.key };
    if (this.#etag) headers["If-None-Match"] = this.#etag;
    const answer = await fetch(this.url, { headers, signal: AbortSignal.timeout(10_000) });
    const body = await answer.text();
    if (answer.status === 200) {
      const prices = read(body);
      if (this.#prices) printMoves(this.#prices, prices);
      this.#prices = prices;
      this.#etag = answer.headers.get("ETag");
      note(`200: ${prices.size} prices`);
    } else if (answer.status === 304) {
      note("304: nothing new");
    } else if (answer.status === 429 || answer.status >= 500) {
      const waitS = answer.headers.get("Retry-After");
      throw new Later(explain(answer.status, body), /^\d+$/.test(waitS) ? Number(waitS) : undefined);
    } else {
      throw new Refused(explain(answer.status, body));
    }
    const maxAge = /max-age=(\d+)/.exec(answer.headers.get("Cache-Control"));
    return maxAge ? Number(maxAge[1]) : 30;
  }
}

/** Every price of an answer, by what it is the price of. */
function read(body) {
  const prices = new Map();
  for (const { event_id, bookmaker, market, outcomes } of JSON.parse(body)) {
    for (const { name, price, point } of outcomes) {
      const of = [event_id, bookmaker, market, name];
      if (point !== null) of.push(point);
      prices.set(of.join(" "), price);
    }
  }
  return prices;
}

function printMoves(before, after) {
  for (const of of [...new Set([...before.keys(), ...after.keys()])].sort()) {
    const [old, now] = [before.get(of) ?? "-", after.get(of) ?? "-"];
    if (old !== now) console.log(`${of}: ${old} -> ${now}`);
  }
}

/** What the service says is wrong. */
function explain(status, body) {
  try {
    const { code, message } = JSON.parse(body).error;
    return `${status} ${code}: ${message}`;
  } catch {
    return `${status}`;
  }
}

/** Looks `count` times, or until it is told to stop; the exit code tells how the last look went. */
async function poll(odds, count) {
  let failures = 0;
  for (let looks = 1; ; looks += 1) {
    let waitS;
    try {
      waitS = await odds.look();
      failures = 0;
    } catch (problem) {
      if (problem instanceof Refused) {
        note(problem.message);
        if (problem.message.startsWith("401")) {
          note("ODDSBOX_KEY must be a key of this service: oddsbox keys issue --sandbox --name me");
        }
        return 1;
      }
      failures += 1;
      waitS = problem.waitS ?? Math.min(2 ** failures, LONGEST_BACK_OFF_S) * (0.5 + Math.random() / 2);
      note(`${problem.cause?.message ?? problem.message}; again in ${waitS.toFixed()} s`);
    }
    if (looks === count) return failures ? 1 : 0;
    // Clients that were all told the same second must not come back in the same instant.
    await sleep((waitS + Math.random()) * 1000);
  }
}

const USAGE = "usage: ODDSBOX_KEY=... poll.mjs [--once | --count N] [PATH]";
const key = process.env.ODDSBOX_KEY;
const url = (process.env.ODDSBOX_URL ?? "http://127.0.0.1:8080").replace(/\/+$/, "");
let path = "/v1/sports/mma/odds";
let count = Infinity;
for (let rest = process.argv.slice(2); rest.length > 0; ) {
  const word = rest.shift();
  if (word === "--once") count = 1;
  else if (word === "--count") count = Number(rest.shift());
  else if (word.startsWith("/")) path = word;
  else count = NaN;
}
if (!key || !(count >= 1)) {
  note(key ? USAGE : "Set ODDSBOX_KEY to a key: oddsbox keys issue --sandbox --name me");
  process.exit(2);
}
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(0));
process.exitCode = await poll(new Odds(url + path, key), count);
