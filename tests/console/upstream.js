// A fake of The Odds API for polled feeds: bookmakers that share a title, an event that is rejected, and credits.

import { createServer } from "node:http";

const time = (hours) => new Date(Date.now() + hours * 3_600_000).toISOString().replace(/\.\d+Z/, "Z");

function bookmaker(key, title, home, away) {
  const outcomes = [{ name: "Ada Lark", price: home }, { name: "Bea Wren", price: away }];
  return { key, title, last_update: time(0), markets: [{ key: "h2h", last_update: time(0), outcomes }] };
}

const BOOKMAKERS = () => [
  bookmaker("betfair_ex_uk", "Betfair Exchange", 1.91, 2.05),
  bookmaker("betfair_ex_eu", "Betfair Exchange", 1.9, 2.1),
  bookmaker("betfair_ex_au", "Betfair Exchange", 1.909, 2.02),
  bookmaker("paddypower", "Paddy Power", 1.83, 2.0),
];

const ODDS = () => [
  { id: "polled-1", sport_key: "mma_mixed_martial_arts", sport_title: "MMA", commence_time: time(2), home_team: "Ada Lark", away_team: "Bea Wren", bookmakers: BOOKMAKERS() },
  { id: "polled-2", sport_key: "mma_mixed_martial_arts", sport_title: "MMA", commence_time: "soon", home_team: "Cy Finch", away_team: "Di Rook", bookmakers: [] },
];

/** The server, and the settings that make an oddsbox poll it. */
export async function startUpstream() {
  const server = createServer((request, response) => {
    if (request.url.includes("soccer_nowhere")) {
      response.writeHead(404, { "content-type": "application/json" });
      response.end(JSON.stringify({ message: "Unknown sport", error_code: "UNKNOWN_SPORT" }));
      return;
    }
    const isOdds = request.url.includes("/odds");
    response.writeHead(200, { "content-type": "application/json", "x-requests-remaining": "450", "x-requests-used": "50", "x-requests-last": isOdds ? "3" : "0" });
    response.end(JSON.stringify(isOdds ? ODDS() : []));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const feed = { KIND: "the-odds-api", URL: `http://127.0.0.1:${server.address().port}/v4`, KEY: "test", SPORTS: "mma_mixed_martial_arts,soccer_nowhere", REGIONS: "uk,eu,au", MARKETS: "h2h", SCORES: "false" };
  const settings = Object.fromEntries(Object.entries(feed).map(([name, value]) => [`ODDSBOX_FEEDS_UPSTREAM_${name}`, value]));
  return { settings, close: () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); }) };
}
