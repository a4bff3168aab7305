#!/usr/bin/env python3
"""The same changes of 30,000 records in SQLite and in a file of oddsbox: bytes a change, and what reading them takes.

Both are called in process: SQLite by Python's sqlite3, with the statements prepared, and oddsbox by benches/versus/history.rs."""

import argparse
import csv
import json
import os
import pathlib
import random
import sqlite3
import statistics
import subprocess
import tempfile
import time

import contenders

ROOT = pathlib.Path(__file__).parents[2]
EVENTS, BOOKS, MARKETS = 1_500, 10, 2
LINES, BOARDS = 2_000, 5

TABLE = """CREATE TABLE changes (
    event INTEGER, book INTEGER, market INTEGER, time INTEGER, home INTEGER, away INTEGER, point INTEGER,
    PRIMARY KEY (event, book, market, time)) WITHOUT ROWID"""
LINE = "SELECT time, home, away, point FROM changes WHERE event = ? AND book = ? AND market = ? ORDER BY time"
RECORD = """SELECT home, away, point FROM changes
    WHERE event = ? AND book = ? AND market = ? AND time <= ? ORDER BY time DESC LIMIT 1"""
# A step for each record of the board, as the primary key allows it.
BOARD = """SELECT r.event, r.book, r.market, (
        SELECT home || ' ' || away || ' ' || point FROM changes c
        WHERE c.event = r.event AND c.book = r.book AND c.market = r.market AND c.time <= ?
        ORDER BY c.time DESC LIMIT 1)
    FROM records r"""


def oddsbox(directory, rounds):
    _, program = contenders.build("versus_history")
    done = subprocess.run([program, str(directory), str(rounds)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def per_call(times, call):
    began = time.perf_counter()
    for number in range(times):
        call(number)
    return (time.perf_counter() - began) / times


def sqlite(directory):
    path = directory / "history.sqlite"
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("PRAGMA journal_mode = WAL")
    base.execute(TABLE)
    began = time.perf_counter()
    with open(directory / "changes.csv", encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines)
        base.execute("BEGIN")
        base.executemany("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        base.execute("COMMIT")
    seconds = time.perf_counter() - began
    base.execute("CREATE TABLE records AS SELECT DISTINCT event, book, market FROM changes")
    count, first, last = base.execute("SELECT count(*), min(time), max(time) FROM changes").fetchone()
    pages = base.execute("SELECT sum(pgsize) FROM dbstat WHERE name = 'changes'").fetchone()[0] \
        if has_dbstat(base) else path.stat().st_size
    draw = random.Random(1)
    record = lambda: (draw.randrange(EVENTS), draw.randrange(BOOKS), draw.randrange(MARKETS))
    moment = lambda: draw.randint(first, last)
    line = per_call(LINES, lambda _: base.execute(LINE, record()).fetchall())
    hundred = per_call(LINES // 20, lambda _: [base.execute(RECORD, (*record(), moment())).fetchone() for _ in range(100)])
    board = statistics.median(per_call(1, lambda _: base.execute(BOARD, (moment(),)).fetchall()) for _ in range(BOARDS))
    return {"changes": count, "bytes": pages, "write_s": round(seconds, 1), "line_us": line * 1e6,
            "hundred_ms": hundred * 1e3, "board_first_ms": board * 1e3, "board_again_ms": board * 1e3}


def has_dbstat(base):
    try:
        base.execute("SELECT 1 FROM dbstat LIMIT 1")
        return True
    except sqlite3.OperationalError:
        return False


def table(ours, theirs):
    per_change = lambda side: side["bytes"] / side["changes"]
    rows = [
        ("bytes a change", per_change(ours), per_change(theirs)),
        ("one line, µs", ours["line_us"], theirs["line_us"]),
        ("100 records as of a moment, ms", ours["hundred_ms"], theirs["hundred_ms"]),
        ("30,000 records as of a moment, first time, ms", ours["board_first_ms"], theirs["board_first_ms"]),
        ("the same again, ms", ours["board_again_ms"], theirs["board_again_ms"]),
    ]
    print(f"{ours['changes']:,} changes; seconds to write: oddsbox {ours['write_s']}, SQLite {theirs['write_s']}")
    print(f"{'':<48}{'oddsbox':>10}{'SQLite':>10}{'ratio':>9}")
    for name, our, their in rows:
        print(f"{name:<48}{our:>10.3f}{their:>10.3f}{their / our:>8.1f}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=66, help="changes of every record")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        directory = pathlib.Path(name)
        ours = oddsbox(directory, rounds)
        theirs = sqlite(directory)
        assert ours["changes"] == theirs["changes"], (ours, theirs)
        table(ours, theirs)


if __name__ == "__main__":
    main()
