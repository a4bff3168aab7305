#!/usr/bin/env python3
"""The same changes of 30,000 records in SQLite and in a file of oddsbox: bytes a change, and what reading them takes.

Both are called in process: SQLite by Python's sqlite3, which keeps its statements prepared, and oddsbox by
benches/versus/history.rs. Then a server is started on the file of oddsbox, and asked for the board as of a moment for the
first time, again, and page by page, beside the board as it is now. `--growth` repeats it with a twentieth and with five
times as many changes.
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

EVENTS, BOOKS, MARKETS = 1_500, 10, 2
LINES, BOARDS, PART_S = 2_000, 11, 900
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


def oddsbox(program, directory, rounds):
    done = subprocess.run([program, str(directory), str(rounds)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def sqlite(directory):
    path = directory / "history.sqlite"
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("PRAGMA journal_mode = WAL")
    base.execute(TABLE)
    began = time.perf_counter()
    with open(directory / "changes.csv", encoding="utf-8", newline="") as lines:
        base.execute("BEGIN")
        base.executemany("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)", csv.reader(lines))
        base.execute("COMMIT")
    seconds = time.perf_counter() - began
    base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    base.execute("CREATE TABLE records AS SELECT DISTINCT event, book, market FROM changes")
    count, first, last = base.execute("SELECT count(*), min(time), max(time) FROM changes").fetchone()
    draw = random.Random(1)
    record = lambda: (draw.randrange(EVENTS), draw.randrange(BOOKS), draw.randrange(MARKETS))
    moment = lambda: draw.randint(first, last)
    line = per_call(LINES, lambda _: base.execute(LINE, record()).fetchall())
    part = per_call(LINES, lambda _: base.execute(PART, (*record(), start := moment(), start + PART_S)).fetchall())
    hundred = per_call(LINES // 20, lambda _: [base.execute(RECORD, (*record(), moment())).fetchone() for _ in range(100)])
    board, scan = (statistics.median(per_call(1, lambda _: base.execute(query, (moment(),)).fetchall()) for _ in range(BOARDS))
                   for query in (BOARD, SCAN))
    base.close()
    return {"changes": count, "bytes": size, "write_s": round(seconds, 1), "line_us": line * 1e6, "part_us": part * 1e6,
            "hundred_ms": hundred * 1e3, "board_ms": board * 1e3, "scan_ms": scan * 1e3}


def served(binary, directory, span_s):
    """Milliseconds of an answer of 500 records over loopback."""
    server = contenders.Oddsbox(binary, directory)
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
        return {name: statistics.median(taken) for name, taken in times.items() if taken}
    finally:
        server.stop()


def table(ours, theirs, answers):
    rows = [
        ("bytes a change", ours["bytes"] / ours["changes"], theirs["bytes"] / theirs["changes"]),
        ("one line, µs", ours["line_us"], theirs["line_us"]),
        ("a quarter of an hour of one line, µs", ours["part_us"], theirs["part_us"]),
        ("100 records as of a moment, ms", ours["hundred_ms"], theirs["hundred_ms"]),
        ("30,000 records as of a moment, ms", ours["board_ms"], theirs["scan_ms"]),
        ("the same, SQLite with a list of the records", ours["board_ms"], theirs["board_ms"]),
    ]
    print(f"{ours['changes']:,} changes; seconds to write: oddsbox {ours['write_s']}, SQLite {theirs['write_s']}")
    print(f"{'':<48}{'oddsbox':>10}{'SQLite':>10}{'ratio':>9}")
    for name, our, their in rows:
        print(f"{name:<48}{our:>10.2f}{their:>10.2f}{their / our:>8.1f}x")
    shown = ", ".join(f"{name} {taken:.2f}" for name, taken in answers.items())
    print(f"500 records over HTTP, ms: {shown}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--growth", action="store_true", help="with fewer and with more changes too")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="changes of every record")
    options = parser.parse_args()
    binary, program = contenders.build("versus_history")
    for rounds in GROWTH if options.growth else (options.rounds,):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
            directory = pathlib.Path(name)
            ours = oddsbox(program, directory, rounds)
            theirs = sqlite(directory)
            if ours["changes"] != theirs["changes"]:
                raise SystemExit(f"not the same changes: {ours}, {theirs}")
            table(ours, theirs, served(binary, directory, rounds * 280))


if __name__ == "__main__":
    main()
