#!/usr/bin/env python3
"""oddsbox beside nginx, Redis, FastAPI + SQLite and bare hyper: the same bytes, in alternating rounds, in one run.

Every HTTP request has another key and another X-Request-Id than the one before.

    python3 benches/versus/run.py                 the comparison
    python3 benches/versus/changing.py            the worst case: cold answers, many keys, publications all the time
    python3 benches/versus/growth.py              cost by board size and by connections, with plots

Everything is started here, on loopback, and stopped at the end. What is missing is named, and its row left out.
"""

import argparse
import dataclasses
import json
import pathlib
import shutil
import statistics
import sys

import board
import contenders
import measure


@dataclasses.dataclass
class Case:
    name: str
    target: str
    accept_encoding: str = "identity"
    encoding: str = "identity"
    conditional: bool = False
    status: int = 200
    headers: list = dataclasses.field(default_factory=list)
    body: bytes = b""
    identity: bytes = b""
    etag: str = ""

    @property
    def file(self):
        return self.name.replace(" ", "-")


def cases(port, key):
    """The requests of the run, with the answers that oddsbox gives to them."""
    odds = f"/v1/sports/{board.SPORT}/odds?"
    few = f"{odds}event_ids={board.event_id(7)}&bookmaker={board.BOOKS[4]}"
    made = [
        Case("one book", few),
        Case("100 records", f"{odds}limit=100"),
        Case("500 records", f"{odds}limit=500"),
        Case("100 gzip", f"{odds}limit=100", "gzip", "gzip"),
        Case("100 zstd", f"{odds}limit=100", "zstd", "zstd"),
        Case("not modified", f"{odds}limit=100", conditional=True, status=304),
    ]
    for case in made:
        headers = {"X-API-Key": key, "Accept-Encoding": "identity"}
        status, answered, case.identity = contenders.get(port, case.target, headers)
        case.etag = dict((name.lower(), value) for name, value in answered)["etag"]
        headers["Accept-Encoding"] = case.accept_encoding
        if case.conditional:
            headers["If-None-Match"] = case.etag
        status, answered, case.body = contenders.get(port, case.target, headers)
        if status != case.status:
            raise SystemExit(f"{case.name}: {status} instead of {case.status}")
        # hyper writes these itself.
        case.headers = [(name, value) for name, value in answered if name.lower() not in ("date", "content-length")]
    return made


def write_cases(directory, made):
    """The control's file."""
    rows = []
    for case in made:
        body = directory / f"body-{case.file}"
        body.write_bytes(case.body)
        rows.append({"target": case.target, "accept_encoding": case.accept_encoding, "conditional": case.conditional,
                     "status": case.status, "headers": case.headers, "body_file": str(body)})
    path = directory / "cases.json"
    path.write_text(json.dumps(rows))
    return path


@dataclasses.dataclass
class Entrant:
    """A contender, and how a case is put to it."""

    server: object
    url: object
    headers: object
    keys_file: pathlib.Path = None

    def round(self, case, seconds, connections):
        if self.server.name == "redis":
            return measure.redis_get(self.server.pid, self.server.port, case.file, seconds, connections)
        script = ("varied.lua", [str(self.keys_file)])
        return measure.wrk(self.server.pid, self.url(case), self.headers(case), seconds, connections, *script)


def entrants(directory, binary_of_control, served, made, logs):
    (oddsbox, keys) = served
    key, keys_file = keys[0], directory / "keys"
    keys_file.write_text("".join(f"{each}\n" for each in keys))

    def plain(case):
        headers = {"X-API-Key": key, "Accept-Encoding": case.accept_encoding}
        return headers | ({"If-None-Match": case.etag} if case.conditional else {})

    def address(server):
        return lambda case: f"http://127.0.0.1:{server.port}{case.target}"

    control = contenders.Control(binary_of_control, write_cases(directory, made))
    found = [
        Entrant(oddsbox, address(oddsbox), plain, keys_file), Entrant(control, address(control), plain, keys_file)]
    if missing := [how for tool, how in contenders.Nginx.needs.items() if not shutil.which(tool)]:
        print(f"nginx is left out: {', '.join(missing)}")
    else:
        nginx = contenders.Nginx(directory, made, logs)

        def nginx_headers(case):
            headers = plain(case)
            if case.conditional:
                answered = contenders.get(nginx.port, f"/{case.file}", {})[1]
                headers["If-None-Match"] = dict((name.lower(), value) for name, value in answered)["etag"]
            return headers
        found.append(Entrant(nginx, lambda case: f"http://127.0.0.1:{nginx.port}/{case.file}", nginx_headers, keys_file))
    if missing := [how for tool, how in contenders.Redis.needs.items() if not shutil.which(tool)]:
        print(f"Redis is left out: {', '.join(missing)}")
    else:
        found.append(Entrant(contenders.Redis(directory, made), None, None))
    if how := contenders.FastApi.missing():
        print(f"FastAPI is left out: {how}")
    else:
        fastapi = contenders.FastApi(directory, oddsbox, keys, logs)
        found.append(Entrant(fastapi, address(fastapi), plain, keys_file))
    return found


def takes_part(name, case):
    """Redis and FastAPI negotiate nothing: they have the plain answers only."""
    return name in ("oddsbox", "control", "nginx") or (case.encoding == "identity" and not case.conditional)


def check_bytes(found, made):
    """Nothing is measured before each contender has returned the same bytes."""
    for entrant in found:
        for case in made:
            if not takes_part(entrant.server.name, case):
                continue
            if entrant.server.name == "redis":
                status, body = case.status, entrant.server.get(case.file)
            else:
                target = entrant.url(case).split("/", 3)[3]
                status, _, body = contenders.get(entrant.server.port, f"/{target}", entrant.headers(case))
            if (status, body) != (case.status, case.body):
                raise SystemExit(f"{entrant.server.name}, {case.name}: other bytes ({status}, {len(body)} of {len(case.body)})")
    print(f"the bytes are the same: {', '.join(f'{case.name} {len(case.body)} B' for case in made)}\n")


def median(rounds, field):
    return statistics.median(getattr(round, field) for round in rounds)


def spread(own, others, field):
    """The ratio of two contenders, round by round: median, lowest, highest."""
    ratios = sorted(getattr(a, field) / getattr(b, field) for a, b in zip(own, others))
    return statistics.median(ratios), ratios[0], ratios[-1]


def print_table(made, results):
    head = f"{'case':<13}{'contender':<10}{'req/s':>9}{'µs CPU':>8}{'p50 µs':>8}{'p99 µs':>8}   oddsbox to it: req/s           CPU"
    print(head, "-" * len(head), sep="\n")
    for case in made:
        for name, rounds in results[case.name].items():
            row = f"{case.name:<13}{name:<10}{median(rounds, 'per_second'):>9.0f}{median(rounds, 'cpu_micros'):>8.1f}"
            row += f"{median(rounds, 'p50_micros'):>8.0f}{median(rounds, 'p99_micros'):>8.0f}"
            if name != "oddsbox":
                own = results[case.name]["oddsbox"]
                speed, cost = spread(own, rounds, "per_second"), spread(own, rounds, "cpu_micros")
                row += f"   {speed[0]:.2f} ({speed[1]:.2f} to {speed[2]:.2f})   {cost[0]:.2f} ({cost[1]:.2f} to {cost[2]:.2f})"
            print(row)
        print()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=int, default=3, help="of each contender in each round")
    arguments.add_argument("--connections", type=int, default=32)
    arguments.add_argument("--records", type=int, default=100_000)
    arguments.add_argument("--keys", type=int, default=16, help="each request has another one than the one before")
    arguments.add_argument("--no-logs", dest="logs", action="store_false", help="without access logs")
    arguments.add_argument("--json", type=pathlib.Path, help="write every round to this file as well")
    options = arguments.parse_args()
    if not shutil.which("wrk"):
        sys.exit("wrk is needed: apt-get install wrk")
    binary, control = contenders.build()
    with measure.loaded_from() as name:
        directory, running = pathlib.Path(name), []
        directory.chmod(0o755)
        try:
            oddsbox = contenders.Oddsbox(binary, directory, ODDSBOX_LOG="info" if options.logs else "warn")
            running.append(oddsbox)
            oddsbox.fill(directory, options.records)
            keys = [oddsbox.issue_key(f"versus-{number}") for number in range(options.keys)]
            made = cases(oddsbox.port, keys[0])
            found = entrants(directory, control, (oddsbox, keys), made, options.logs)
            running.extend(entrant.server for entrant in found[1:])
            check_bytes(found, made)
            results = {case.name: {} for case in made}
            for number in range(options.rounds):
                for case in made:
                    # Each round begins with another contender, so that none always follows the same one.
                    order = [entrant for entrant in found if takes_part(entrant.server.name, case)]
                    for entrant in order[number % len(order):] + order[:number % len(order)]:
                        took = entrant.round(case, options.seconds, options.connections)
                        results[case.name].setdefault(entrant.server.name, []).append(took)
                print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
            print_table(made, {case: dict(sorted(rows.items(), key=lambda row: row[0] != "oddsbox")) for case, rows in results.items()})
            for server in running:
                print(f"memory of {server.name}: {measure.memory_bytes(server.pid) / 1e6:.0f} MB")
            if options.json:
                rounds = {case: {name: [dataclasses.asdict(r) for r in rows] for name, rows in of.items()} for case, of in results.items()}
                options.json.write_text(json.dumps(rounds, indent=1) + "\n")
        finally:
            for server in running:
                server.stop()


if __name__ == "__main__":
    main()
