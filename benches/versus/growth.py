#!/usr/bin/env python3
"""How cost grows with the board, connections, subscribers, keys, markets and nodes: data and plots in benches/results.

    python3 benches/versus/growth.py [--seconds 3] [records] [connections] [subscribers] [keys] [markets] [nodes]
"""

import argparse
import pathlib

import contenders
import results
import sweeps

# What the columns of each sweep are, where they are plotted.
SWEEPS = {
    "records": (sweeps.by_records, "records on the board", {
        "kept_cpu_us": "µs of CPU for a kept answer of 100 records", "distinct_cpu_us": "µs of CPU for a new answer of 100 records",
        "memory_bytes": "bytes of memory", "file_bytes": "bytes of the file", "start_s": "seconds until it listens"}),
    "connections": (sweeps.by_connections, "open connections", {"memory_bytes": "bytes of memory"}),
    "subscribers": (sweeps.by_subscribers, "subscribers", {
        "memory_bytes": "bytes of memory", "cpu_us_each": "µs of CPU for each subscriber and event"}),
    "keys": (sweeps.by_keys, "keys", {
        "cpu_us": "µs of CPU for a kept answer, keys in turn", "memory_bytes": "bytes of memory", "file_bytes": "bytes of the file",
        "start_s": "seconds until it listens"}),
    "markets": (sweeps.by_markets, "markets of an event", {
        "all_cpu_us": "µs of CPU for all markets of two events", "one_cpu_us": "µs of CPU for one market of two events"}),
    "nodes": (sweeps.by_nodes, "nodes", {
        "kept_cpu_us": "µs of CPU for a kept answer of 100 records", "memory_bytes": "bytes of memory of a node"}),
}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    arguments.add_argument("--seconds", type=int, default=3)
    arguments.add_argument("--binary", type=pathlib.Path, help="instead of building the release binary")
    arguments.add_argument("sweeps", nargs="*", metavar="SWEEP", help=f"{', '.join(SWEEPS)} [default: all]")
    options = arguments.parse_args()
    if unknown := [name for name in options.sweeps if name not in SWEEPS]:
        arguments.error(f"there is no sweep {unknown[0]}")
    binary = options.binary or contenders.build()[0]
    for name in options.sweeps or SWEEPS:
        sweep, x_label, fields = SWEEPS[name]
        rows = []
        for row in sweep(binary, options.seconds):
            print(row, flush=True)
            rows.append(row)
        results.save(name, rows)
        for field, label in fields.items():
            results.draw(name, x_label, field, label, rows, {field: ""})


if __name__ == "__main__":
    main()
