#!/usr/bin/env python3
"""How many feed lines a second are taken in: into an empty file, and into a server that serves and streams meanwhile."""

import argparse
import http.client
import itertools
import json
import pathlib
import select
import socket
import statistics
import subprocess
import threading
import time

import board
import contenders
import measure

RECORDS = 500_000
SUBSCRIBERS = 10
# Each reader asks at this pace, whatever the answers take.
READS_PER_SECOND = 100
READERS = 2
QUIET_S = 10


def write_turn(path, events, start, turn):
    """Other prices for the same events."""
    with open(path, "w", encoding="utf-8") as out:
        for number in range(events):
            for line in board.odds(number, start, turn):
                out.write(json.dumps(line) + "\n")


def lines_in(path):
    with open(path, "rb") as lines:
        return sum(1 for _ in lines)


class Subscribers(threading.Thread):
    """Streams that are read as fast as they come."""

    def __init__(self, port, key, count):
        super().__init__(daemon=True)
        self.bytes, self.is_over = 0, False
        self.streams = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
        request = f"GET /v1/stream?snapshot=false HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {key}\r\n\r\n"
        for stream in self.streams:
            stream.sendall(request.encode())
            if not stream.recv(4096).startswith(b"HTTP/1.1 200"):
                raise SystemExit("a stream was not opened")
        self.start()

    def run(self):
        while not self.is_over:
            for stream in select.select(self.streams, [], [], 0.1)[0]:
                self.bytes += len(stream.recv(1 << 20))

    def stop(self):
        self.is_over = True
        self.join()
        for stream in self.streams:
            stream.close()


class Reader(threading.Thread):
    """Asks at a fixed pace. An answer that is late delays the next ones, and their waiting counts."""

    def __init__(self, port, key, events):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.key, self.events, self.took, self.is_over = key, events, [], False
        self.start()

    def run(self):
        due, number = time.monotonic(), 0
        while not self.is_over:
            time.sleep(max(0.0, due - time.monotonic()))
            number += 7919
            target = f"/v1/sports/{board.SPORT}/odds?event_ids={board.event_id(number % self.events)}&regions=us,uk,eu,au"
            self.connection.request("GET", target, headers={"X-API-Key": self.key})
            answer = self.connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise SystemExit(f"a reader was answered {answer.status}")
            self.took.append(time.monotonic() - due)
            due += 1 / READS_PER_SECOND

    def stop(self):
        self.is_over = True
        self.join()
        return self.took


def read_while(oddsbox, key, events, work):
    """What readers waited while something was done, in milliseconds: median, p99 and highest."""
    readers = [Reader(oddsbox.port, key, events) for _ in range(READERS)]
    work()
    took = sorted(1000 * took for reader in readers for took in reader.stop())
    return {"reads": len(took), "median_ms": round(statistics.median(took), 1),
            "p99_ms": round(took[len(took) * 99 // 100], 1), "highest_ms": round(took[-1], 1)}


def into_empty(binary, lines, count, rounds):
    def once():
        with measure.loaded_from() as name:
            begun = time.monotonic()
            subprocess.run([binary, "--data", name, "ingest", str(lines)], check=True, stdout=subprocess.DEVNULL)
            return count / (time.monotonic() - begun)

    rates = [measure.undisturbed(once) for _ in range(rounds)]
    print(f"into an empty file, {count} lines, {rounds} rounds: median {statistics.median(rates):,.0f} a second "
          f"({min(rates):,.0f} to {max(rates):,.0f})", flush=True)


def into_server(binary, directory, rounds):
    oddsbox = contenders.Oddsbox(binary, directory, ODDSBOX_REFRESH="1s")
    try:
        events, start = oddsbox.fill(directory, RECORDS)
        key = oddsbox.issue_key()
        oddsbox.wait_for_prices(key, board.event_id(events - 1))
        subscribers = Subscribers(oddsbox.port, key, SUBSCRIBERS)
        quiet = measure.undisturbed(lambda: read_while(oddsbox, key, events, lambda: time.sleep(QUIET_S)))
        print(f"readers of a server at rest: {quiet}", flush=True)
        turns, lines = itertools.count(1), directory / "turn.ndjson"

        def once():
            write_turn(lines, events, start, next(turns))
            return change_all(oddsbox, key, events, lines, subscribers)

        for _ in range(rounds):
            print(measure.undisturbed(once), flush=True)
        subscribers.stop()
    finally:
        oddsbox.stop()


def change_all(oddsbox, key, events, lines, subscribers):
    """Takes lines in beside readers and streams, and says what it took."""
    count, before, rate = lines_in(lines), subscribers.bytes, []

    def ingest():
        begun = time.monotonic()
        oddsbox.command("ingest", str(lines))
        rate.append(count / (time.monotonic() - begun))

    reads = read_while(oddsbox, key, events, ingest)
    return (f"into a server with {RECORDS} records and {SUBSCRIBERS} streams, {count} changed prices: "
            f"{rate[0]:,.0f} a second; {subscribers.bytes - before:,} bytes streamed; readers {reads}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--binary", type=pathlib.Path, help="instead of building the release binary")
    options = arguments.parse_args()
    binary = options.binary or contenders.build()[0]
    with measure.loaded_from() as name:
        directory = pathlib.Path(name)
        lines = directory / "new.ndjson"
        board.write(lines, RECORDS, int(time.time()))
        into_empty(binary, lines, lines_in(lines), options.rounds)
        into_server(binary, directory, options.rounds)


if __name__ == "__main__":
    main()
