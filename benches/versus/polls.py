#!/usr/bin/env python3
"""A large poll: 60 competitions with 40 bookmakers each, at default settings, while clients read.

An upstream on loopback answers as The Odds API does, and changes every price in every round. Prints how long a round takes
from its first request to the publication of its last price, and the p99 of readers meanwhile, beside the p99 without a poll.
"""

import argparse
import concurrent.futures
import http.server
import json
import math
import pathlib
import statistics
import threading
import time
import urllib.parse

import contenders
import measure

COMPETITIONS = [f"soccer_league_{number:02}" for number in range(60)]
BOOKS = [f"book_{number:02}" for number in range(40)]
STAMP = "2000-01-01T00:00:00Z"


def market(key, book, turn):
    price = round(1.5 + (book * 7 + turn * 13) % 100 / 100, 2)
    if key == "h2h":
        names = [("Home", {}), ("Away", {}), ("Draw", {})]
    elif key == "spreads":
        names = [("Home", {"point": -1.5}), ("Away", {"point": 1.5})]
    else:
        names = [("Over", {"point": 2.5}), ("Under", {"point": 2.5})]
    outcomes = [{"name": name, "price": price + 0.1 * at, **point} for at, (name, point) in enumerate(names)]
    return {"key": key, "last_update": STAMP, "outcomes": outcomes}


def body(competition, events, turn):
    """One answer of the upstream."""
    start = time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime(time.time() + 86_400))
    books = [{"key": key, "title": key.title(), "last_update": STAMP,
              "markets": [market(name, at, turn) for name in ("h2h", "spreads", "totals")]} for at, key in enumerate(BOOKS)]
    return json.dumps([{
        "id": f"{competition}_{number:02}", "sport_key": competition, "sport_title": competition.title(), "commence_time": start,
        "home_team": "Home", "away_team": "Away", "bookmakers": books} for number in range(events)]).encode()


class Upstream(http.server.ThreadingHTTPServer):
    """Answers in the shape of The Odds API, and notes when it was asked for odds."""

    daemon_threads = True

    def __init__(self, events):
        super().__init__(("127.0.0.1", 0), Answer)
        self.bodies = {key: [body(key, events, turn) for turn in (0, 1)] for key in COMPETITIONS}
        self.lock, self.asked = threading.Lock(), []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def odds(self, key):
        now = time.time()
        with self.lock:
            turn = len(self.asked) // len(COMPETITIONS)
            self.asked.append(now)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
        return self.bodies[key][turn % 2].replace(STAMP.encode(), stamp.encode())

    def wait_for(self, count):
        while len(self.asked) < count:
            time.sleep(0.01)
        return self.asked[count - 1]


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        parts = urllib.parse.urlsplit(self.path).path.strip("/").split("/")
        if parts == ["v4", "sports"]:
            sent = json.dumps([{"key": key, "group": "Soccer", "title": key.title(), "description": "", "active": True,
                                "has_outrights": False} for key in COMPETITIONS]).encode()
        elif len(parts) == 4 and parts[3] == "odds" and parts[2] in self.server.bodies:
            sent = self.server.odds(parts[2])
        else:
            sent = b"[]"
        self.send_response(200)
        for name, value in [("Content-Type", "application/json"), ("Content-Length", len(sent)),
                            ("x-requests-remaining", 100_000_000), ("x-requests-used", 0), ("x-requests-last", 3)]:
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_):
        pass


def wait_until_published(oddsbox, key, since):
    """Waits until the prices of every competition are at least as new as a moment."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
    for competition in COMPETITIONS:
        target = f"/v1/sports/soccer/odds?competition={competition}&regions=us&limit=1"
        while True:
            _, _, sent = contenders.get(oddsbox.port, target, {"X-API-Key": key})
            records = json.loads(sent)
            if isinstance(records, list) and records and records[0]["last_update"] >= stamp:
                break
            time.sleep(0.1)
    return time.time()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--events", type=int, default=10, help="of each competition")
    arguments.add_argument("--seconds", type=int, default=2, help="of readers in each round")
    arguments.add_argument("--connections", type=int, default=8)
    arguments.add_argument("--binary", type=pathlib.Path, help="instead of building one")
    options = arguments.parse_args()
    binary = options.binary or contenders.build()[0]
    upstream = Upstream(options.events)
    feed = {"KIND": "the-odds-api", "URL": f"http://127.0.0.1:{upstream.server_port}/v4", "KEY": "key", "SPORTS": "soccer"}
    with measure.loaded_from() as name:
        oddsbox = contenders.Oddsbox(
            binary, pathlib.Path(name), **{f"ODDSBOX_FEEDS_UPSTREAM_{field}": value for field, value in feed.items()})
        try:
            key, size = oddsbox.issue_key(), len(COMPETITIONS)
            url = f"http://127.0.0.1:{oddsbox.port}/v1/sports/soccer/odds?limit=100"

            def read():
                return measure.wrk_once(oddsbox.pid, url, {"X-API-Key": key}, options.seconds, options.connections)

            def poll_beside_readers():
                """Readers from the first request of the next poll on, and when it has asked for everything and is published."""
                rounds = math.ceil(len(upstream.asked) / size)
                begun = upstream.wait_for(rounds * size + 1)
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    readers = pool.submit(read)
                    asked_s = upstream.wait_for((rounds + 1) * size) - begun
                    published_s = wait_until_published(oddsbox, key, begun) - begun
                    return readers.result(), asked_s, published_s

            sent = sum(len(bodies[0]) for bodies in upstream.bodies.values())
            records = size * options.events * len(BOOKS) * 3
            print(f"{size} competitions, {len(BOOKS)} bookmakers, {records} records, {sent / 1e6:.0f} MB in each round", flush=True)
            wait_until_published(oddsbox, key, upstream.wait_for(size) - 5)
            calm, busy = [], []
            for number in range(1, options.rounds + 1):
                beside, asked_s, published_s = measure.undisturbed(poll_beside_readers)
                busy.append(beside)
                calm.append(measure.undisturbed(read))
                print(f"round {number}: asked for {asked_s:.1f} s, published {published_s:.1f} s after its first request; "
                      f"p99 {busy[-1].p99_micros / 1e3:.2f} ms, without a poll {calm[-1].p99_micros / 1e3:.2f} ms", flush=True)
            ratio = statistics.median(r.p99_micros for r in busy) / statistics.median(r.p99_micros for r in calm)
            print(f"p99 of readers during a poll, to without: {ratio:.2f}")
            print(f"memory: {measure.memory_bytes(oddsbox.pid) / 1e6:.0f} MB")
        finally:
            oddsbox.stop()
            upstream.shutdown()


if __name__ == "__main__":
    main()
