"""What is measured as one thing grows: each sweep yields a row for each size of it."""

import http.client
import json
import os
import pathlib
import resource
import socket
import subprocess
import time

import board
import contenders
import fanout
import measure

RECORDS = [10 ** power for power in range(4, 7)]
CONNECTIONS = [1, 10, 100, 1000, 10_000]
SUBSCRIBERS = [10, 100, 1000, 10_000]
KEYS = [10 ** power for power in range(1, 6)]
MARKETS = [3, 10, 30, 100, 300]
NODES = [1, 2, 3]
# The third and later ones are answered from what the connection remembers.
ANSWERS = 4
# Enough for every sweep but that of the board.
SMALL_BOARD = 6000
# So many that pairs of them do not repeat within a measurement.
MANY_EVENTS = 600
ALL_REGIONS = "regions=us,uk,eu,au"


def file_bytes(oddsbox):
    return sum(path.stat().st_size for path in oddsbox.data.iterdir() if path.is_file())


def restart(oddsbox, directory, **settings):
    """Starts a server again; returns it, and how long it took until it listened."""
    oddsbox.stop()
    begun = time.monotonic()
    again = contenders.Oddsbox(oddsbox.binary, directory, **settings)
    return again, time.monotonic() - begun


def kept_answer(oddsbox, key, seconds):
    url = f"http://127.0.0.1:{oddsbox.port}/v1/sports/{board.SPORT}/odds?limit=100"
    return measure.wrk(oddsbox.pid, url, {"X-API-Key": key}, seconds, 32)


def new_answers(oddsbox, directory, key, events, seconds, query=f"limit=100&{ALL_REGIONS}"):
    """Answers that are not kept: two other events each time."""
    ids, keys = directory / "events", directory / "keys"
    ids.write_text("".join(board.event_id(number) + "\n" for number in range(events)))
    keys.write_text(key + "\n")
    base, never = f"http://127.0.0.1:{oddsbox.port}", str(2 ** 52)
    return measure.wrk(oddsbox.pid, base, {}, seconds, 32, "distinct.lua", [str(keys), str(ids), never, query])


def by_records(binary, seconds):
    """A kept and a new answer of 100 records, memory, file and start-up, for boards of each size."""
    settings = {"ODDSBOX_REFRESH": "1s"}
    for records in RECORDS:
        with measure.loaded_from() as name:
            directory = pathlib.Path(name)
            oddsbox = contenders.Oddsbox(binary, directory, **settings)
            try:
                events, _ = oddsbox.fill(directory, records)
                taken_s = oddsbox.filled_s
                key = oddsbox.issue_key()
                oddsbox.wait_for_prices(key, board.event_id(events - 1))
                kept = kept_answer(oddsbox, key, seconds)
                new = new_answers(oddsbox, directory, key, events, seconds)
                memory, size = measure.memory_bytes(oddsbox.pid), file_bytes(oddsbox)
                oddsbox, start_s = restart(oddsbox, directory, **settings)
                yield {"records": records, "ingest_s": round(taken_s, 2), "kept_cpu_us": round(kept.cpu_micros, 2),
                       "distinct_cpu_us": round(new.cpu_micros, 2), "memory_bytes": memory, "file_bytes": size,
                       "start_s": round(start_s, 3)}
            finally:
                oddsbox.stop()


def by_connections(binary, _seconds):
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
                yield {"connections": count, "memory_bytes": memory, "bytes_each": max(0, memory - empty) // count}
        finally:
            for connection in opened:
                connection.close()
            oddsbox.stop()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def by_subscribers(binary, seconds):
    """Memory and CPU of streams, with an event of 100 records to all of them every two seconds."""
    _, program = contenders.build("fanout")
    for count in SUBSCRIBERS:
        with measure.loaded_from() as name:
            service = fanout.Service(binary, pathlib.Path(name) / "oddsbox")
            try:
                cost = fanout.fan_out(service, program, count, {"records": 100}, max(2, seconds // 2))
                yield {"subscribers": count, "memory_bytes": cost.memory, "cpu_us_each": round(cost.tick_micros / count, 2),
                       "first_to_last_ms": round(sorted(cost.spreads_ms)[len(cost.spreads_ms) // 2], 1)}
            finally:
                service.stop()


class AdminSocket(http.client.HTTPConnection):
    """Commands without a process for each."""

    def __init__(self, data):
        super().__init__("admin", timeout=60)
        self.path = str(data / "admin" / "oddsbox.sock")

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def issue_key(self, name):
        fields = {"kind": "production", "name": name, "approved_by": "growth", "burst_per_minute": 16_000_000,
                  "requests_per_day": 1_000_000_000_000}
        body = json.dumps({"command": "keys-issue"} | fields)
        self.request("POST", "/command", body, {"Content-Type": "application/json"})
        response = self.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise SystemExit(f"a key was not issued: {answer}")
        return answer["key"]


def by_keys(binary, seconds):
    """An answer to each key in turn, memory, file and start-up, by the number of keys."""
    with measure.loaded_from() as name:
        directory = pathlib.Path(name)
        oddsbox = contenders.Oddsbox(binary, directory)
        try:
            oddsbox.fill(directory, SMALL_BOARD)
            issued, path = [], directory / "keys"
            for count in KEYS:
                admin = AdminSocket(oddsbox.data)
                begun, before = time.monotonic(), len(issued)
                while len(issued) < count:
                    issued.append(admin.issue_key(f"client {len(issued)}"))
                issue_ms = (time.monotonic() - begun) / (count - before) * 1000
                admin.close()
                oddsbox.wait_for_prices(issued[0], board.event_id(0))
                path.write_text("".join(key + "\n" for key in issued))
                url = f"http://127.0.0.1:{oddsbox.port}/v1/sports/{board.SPORT}/odds?limit=100"
                # The first request of a key writes its lease.
                measure.wrk(oddsbox.pid, url, {}, 1 + count // 5000, 32, "varied.lua", [str(path)])
                answered = measure.wrk(oddsbox.pid, url, {}, seconds, 32, "varied.lua", [str(path)])
                memory, size = measure.memory_bytes(oddsbox.pid), file_bytes(oddsbox)
                oddsbox, start_s = restart(oddsbox, directory)
                yield {"keys": count, "issue_ms": round(issue_ms, 2), "cpu_us": round(answered.cpu_micros, 2),
                       "memory_bytes": memory, "file_bytes": size, "start_s": round(start_s, 3)}
        finally:
            oddsbox.stop()


def prices(number, markets, start):
    """The prices of one event by one bookmaker: the winner, and markets of players."""
    yield next(iter(board.odds(number, start)))
    for market in range(1, markets):
        outcomes = [{"name": side, "description": "A Player", "price": -110 + at, "point": 4.5}
                    for at, side in enumerate(("Over", "Under"))]
        yield {"type": "odds", "sport": board.SPORT, "event": board.event_id(number), "bookmaker": board.BOOKS[0],
               "market": f"player_growth{market:03}", "last_update": board.time(start), "format": "american",
               "outcomes": outcomes}


def by_markets(binary, seconds):
    """New answers with all prices of two events, and with one market of them, by the number of their markets."""
    for markets in MARKETS:
        with measure.loaded_from() as name:
            directory = pathlib.Path(name)
            oddsbox = contenders.Oddsbox(binary, directory, ODDSBOX_REFRESH="1s")
            try:
                start = int(time.time())
                lines = [*board.bookmakers()]
                for number in range(MANY_EVENTS):
                    lines += [board.event(number, start), *prices(number, markets, start)]
                path = directory / "lines.ndjson"
                path.write_text("".join(json.dumps(line) + "\n" for line in lines))
                oddsbox.command("ingest", str(path))
                key = oddsbox.issue_key()
                oddsbox.wait_for_prices(key, board.event_id(MANY_EVENTS - 1))
                row = {"markets": markets}
                for field, query, records in [("all", "market=all&limit=500", 2 * markets), ("one", "market=player_growth001", 2)]:
                    query = f"{query}&{ALL_REGIONS}"
                    expect_records(oddsbox, key, query, min(500, records))
                    row[f"{field}_cpu_us"] = round(new_answers(oddsbox, directory, key, MANY_EVENTS, seconds, query).cpu_micros, 2)
                yield row | {"memory_bytes": measure.memory_bytes(oddsbox.pid), "file_bytes": file_bytes(oddsbox)}
            finally:
                oddsbox.stop()


def expect_records(oddsbox, key, query, expected):
    target = f"/v1/sports/{board.SPORT}/odds?event_ids={board.event_id(0)},{board.event_id(1)}&{query}"
    records = len(json.loads(contenders.get(oddsbox.port, target, {"X-API-Key": key})[2]))
    if records != expected:
        raise SystemExit(f"{records} records instead of {expected}: {target}")


def by_nodes(binary, seconds):
    """A kept answer of one node, and memory, by the number of nodes on this machine."""
    port = contenders.free_port()
    with measure.loaded_from() as name:
        directory = pathlib.Path(name)
        (directory / "redis").mkdir()
        redis = contenders.Process(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
                                    "--appendfsync", "always", "--dir", str(directory / "redis"), "--logfile", os.devnull])
        nodes = []
        try:
            contenders.wait_for(port)
            for count in NODES:
                place, node = directory / f"node{count}", f"node{count}"
                place.mkdir()
                settings = {"ODDSBOX_CLUSTER_URL": f"redis://127.0.0.1:{port}", "ODDSBOX_CLUSTER_NODE": node, "ODDSBOX_REFRESH": "1s"}
                if not nodes:
                    init = [binary, "--data", place / "data", "cluster", "init"]
                    subprocess.run(init, env=os.environ | settings, check=True, stdout=subprocess.DEVNULL)
                begun = time.monotonic()
                nodes.append(contenders.Oddsbox(binary, place, **settings))
                start_s = time.monotonic() - begun
                if count == 1:
                    nodes[0].fill(place, SMALL_BOARD)
                    key = nodes[0].issue_key()
                for each in nodes:
                    each.wait_for_prices(key, board.event_id(0))
                kept = kept_answer(nodes[0], key, seconds)
                yield {"nodes": count, "kept_cpu_us": round(kept.cpu_micros, 2), "start_s": round(start_s, 3),
                       "memory_bytes": sum(measure.memory_bytes(each.pid) for each in nodes) // count,
                       "engine_memory_bytes": measure.memory_bytes(redis.pid)}
        finally:
            for each in [*nodes, redis]:
                each.stop()
