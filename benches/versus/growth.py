#!/usr/bin/env python3
"""How cost grows with the board and with the connections: data and plots in benches/results."""

import argparse
import csv
import pathlib
import resource
import socket
import time

import board
import contenders
import measure
import plot

RESULTS = pathlib.Path(__file__).parents[1] / "results"
SIZES = [10 ** power for power in range(3, 7)]
CONNECTIONS = [1, 10, 100, 1000, 10_000]
# The third and later ones are answered from what the connection remembers.
ANSWERS = 4


def by_size(binary, seconds):
    """One answer's cost, the memory and the file, for boards of each size."""
    for records in SIZES:
        with measure.loaded_from() as name:
            directory = pathlib.Path(name)
            oddsbox = contenders.Oddsbox(binary, directory, ODDSBOX_REFRESH="1s")
            try:
                begun = time.monotonic()
                events, _ = oddsbox.fill(directory, records)
                taken = time.monotonic() - begun
                key = oddsbox.issue_key()
                oddsbox.wait_for_prices(key, board.event_id(events - 1))
                ids = directory / "events"
                ids.write_text("".join(board.event_id(number) + "\n" for number in range(events)))
                keys = directory / "keys"
                keys.write_text(key + "\n")
                base = f"http://127.0.0.1:{oddsbox.port}"
                kept = measure.wrk(
                    oddsbox.pid, f"{base}/v1/sports/{board.SPORT}/odds?limit=100", {"X-API-Key": key}, seconds, 32)
                cold = measure.wrk(oddsbox.pid, base, {}, seconds, 32, "distinct.lua", [str(keys), str(ids)])
                file_bytes = sum(path.stat().st_size for path in (directory / "data").iterdir() if path.is_file())
                row = {"records": records, "ingest_s": round(taken, 2), "kept_cpu_us": round(kept.cpu_micros, 2),
                       "distinct_cpu_us": round(cold.cpu_micros, 2), "memory_bytes": measure.memory_bytes(oddsbox.pid),
                       "file_bytes": file_bytes}
                print(row, flush=True)
                yield row
            finally:
                oddsbox.stop()


def by_connections(binary):
    """Memory with idle keep-alive connections open, each of which has had some answers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with measure.loaded_from() as name:
        directory = pathlib.Path(name)
        oddsbox = contenders.Oddsbox(binary, directory, ODDSBOX_IDLE_TIMEOUT="10m")
        opened = []
        try:
            oddsbox.fill(directory, 1000)
            key = oddsbox.issue_key()
            target = f"/v1/sports/{board.SPORT}/odds?event_ids={board.event_id(7)}&bookmaker={board.BOOKS[4]}"
            request = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {key}\r\n\r\n".encode()
            empty = measure.memory_bytes(oddsbox.pid)
            for count in CONNECTIONS:
                if count + 200 > hard:
                    print(f"{count} connections are left out: at most {hard} files may be open (ulimit -n)")
                    continue
                while len(opened) < count:
                    connection = socket.create_connection(("127.0.0.1", oddsbox.port), timeout=30)
                    for _ in range(ANSWERS):
                        connection.sendall(request)
                        if not connection.recv(65536).startswith(b"HTTP/1.1 200"):
                            raise SystemExit("a connection was not answered")
                    opened.append(connection)
                memory = measure.memory_bytes(oddsbox.pid)
                row = {"connections": count, "memory_bytes": memory, "bytes_each": max(0, memory - empty) // count}
                print(row, flush=True)
                yield row
        finally:
            for connection in opened:
                connection.close()
            oddsbox.stop()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def save(name, rows):
    with open(RESULTS / f"{name}.csv", "w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=int, default=3)
    options = arguments.parse_args()
    binary, _ = contenders.build()
    RESULTS.mkdir(exist_ok=True)
    sizes = list(by_size(binary, options.seconds))
    save("by-size", sizes)
    for field, label in [("kept_cpu_us", "µs of CPU for a kept answer of 100 records"),
                         ("distinct_cpu_us", "µs of CPU for a new answer of 100 records"),
                         ("memory_bytes", "bytes of memory"), ("file_bytes", "bytes of the file")]:
        points = [(row["records"], row[field]) for row in sizes]
        plot.write(RESULTS / f"{field.replace('_', '-')}.svg", f"{label} by board size", "records on the board", label, points)
    connections = list(by_connections(binary))
    save("by-connections", connections)
    points = [(row["connections"], row["memory_bytes"]) for row in connections]
    plot.write(RESULTS / "connections-memory.svg", "memory by open connections", "open connections", "bytes of memory", points)


if __name__ == "__main__":
    main()
