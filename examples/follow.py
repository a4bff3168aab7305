#!/usr/bin/env python3
"""Keeps a board of prices up to date by the stream, through lost connections.

    ODDSBOX_KEY=sk_test_ob_... python3 follow.py 'sports=mma&odds_format=decimal'

Needs nothing but Python 3. Prints a line for every change; ODDSBOX_URL names another service.
"""
import json
import os
import random
import signal
import sys
import time
import urllib.error
import urllib.request

URL = os.environ.get("ODDSBOX_URL", "http://127.0.0.1:8080")
SILENCE_MAX_S = 40  # Twice what the service allows itself, and some.


def events(response):
    """The events of a response, as (kind, id, data)."""
    fields = {}
    for line in response:
        line = line.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], fields.get("id"), json.loads(fields["data"])
            fields = {}


def apply(board, kind, data):
    """Applies an event to the board, which maps the id of a record to the record."""
    if kind == "reset":
        board.clear()
    for record in data.get("records", []):
        board[record["id"]] = record
    for closed in data.get("closed", []):
        board.pop(closed, None)
    if kind == "event" and data["status"] == "removed":
        removed = (data["sport_key"], data["id"])
        for record in [record for record in board.values() if (record["sport_key"], record["event_id"]) == removed]:
            del board[record["id"]]


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    board, last, wait = {}, None, 1.0
    while True:
        headers = {"X-API-Key": os.environ["ODDSBOX_KEY"], "Accept": "text/event-stream"}
        if last:
            headers["Last-Event-ID"] = last
        query = sys.argv[1] if len(sys.argv) > 1 else ""
        try:
            request = urllib.request.Request(f"{URL}/v1/stream?{query}", headers=headers)
            with urllib.request.urlopen(request, timeout=SILENCE_MAX_S) as response:
                for kind, event_id, data in events(response):
                    if kind == "hello" and last is None:
                        board.clear()  # The connection before broke in its snapshot.
                    apply(board, kind, data)
                    last, wait = event_id or last, 1.0
                    if kind in ("ready", "odds", "reset", "bye"):
                        changed = len(data.get("records", [])) + len(data.get("closed", []))
                        print(f"{kind}: {changed} changed, {len(board)} on the board", flush=True)
                    if kind == "bye":
                        wait = data["retry_after_s"] or wait
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                sys.exit(f"{error.code}: {json.load(error)['error']['message']}")
            wait = float(error.headers.get("Retry-After", wait))
        except OSError as error:
            print(f"lost the connection: {error}", file=sys.stderr)
        time.sleep(wait * random.uniform(0.8, 1.2))
        wait = min(wait * 2, 60.0)


main()
