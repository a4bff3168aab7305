#!/usr/bin/env python3
"""The worst case: answers that no client has requested before, ten thousand keys, publications every second.

Prints the throughput of each against kept answers of the same size on the same board, requested by as many keys through
the same script, with p99 and the longest wait.
"""

import argparse
import concurrent.futures
import json
import pathlib
import statistics
import subprocess
import threading
import time

import board
import contenders
import measure

KEYS = 10_000
# Few enough that all of them stay kept.
TURN = 100


def keys_file(oddsbox, directory):
    """Ten thousand keys, issued by as many commands, some at a time."""
    path = directory / "keys"
    with open(path, "w", encoding="utf-8") as out, concurrent.futures.ThreadPoolExecutor(8) as pool:
        issued = pool.map(oddsbox.issue_key, (f"client {number}" for number in range(KEYS)))
        for number, key in enumerate(issued, 1):
            out.write(key + "\n")
            if number % 1000 == 0:
                print(f"  {number} keys issued", flush=True)
    return path


def events_file(directory, events):
    path = directory / "events"
    path.write_text("".join(board.event_id(number) + "\n" for number in range(events)))
    return path


class Changes:
    """Moves the prices of some events every second, through one long `oddsbox ingest`."""

    def __init__(self, oddsbox, events, start, per_second=1000):
        self.start, self.events, self.per_second = start, events, per_second
        command = [oddsbox.binary, "ingest", "-", "--json"]
        self.ingest = subprocess.Popen(command, env=oddsbox.environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        turn = 0
        while not self.over.wait(1):
            turn += 1
            for at in range(max(1, self.per_second // board.RECORDS_PER_EVENT)):
                number = (turn * 97 + at) % self.events
                for line in board.odds(number, self.start, turn):
                    self.ingest.stdin.write(json.dumps(line) + "\n")
            self.ingest.stdin.flush()

    def stop(self):
        self.over.set()
        self.thread.join()
        self.ingest.stdin.close()
        self.ingest.wait(60)


def row(name, rounds, kept):
    speed = statistics.median(r.per_second for r in rounds)
    ratio = speed / statistics.median(r.per_second for r in kept)
    cpu, p99 = statistics.median(r.cpu_micros for r in rounds), statistics.median(r.p99_micros for r in rounds)
    longest = max(r.max_micros for r in rounds)
    print(f"{name:<44}{speed:>9.0f}{ratio:>7.2f}{cpu:>8.1f}{p99 / 1e3:>9.2f}{longest / 1e3:>9.1f}", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seconds", type=int, default=5)
    arguments.add_argument("--connections", type=int, default=32)
    arguments.add_argument("--records", type=int, default=1_000_000)
    options = arguments.parse_args()
    binary, _ = contenders.build()
    with measure.loaded_from() as name:
        directory = pathlib.Path(name)
        oddsbox = contenders.Oddsbox(binary, directory, ODDSBOX_REFRESH="1s")
        try:
            events, start = oddsbox.fill(directory, options.records)
            print(f"{options.records} records taken in {oddsbox.filled_s:.1f} s", flush=True)
            key = oddsbox.issue_key()
            oddsbox.wait_for_prices(key, board.event_id(events - 1))
            distinct = [str(keys_file(oddsbox, directory)), str(events_file(directory, events))]
            base = f"http://127.0.0.1:{oddsbox.port}"
            kept_url = f"{base}/v1/sports/{board.SPORT}/odds?limit=100"

            def kept():
                return measure.wrk(oddsbox.pid, kept_url, {"X-API-Key": key}, options.seconds, options.connections)

            def asked(arguments):
                return measure.wrk(oddsbox.pid, base, {}, options.seconds, options.connections, "distinct.lua", arguments)

            def cold():
                return asked(distinct)

            def in_turn():
                return asked([*distinct, str(TURN)])

            calm = [(kept(), cold(), in_turn()) for _ in range(options.rounds)]
            changes = Changes(oddsbox, events, start)
            time.sleep(2)
            busy = [(kept(), cold(), in_turn()) for _ in range(options.rounds)]
            changes.stop()
            print(f"\n{'':<44}{'req/s':>9}{'ratio':>7}{'µs CPU':>8}{'p99 ms':>9}{'max ms':>9}")
            same, new, turns = zip(*calm)
            same_busy, new_busy, turns_busy = zip(*busy)
            row("the same kept answer, one key", same, turns)
            row(f"{TURN} kept answers in turn, 10,000 keys", turns, turns)
            row("another query each time, 10,000 keys", new, turns)
            print("  and a publication every second")
            row("the same answer, one key", same_busy, turns)
            row(f"{TURN} answers in turn, 10,000 keys", turns_busy, turns)
            row("another query each time, 10,000 keys", new_busy, turns)
            print(f"memory: {measure.memory_bytes(oddsbox.pid) / 1e6:.0f} MB")
        finally:
            oddsbox.stop()


if __name__ == "__main__":
    main()
