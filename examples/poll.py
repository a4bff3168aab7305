#!/usr/bin/env python3
"""A polite poller: prints each price that moves, and asks no more often than there can be something new.

    ODDSBOX_KEY=sk_test_ob_... examples/poll.py [--once | --count N] [PATH]

PATH is a list of odds, /v1/sports/mma/odds by default; ODDSBOX_URL is http://127.0.0.1:8080 by default. Moves go to
standard output, everything else to standard error. Needs Python 3.9 and nothing else.
"""

import argparse
import gzip
import json
import os
import random
import re
import signal
import sys
import time
import urllib.error
import urllib.request

LONGEST_BACK_OFF_S = 60


class Refused(Exception):
    """The service said no, and asking again would not help."""


class Later(Exception):
    """Asking again will help, after `wait_s` if the service said how long."""

    def __init__(self, text, wait_s):
        super().__init__(text)
        self.wait_s = wait_s


class Odds:
    """A list of odds as it was last seen."""

    def __init__(self, url, key):
        self.url = url
        self.key = key
        self.etag = None
        self.prices = None

    def look(self):
        """Asks once, prints the moves, and gives the seconds until there can be others."""
        status, headers, body = self.ask()
        if status == 200:
            prices = read(body)
            if self.prices is not None:
                print_moves(self.prices, prices)
            self.prices, self.etag = prices, headers["ETag"]
            note(f"200: {len(prices)} prices")
        elif status == 304:
            note("304: nothing new")
        elif status == 429 or status >= 500:
            wait_s = headers.get("Retry-After", "")
            raise Later(explain(status, body), int(wait_s) if wait_s.isdigit() else None)
        else:
            raise Refused(explain(status, body))
        max_age = re.search(r"max-age=(\d+)", headers.get("Cache-Control", ""))
        return int(max_age[1]) if max_age else 30

    def ask(self):
        headers = {"X-API-Key": self.key, "Accept-Encoding": "gzip"}
        if self.etag:
            headers["If-None-Match"] = self.etag
        request = urllib.request.Request(self.url, headers=headers)
        try:
            answer = urllib.request.urlopen(request, timeout=10)
        except urllib.error.HTTPError as error:  # urllib's name for every answer but 2xx, 304 among them
            answer = error
        with answer:
            body = answer.read()
        if answer.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        return answer.status, answer.headers, body


def read(body):
    """Every price of an answer, by what it is the price of."""
    prices = {}
    for record in json.loads(body):
        for outcome in record["outcomes"]:
            of = [record["event_id"], record["bookmaker"], record["market"], outcome["name"]]
            if outcome["point"] is not None:
                of.append(str(outcome["point"]))
            prices[" ".join(of)] = outcome["price"]
    return prices


def print_moves(before, after):
    for of in sorted(before.keys() | after.keys()):
        old, new = before.get(of, "-"), after.get(of, "-")
        if old != new:
            print(f"{of}: {old} -> {new}", flush=True)


def explain(status, body):
    """What the service says is wrong."""
    try:
        error = json.loads(body)["error"]
        return f"{status} {error['code']}: {error['message']}"
    except (ValueError, KeyError, TypeError):
        return f"{status}"


def note(text):
    print(text, file=sys.stderr, flush=True)


def poll(odds, count):
    """Looks `count` times, or until it is told to stop; the exit code tells how the last look went."""
    looks = failures = 0
    while True:
        try:
            wait_s = odds.look()
            failures = 0
        except Refused as refusal:
            note(refusal)
            if str(refusal).startswith("401"):
                note("ODDSBOX_KEY must be a key of this service: oddsbox keys issue --sandbox --name me")
            return 1
        except (Later, OSError, ValueError) as problem:
            failures += 1
            wait_s = getattr(problem, "wait_s", None)
            if wait_s is None:
                wait_s = min(2**failures, LONGEST_BACK_OFF_S) * random.uniform(0.5, 1)
            note(f"{problem}; again in {wait_s:.0f} s")
        looks += 1
        if looks == count:
            return 1 if failures else 0
        # Clients that were all told the same second must not come back in the same instant.
        time.sleep(wait_s + random.random())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", nargs="?", default="/v1/sports/mma/odds")
    parser.add_argument("--count", type=int, metavar="N", help="look N times, then end")
    parser.add_argument("--once", dest="count", action="store_const", const=1, help="look once, then end")
    arguments = parser.parse_args()
    key = os.environ.get("ODDSBOX_KEY")
    if not key:
        parser.error("set ODDSBOX_KEY to a key: oddsbox keys issue --sandbox --name me")
    url = os.environ.get("ODDSBOX_URL", "http://127.0.0.1:8080").rstrip("/") + arguments.path
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(poll(Odds(url, key), arguments.count))
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
