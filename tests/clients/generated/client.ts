// Calls a running service with openapi-fetch and the types that openapi-typescript makes from its /openapi.json. run.sh
// generates them as oddsbox.ts.
//   BASE_URL=http://… KEY=sk_live_… node client.js
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./oddsbox.js";

type OddsRecord = components["schemas"]["OddsRecord"];
type OddsQuery = NonNullable<paths["/v1/sports/{sport_key}/odds"]["get"]["parameters"]["query"]>;
type OddsFormat = components["schemas"]["OddsFormat"];

const { BASE_URL: baseUrl, KEY: key } = process.env;
assert(baseUrl && key, "BASE_URL and KEY must be set");
// Lists are separated by commas.
const querySerializer = { array: { style: "form", explode: false } } as const;
const clientOf = (secret: string) => createClient<paths>({ baseUrl, headers: { "X-API-Key": secret }, querySerializer });
const client = clientOf(key);

/** The body of a response, which must not be an error. */
function body<T>(answer: { data?: T; error?: unknown }): T {
  assert(answer.data !== undefined, JSON.stringify(answer.error));
  return answer.data;
}

/** Without `group=bout`, odds are a list of records. */
async function odds(sport_key: string, query: OddsQuery): Promise<OddsRecord[]> {
  const records = body(await client.GET("/v1/sports/{sport_key}/odds", { params: { path: { sport_key }, query } }));
  assert(Array.isArray(records));
  return records;
}

/** The time of a publication, as the clock has passed it. */
async function publishedTime(): Promise<string> {
  for (;;) {
    const status = body(await client.GET("/v1/status"));
    assert.equal(status.status, "ok");
    assert(status.simulated && status.rate_limit.burst_per_minute > 0);
    if (status.history_since && status.history_since < status.server_time) return status.server_time;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

/** The same records in each format, as they were at one time. */
async function checkFormats(as_of: string) {
  const of = async (odds_format: OddsFormat) => {
    const records = await odds("tennis", { odds_format, market: ["moneyline"], limit: 20, as_of });
    assert(records.length > 0 && records.every((record) => record.format === odds_format && record.market === "moneyline"));
    return records;
  };
  const [american, decimal, fractional] = [await of("american"), await of("decimal"), await of("fractional")];
  decimal.forEach((record, at) => {
    assert(record.id === american[at]?.id && record.id === fractional[at]?.id);
    record.outcomes.forEach(({ price }, of) => {
      const [whole, fraction] = [american[at]?.outcomes[of]?.price, fractional[at]?.outcomes[of]?.price];
      assert(typeof price === "number" && typeof whole === "number" && typeof fraction === "string");
      const [numerator, denominator] = fraction.split("/").map(Number);
      assert(Math.abs(Number(numerator) / Number(denominator) + 1 - price) < 0.02 * price, `${fraction} is not ${price}`);
      const expected = price >= 2 ? 100 * (price - 1) : -100 / (price - 1);
      assert(Number.isInteger(whole) && Math.abs(expected - whole) <= 1 + 0.03 * Math.abs(whole), `${whole} is not ${price}`);
    });
  });
}

async function checkPages(as_of: string) {
  const page = (query: { limit: number; after?: string }) =>
    client.GET("/v1/sports/{sport_key}/events", { params: { path: { sport_key: "tennis" }, query: { as_of, ...query } } });
  const whole = body(await page({ limit: 500 })).map((event) => event.id);
  const paged: string[] = [];
  for (let after: string | undefined; ; ) {
    const answer = await page(after === undefined ? { limit: 3 } : { limit: 3, after });
    paged.push(...body(answer).map((event) => event.id));
    after = /[?&]after=([0-9a-f]+)[^>]*>; rel="next"/.exec(answer.response.headers.get("link") ?? "")?.[1];
    if (after === undefined) break;
  }
  assert(whole.length > 3);
  assert.deepEqual(paged, whole);
}

async function checkHistory(as_of: string) {
  const [record] = await odds("tennis", { odds_format: "decimal", limit: 1, as_of });
  assert(record);
  const path = { sport_key: "tennis", event_id: record.event_id };
  const query: OddsQuery = { bookmaker: record.bookmaker, market: [record.market], odds_format: "decimal" };
  const { lines } = body(await client.GET("/v1/sports/{sport_key}/events/{event_id}/lines", { params: { path, query } }));
  const line = lines[0];
  assert(line && lines.length === 1 && line.opening.at <= as_of);
  assert.deepEqual(line.points.filter((point) => point.at <= as_of).at(-1)?.outcomes, record.outcomes);
}

async function checkErrors() {
  const wrongKey = await clientOf("sk_live_ob_wrong").GET("/v1/sports");
  assert.deepEqual([wrongKey.response.status, wrongKey.error?.error.code], [401, "authentication_failed"]);
  const path = { sport_key: "tennis" };
  const wrongValue = await client.GET("/v1/sports/{sport_key}/odds", { params: { path, query: { limit: 0 } } });
  assert.deepEqual([wrongValue.response.status, wrongValue.error?.error.param], [400, "limit"]);
  const noEvent = await client.GET("/v1/sports/{sport_key}/events/{event_id}", { params: { path: { ...path, event_id: "nobody" } } });
  assert.equal(noEvent.error?.error.code, "event_not_found");
}

const asOf = await publishedTime();
const usage = body(await client.GET("/v1/usage"));
assert(usage.kind === "production" && usage.hours.length === 24 && usage.days.length === 31 && usage.minute.remaining > 0);
const { sports } = body(await client.GET("/v1/sports"));
assert(sports.some((sport) => sport.key === "tennis" && sport.active && sport.events > 0));
await checkFormats(asOf);
const [record] = await odds("tennis", { include: "event", regions: ["us", "uk"], limit: 1 });
assert(record?.event);
const event = body(await client.GET("/v1/sports/{sport_key}/events/{event_id}", { params: { path: { sport_key: "tennis", event_id: record.event_id } } }));
assert(event.home_team === record.event.home_team && event.markets.includes("moneyline"));
const bouts = body(await client.GET("/v1/sports/{sport_key}/odds", { params: { path: { sport_key: "mma" }, query: { group: "bout" } } }));
assert(!Array.isArray(bouts) && bouts.bouts[0]?.books[0]?.outcomes[0]?.price);
const scores = body(await client.GET("/v1/sports/{sport_key}/scores", { params: { path: { sport_key: "tennis" }, query: { status: "live" } } }));
assert(scores.every((score) => score.status === "live" && score.home_score !== undefined));
await checkPages(asOf);
await checkHistory(asOf);
const v4 = body(await client.GET("/v4/sports/upcoming/odds", { params: { query: { regions: ["us"], includeLinks: true } } }));
assert.equal(v4[0]?.bookmakers[0]?.markets[0]?.link, null);
await checkErrors();
console.log("openapi-typescript with openapi-fetch: ok");
