#!/usr/bin/env python3
"""The same changes of 30,000 records in SQLite, in Postgres and in a file of oddsbox: bytes a change, and what reading them takes.

SQLite is called in process by Python's sqlite3, which keeps its statements prepared, Postgres through its socket by psycopg2, with
prepared statements, and oddsbox in process by benches/versus/history.rs. Then a server is started on the file of oddsbox, and
asked for the board as of a moment for the first time, again, and page by page, beside the board as it is now. `--growth`
repeats it with a twentieth and with five times as many changes. Data and plots of all sizes are in benches/results.
"""

import argparse
import csv
import http.client
import json
import os
import pathlib
import random
import re
import sqlite3
import statistics
import subprocess
import tempfile
import time

import contenders
import measure
import postgres
import results

EVENTS, BOOKS, MARKETS = 1_500, 10, 2
LINES, BOARDS, PART_S = 2_000, 11, 900
LONGEST_S = 60
ROUNDS, GROWTH = 66, (3, 66, 334)

TABLE = """CREATE TABLE changes (
    event INTEGER, book INTEGER, market INTEGER, time INTEGER, home INTEGER, away INTEGER, point INTEGER,
    PRIMARY KEY (event, book, market, time)) WITHOUT ROWID"""
LINE = "SELECT time, home, away, point FROM changes WHERE event = ? AND book = ? AND market = ? ORDER BY time"
PART = LINE.replace("ORDER", "AND time BETWEEN ? AND ? ORDER")
RECORD = """SELECT home, away, point FROM changes
    WHERE event = ? AND book = ? AND market = ? AND time <= ? ORDER BY time DESC LIMIT 1"""
# All records as of a moment from the table alone, and with a second table that lists the records, two steps for each.
SCAN = """SELECT event, book, market, home, away, point, max(time) FROM changes
    WHERE time <= ? GROUP BY event, book, market"""
BOARD = """SELECT c.event, c.book, c.market, c.home, c.away, c.point
    FROM records r JOIN changes c ON c.event = r.event AND c.book = r.book AND c.market = r.market AND c.time = (
        SELECT max(time) FROM changes d
        WHERE d.event = r.event AND d.book = r.book AND d.market = r.market AND d.time <= ?)"""

ODDS = "/v1/sports/tennis/odds?regions=us,uk,eu,au&limit=500"


def per_call(times, call):
    began = time.perf_counter()
    for number in range(times):
        call(number)
    return (time.perf_counter() - began) / times


def for_a_while(call):
    """How long each of some calls takes: fewer than usual if they are long."""
    times = []
    while len(times) < BOARDS and sum(times) < LONGEST_S:
        times.append(per_call(1, call))
    return times


def oddsbox(program, directory, rounds):
    done = subprocess.run([program, str(directory), str(rounds)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


class Sqlite:
    """The changes in SQLite, and the questions about them."""

    name = "SQLite"

    def __init__(self, directory):
        path = directory / "history.sqlite"
        self.base = base = sqlite3.connect(path, isolation_level=None)
        base.execute("PRAGMA journal_mode = WAL")
        base.execute(TABLE)
        began = time.perf_counter()
        with open(directory / "changes.csv", encoding="utf-8", newline="") as lines:
            base.execute("BEGIN")
            base.executemany("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)", csv.reader(lines))
            base.execute("COMMIT")
        self.write_s = time.perf_counter() - began
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.bytes = path.stat().st_size
        base.execute("CREATE TABLE records AS SELECT DISTINCT event, book, market FROM changes")
        self.changes, self.first, self.last = base.execute("SELECT count(*), min(time), max(time) FROM changes").fetchone()
        self.queries = {"line": LINE, "part": PART, "record": RECORD, "board": BOARD, "scan": SCAN}

    def ask(self, question, *values):
        return self.base.execute(self.queries[question], values).fetchall()

    def close(self):
        self.base.close()


def questioned(base):
    """How long a database takes for each question."""
    draw = random.Random(1)
    record = lambda: (draw.randrange(EVENTS), draw.randrange(BOOKS), draw.randrange(MARKETS))
    moment = lambda: draw.randint(base.first, base.last)
    line = per_call(LINES, lambda _: base.ask("line", *record()))
    part = per_call(LINES, lambda _: base.ask("part", *record(), start := moment(), start + PART_S))
    hundred = per_call(LINES // 20, lambda _: [base.ask("record", *record(), moment()) for _ in range(100)])
    board, scan = (statistics.median(for_a_while(lambda _: base.ask(question, moment()))) for question in ("board", "scan"))
    return {"name": base.name, "changes": base.changes, "bytes": base.bytes, "write_s": round(base.write_s, 1),
            "line_us": line * 1e6, "part_us": part * 1e6, "hundred_ms": hundred * 1e3, "board_ms": board * 1e3,
            "scan_ms": scan * 1e3}


def served(binary, directory, span_s):
    """Milliseconds of an answer of 500 records over loopback, and what the server takes."""
    began = time.monotonic()
    server = contenders.Oddsbox(binary, directory)
    start_s = time.monotonic() - began
    try:
        headers = {"X-API-Key": server.issue_key()}
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

        def ask(target):
            began = time.perf_counter()
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise SystemExit(f"{target}: {answer.status} {body.decode()}")
            return (time.perf_counter() - began) * 1e3, answer.getheader("link") or ""

        def next_page(links):
            return re.search(r'<([^>]*)>; rel="next"', links)[1]

        draw, now, times = random.Random(1), int(time.time()), {"first": [], "again": [], "page": [], "now": []}
        for _ in range(BOARDS):
            # From about when all records are there.
            at = now - draw.randrange(60, span_s * 2 // 3)
            target = f"{ODDS}&as_of={time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(at))}"
            first, links = ask(target)
            times["first"].append(first)
            for _ in range(20):
                times["again"].append(ask(target)[0])
                times["now"].append(ask(ODDS)[0])
            while 'rel="next"' in links and len(times["page"]) % 20 < 19:
                took, links = ask(next_page(links))
                times["page"].append(took)
        answers = {name: statistics.median(taken) for name, taken in times.items() if taken}
        return answers, {"start_s": round(start_s, 3), "memory_bytes": measure.memory_bytes(server.pid)}
    finally:
        server.stop()


def table(ours, others, answers):
    """Each figure, and how many times as much each of the others takes."""
    written = ", ".join(f"{one['name']} {one['write_s']}" for one in [ours, *others])
    print(f"{ours['changes']:,} changes; seconds to write: {written}")
    print(f"{'':<46}{'oddsbox':>10}" + "".join(f"{other['name']:>19}" for other in others))
    rows = [("bytes a change", lambda one: one["bytes"] / one["changes"]),
            ("one line, µs", lambda one: one["line_us"]),
            ("a quarter of an hour of one line, µs", lambda one: one["part_us"]),
            ("100 records as of a moment, ms", lambda one: one["hundred_ms"]),
            ("30,000 records as of a moment, ms", lambda one: one.get("scan_ms", one["board_ms"])),
            ("the same, where a table lists the records", lambda one: one["board_ms"])]
    for name, figure in rows:
        our = figure(ours)
        print(f"{name:<46}{our:>10.2f}" + "".join(f"{figure(other):>10.2f}{figure(other) / our:>8.1f}x" for other in others))
    shown = ", ".join(f"{name} {taken:.2f}" for name, taken in answers.items())
    print(f"500 records over HTTP, ms: {shown}", flush=True)


def save(ours, others, answers, costs):
    """Puts the figures beside those of other sizes, and plots all of them."""
    row = {"changes": ours["changes"], "as_of_first_ms": round(answers["first"], 2), "as_of_again_ms": round(answers["again"], 2)} | costs
    for one in [ours, *others]:
        figures = {"bytes": one["bytes"], "write_s": one["write_s"], "line_us": round(one["line_us"], 1),
                   "part_us": round(one["part_us"], 1), "hundred_ms": round(one["hundred_ms"], 2), "board_ms": round(one["board_ms"], 1)}
        row |= {f"{one['name'].lower()}_{name}": figure for name, figure in figures.items()}
    rows = sorted([row, *(old for old in results.saved("changes") if old["changes"] != row["changes"])], key=lambda row: row["changes"])
    results.save("changes", rows)
    names = {one["name"].lower(): one["name"] for one in [ours, *others]}
    for field, label in {"bytes": "bytes", "line_us": "µs for one line", "board_ms": "ms for 30,000 records as of a moment"}.items():
        results.draw("changes", "changes", field, label, rows, {f"{name}_{field}": title for name, title in names.items()})
    for field, label in {"start_s": "seconds until it listens", "memory_bytes": "bytes of memory",
                         "as_of_first_ms": "ms of 500 records as of a moment, for the first time"}.items():
        results.draw("changes", "changes", field, label, rows, {field: ""})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--growth", action="store_true", help="with fewer and with more changes too")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="changes of every record")
    options = parser.parse_args()
    binary, program = contenders.build("versus_history")
    bases = [Sqlite]
    if lack := postgres.missing():
        print(f"Postgres is left out: {lack}")
    else:
        bases.append(postgres.Base)
    for rounds in GROWTH if options.growth else (options.rounds,):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
            directory = pathlib.Path(name)
            ours = {"name": "oddsbox"} | oddsbox(program, directory, rounds)
            others = []
            for start in bases:
                base = start(directory)
                others.append(questioned(base))
                base.close()
                if others[-1]["changes"] != ours["changes"]:
                    raise SystemExit(f"not the same changes: {ours}, {others[-1]}")
            answers, costs = served(binary, directory, rounds * 280)
            table(ours, others, answers)
            print(f"the server: {costs}", flush=True)
            save(ours, others, answers, costs)


if __name__ == "__main__":
    main()
