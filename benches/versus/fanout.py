#!/usr/bin/env python3
"""The stream beside nginx with nchan and beside bare hyper: the same bytes to as many subscribers, one after the other in one run.

    python3 benches/versus/fanout.py [--subscribers 1000 10000] [--ticks 10]

Prints the server's CPU time for an event that a subscriber gets, without and with what an event costs however many get it,
the time from the first subscriber to the last, and the server's memory; then, of oddsbox alone, what subscribers cost while nothing changes, how long Get Odds takes while
they get changes, and how long it takes until subscribers that come back all at once have what they missed.

Everything is started here, on loopback, and stopped at the end.
"""

import argparse
import dataclasses
import http.client
import json
import os
import pathlib
import select
import shutil
import statistics
import subprocess
import threading
import time

import board
import contenders
import measure

MARK = '"records":['
REFRESH_S = 2
# Nobody waits longer for an event.
WAIT_S = 60
FRAMES = {"4 kB": 12, "32 kB": 100}


class Subscribers(contenders.Process):
    """Connections that count what they get."""

    def __init__(self, program, server, count, since=None):
        headers = [f"{name}: {value}\r\n" for name, value in server.headers.items()]
        target = server.target + (f"&since={since}" if since else "")
        command = [program, "subscribe", f"127.0.0.1:{server.port}", str(count), target, MARK, *headers]
        # Without a buffer, `select` knows of every line.
        super().__init__(command, stdout=subprocess.PIPE, bufsize=0)
        self.began = time.time()
        self.count = count

    def wait(self):
        if not select.select([self.process.stdout], [], [], WAIT_S)[0]:
            raise SystemExit(f"a subscriber did not connect or get an event within {WAIT_S} s")
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a subscriber lost its connection")
        return json.loads(line)

    def wait_connected(self):
        self.wait()
        return time.time() - self.began


def read(program, service, target, connections, seconds):
    """How long answers take to clients that send their next request when they have the last answer, in milliseconds."""
    headers = [f"{name}: {value}\r\n" for name, value in service.headers.items()]
    command = [program, "read", f"127.0.0.1:{service.port}", str(connections), str(seconds), target, *headers]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: number / 1000 for name, number in json.loads(out).items()}


class Nchan(contenders.Process):
    name, target, headers = "nchan", "/", {"accept": "text/event-stream"}

    def __init__(self, directory):
        self.port = contenders.free_port()
        configuration = directory / "nchan.conf"
        configuration.write_text(f"""
load_module modules/ngx_nchan_module.so;
worker_processes {os.cpu_count()};
worker_rlimit_nofile 20000;
daemon off; master_process on;
pid {directory}/nchan.pid;
error_log {directory}/nchan-error.log;
events {{ worker_connections 16384; }}
http {{
  access_log off; tcp_nodelay on; nchan_shared_memory_size 256M;
  client_body_temp_path {directory}/n1; proxy_temp_path {directory}/n2; fastcgi_temp_path {directory}/n3;
  uwsgi_temp_path {directory}/n4; scgi_temp_path {directory}/n5;
  server {{
    listen 127.0.0.1:{self.port} backlog=16384;
    location = /publish {{ nchan_publisher; nchan_channel_id odds; nchan_message_buffer_length 20; client_max_body_size 1m; client_body_buffer_size 256k; }}
    location = / {{ nchan_subscriber eventsource; nchan_channel_id odds; nchan_subscriber_first_message newest; }}
  }}
}}
""")
        super().__init__([shutil.which("nginx"), "-c", str(configuration), "-e", f"{directory}/nchan-error.log"])
        contenders.wait_for(self.port)

    def publish(self, event):
        post(self.port, "/publish", event["data"].encode())


class BareHyper(contenders.Process):
    name, target, headers = "bare hyper", "/", {}

    def __init__(self, program):
        self.port = contenders.free_port()
        super().__init__([program, "serve", f"127.0.0.1:{self.port}"])
        contenders.wait_for(self.port)

    def publish(self, event):
        post(self.port, "/", event["tick"].encode())


def post(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    if answer.status >= 300:
        raise SystemExit(f"{path} answered {answer.status}")


class Service:
    """oddsbox with a board, and a key that may have every stream."""

    name = "oddsbox"
    target = f"/v1/stream?sports={board.SPORT}&regions=us,uk,eu,au&snapshot=false"

    def __init__(self, binary, directory, refresh_s=REFRESH_S):
        directory.mkdir()
        self.binary, self.directory, self.refresh_s = binary, directory, refresh_s
        self.server = contenders.Oddsbox(binary, directory, ODDSBOX_REFRESH=f"{refresh_s}s")
        self.server.fill(directory, 6000)
        limits = ["--burst", "16000000", "--per-day", "1000000000000", "--streams", "10000"]
        issued = self.server.command("keys", "issue", "--live", "--approved-by", "versus", "--name", "versus", *limits)
        self.headers = {"x-api-key": json.loads(issued)["key"]}
        self.port, self.pid, self.turn = self.server.port, self.server.pid, 0
        self.server.wait_for_prices(self.headers["x-api-key"], board.event_id(0))

    def stop(self):
        self.server.stop()

    def restart(self):
        self.stop()
        self.server = contenders.Oddsbox(self.binary, self.directory, ODDSBOX_REFRESH=f"{self.refresh_s}s")
        self.port, self.pid = self.server.port, self.server.pid

    def publish(self, event):
        self.change(event["records"])

    def change(self, records):
        """Other prices for so many records."""
        self.turn += 1
        path = self.directory / "change.ndjson"
        start, lines = int(time.time()), []
        for number in range(1 + records // board.RECORDS_PER_EVENT):
            lines += [json.dumps(line) for line in board.odds(number, start, self.turn)]
        path.write_text("\n".join(lines[:records]) + "\n", encoding="utf-8")
        self.server.command("ingest", str(path))

    def position(self):
        return json.loads(contenders.get(self.port, "/v1/changes", self.headers)[2])["position"]


def first_event(service, records):
    """What a subscriber gets in a tick: an event with the beat after it, and the data of both."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    connection.request("GET", service.target, headers=service.headers)
    answer = connection.getresponse()
    service.change(records)
    lines, tick, data = [], "", ""
    while True:
        line = answer.readline().decode()
        lines.append(line)
        if line != "\n":
            continue
        is_beat = lines[0] == "event: beat\n"
        if MARK in "".join(lines) or (tick and is_beat):
            tick += "".join(lines)
            data += "".join(line[6:].rstrip("\n") for line in lines if line.startswith("data: "))
            if is_beat:
                return {"tick": tick, "data": data, "records": records}
        lines = []


@dataclasses.dataclass
class Cost:
    """What some events cost a server."""

    tick_micros: float
    """CPU time from one event to the next."""
    spreads_ms: list
    """From the first subscriber to the last, for each event."""
    memory: int


def tick(server, subscribers, event):
    """The server's CPU time for one event until the next, and the milliseconds from the first subscriber to the last."""
    began, before = time.monotonic(), measure.cpu_micros(server.pid)
    server.publish(event)
    arrived = subscribers.wait()
    time.sleep(max(0, REFRESH_S - (time.monotonic() - began)))
    return measure.cpu_micros(server.pid) - before, (arrived["last_micros"] - arrived["first_micros"]) / 1000


def fan_out(server, program, count, event, ticks):
    """The cost of some events to so many subscribers."""
    subscribers = Subscribers(program, server, count)
    try:
        subscribers.wait_connected()
        memory = measure.memory_bytes(server.pid)
        # nchan has lost an event that was published as soon as a subscriber had read the head of its answer.
        time.sleep(REFRESH_S)
        server.publish(event)
        subscribers.wait()
        done = [measure.undisturbed(lambda: tick(server, subscribers, event)) for _ in range(ticks)]
        return Cost(statistics.mean(micros for micros, _ in done), [spread for _, spread in done], memory)
    finally:
        subscribers.stop()


def compare(binary, program, directory, count, frame, ticks):
    records = FRAMES[frame]
    service = Service(binary, directory / f"oddsbox-{count}-{records}")
    event = first_event(service, records)
    print(f"{count} subscribers, ticks of {len(event['tick'])} bytes", flush=True)
    spent, delivered = {}, {}
    for start in (lambda: service, lambda: Nchan(directory), lambda: BareHyper(program)):
        server = start()
        try:
            # What was done after the start is not measured: oddsbox still packs the log of the board that it was filled with.
            fan_out(server, program, 1, event, ticks)
            all_of_them = fan_out(server, program, count, event, ticks)
            # With one subscriber there is nothing but what does not depend on their number: taking the event in, and for
            # oddsbox reading prices, comparing them and committing them to its file.
            alone = fan_out(server, program, 1, event, ticks)
        finally:
            server.stop()
        name, spreads = server.name, all_of_them.spreads_ms
        spent[name] = all_of_them.tick_micros / count
        delivered[name] = (all_of_them.tick_micros - alone.tick_micros) / (count - 1)
        print(f"  {name:11} {delivered[name]:6.1f} µs of CPU to deliver an event, {spent[name]:6.1f} with the"
              f" {alone.tick_micros / 1000:.1f} ms to take it in; first to last {statistics.median(spreads):.0f} ms"
              f" (at most {max(spreads):.0f}), {all_of_them.memory / 1e6:.0f} MB", flush=True)
    for other in ("nchan", "bare hyper"):
        print(f"  oddsbox to {other}: {delivered['oddsbox'] / delivered[other]:.2f}, with taking it in"
              f" {spent['oddsbox'] / spent[other]:.2f}", flush=True)


def idle(binary, program, directory, count, seconds):
    """What subscribers cost while nothing changes, at the usual refresh."""
    service = Service(binary, directory / "idle", refresh_s=30)
    subscribers = Subscribers(program, service, count)
    try:
        took = subscribers.wait_connected()
        # The first beat finds them all.
        time.sleep(30)
        before = measure.cpu_micros(service.pid)
        time.sleep(seconds)
        share = (measure.cpu_micros(service.pid) - before) / seconds / 10_000
        print(f"{count} idle subscribers: {share:.1f} % of a core, {measure.memory_bytes(service.pid) / 1e6:.0f} MB,"
              f" connected in {took:.1f} s", flush=True)
    finally:
        subscribers.stop()
        service.stop()


def readers(binary, program, directory, count, ticks):
    """Get Odds without and with changes to all subscribers."""
    service = Service(binary, directory / "readers")
    subscribers = Subscribers(program, service, count)
    try:
        subscribers.wait_connected()
        target, seconds = f"/v1/sports/{board.SPORT}/odds?limit=100", ticks * REFRESH_S
        quiet = read(program, service, target, 2, seconds)
        running = threading.Event()
        running.set()

        failures = []

        def change():
            try:
                while running.is_set():
                    service.change(100)
                    subscribers.wait()
            except SystemExit as failure:
                failures.append(failure)

        changing = threading.Thread(target=change)
        changing.start()
        busy = read(program, service, target, 2, seconds)
        running.clear()
        changing.join()
        if failures:
            raise failures[0]
        print(f"Get Odds beside {count} subscribers: p99 {quiet['p99']:.2f} ms without changes, {busy['p99']:.2f} ms with 100 in"
              f" every tick; the longest {quiet['max']:.1f} and {busy['max']:.1f} ms", flush=True)
    finally:
        subscribers.stop()
        service.stop()


def come_back(binary, program, directory, count):
    """Subscribers that come back all at once, with twenty publications to replay: from memory, and after a restart from the log."""
    service = Service(binary, directory / "back")
    try:
        since = service.position()
        for _ in range(20):
            before = service.position()
            service.change(100)
            while service.position() == before:
                time.sleep(0.05)
        for where in ("memory", "the log"):
            subscribers = Subscribers(program, service, count, since)
            try:
                subscribers.wait_connected()
                while subscribers.wait()["number"] < 19:
                    pass
                print(f"{count} subscribers that come back at once have 20 publications of 100 changes from {where} after"
                      f" {time.time() - subscribers.began:.1f} s", flush=True)
            finally:
                subscribers.stop()
            service.restart()
    finally:
        service.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscribers", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--ticks", type=int, default=10)
    parser.add_argument("--only", choices=["compare", "idle", "readers", "back"], nargs="+",
                        default=["compare", "idle", "readers", "back"])
    options = parser.parse_args()
    if not shutil.which("nginx") or not pathlib.Path("/usr/lib/nginx/modules/ngx_nchan_module.so").exists():
        raise SystemExit("nchan is missing: apt-get install nginx-light libnginx-mod-nchan")
    binary, program = contenders.build("fanout")
    many = max(options.subscribers)
    with measure.loaded_from() as directory:
        directory = pathlib.Path(directory)
        if "compare" in options.only:
            for count in options.subscribers:
                for frame in FRAMES:
                    compare(binary, program, directory, count, frame, options.ticks)
        if "idle" in options.only:
            idle(binary, program, directory, many, 90)
        if "readers" in options.only:
            readers(binary, program, directory, many, options.ticks)
        if "back" in options.only:
            come_back(binary, program, directory, min(many, 1000))


if __name__ == "__main__":
    main()
