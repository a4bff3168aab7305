"""What is compared: each is started on loopback with the same answers, and stopped with the run."""

import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import time

import board

ROOT = pathlib.Path(__file__).parents[2]
WAIT_S = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port} after {WAIT_S} s")


def get(port, target, headers):
    """One answer: status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", target, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.getheaders(), answer.read()


def build(bench="control"):
    """Builds the release binary and a program of the benches, and returns both paths."""
    command = ["cargo", "build", "--release", "--locked", "--bin", "oddsbox", "--bench", bench, "--message-format=json"]
    out = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout
    made = [json.loads(line) for line in out.splitlines()]
    executables = {line["target"]["name"]: line["executable"] for line in made if line.get("executable")}
    return pathlib.Path(executables["oddsbox"]), pathlib.Path(executables[bench])


class Process:
    """A server that this run started."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)

    @property
    def pid(self):
        return self.process.pid

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Oddsbox(Process):
    name = "oddsbox"

    def __init__(self, binary, directory, **settings):
        self.binary, self.data = binary, directory / "data"
        self.filled_s = None
        self.environment = os.environ | {"ODDSBOX_DATA": str(self.data), "ODDSBOX_LOG": "warn"} | settings
        log = open(directory / "oddsbox.log", "w", encoding="utf-8")
        super().__init__(
            [binary, "serve", "--listen", "127.0.0.1:0"], env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True)
        self.port = None
        for line in self.process.stdout:
            if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        if self.port is None:
            raise SystemExit((directory / "oddsbox.log").read_text())

    def command(self, *arguments):
        return subprocess.run(
            [self.binary, *arguments, "--json"], env=self.environment, capture_output=True, text=True, check=True).stdout

    def issue_key(self, name="versus"):
        """A key that no run uses up."""
        limits = ["--burst", "16000000", "--per-day", "1000000000000"]
        issued = self.command("keys", "issue", "--live", "--approved-by", "versus", "--name", name, *limits)
        return json.loads(issued)["key"]

    def wait_for_prices(self, key, event_id):
        """Prices are served from the next publication on."""
        target = f"/v1/sports/{board.SPORT}/odds?event_ids={event_id}&limit=1&regions=us,uk,eu,au"
        deadline = time.monotonic() + WAIT_S
        while get(self.port, target, {"X-API-Key": key})[2] == b"[]":
            if time.monotonic() > deadline:
                raise SystemExit(f"no price of {event_id} was published within {WAIT_S} s")
            time.sleep(0.05)

    def fill(self, directory, records):
        """Takes in the lines of a board. Returns how many events it has, and when they were made."""
        start = int(time.time())
        events = board.write(directory / "lines.ndjson", records, start)
        began = time.monotonic()
        self.command("ingest", str(directory / "lines.ndjson"))
        self.filled_s = time.monotonic() - began
        return events, start


class Control(Process):
    name = "control"

    def __init__(self, binary, cases_file):
        self.port = free_port()
        super().__init__([binary, f"127.0.0.1:{self.port}", cases_file], stdout=subprocess.DEVNULL)
        wait_for(self.port)


class Nginx(Process):
    """nginx with the answers as static files, tuned as its documentation advises for that."""

    name = "nginx"
    needs = {"nginx": "apt-get install nginx-light"}

    def __init__(self, directory, cases, logs):
        self.port = free_port()
        root = directory / "static"
        root.mkdir()
        for case in cases:
            (root / case.file).write_bytes(case.identity)
            if case.encoding == "gzip":
                (root / f"{case.file}.gz").write_bytes(case.body)
            if case.encoding == "zstd":
                # It has no zstd of its own: the compressed bytes stand as a file.
                (root / case.file).write_bytes(case.body)
        configuration = directory / "nginx.conf"
        configuration.write_text(f"""
worker_processes {os.cpu_count()};
daemon off; master_process on;
pid {directory}/nginx.pid;
error_log {directory}/nginx-error.log;
events {{ worker_connections 16384; }}
http {{
  access_log {directory / 'nginx-access.log' if logs else 'off'}; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000; keepalive_timeout 75s;
  open_file_cache max=1000; open_file_cache_valid 300s; gzip_static on; etag on;
  default_type application/json;
  client_body_temp_path {directory}/n1; proxy_temp_path {directory}/n2; fastcgi_temp_path {directory}/n3;
  uwsgi_temp_path {directory}/n4; scgi_temp_path {directory}/n5;
  server {{ listen 127.0.0.1:{self.port}; root {root}; add_header Cache-Control "private, max-age=30"; }}
}}
""")
        super().__init__([shutil.which("nginx"), "-c", str(configuration), "-e", f"{directory}/nginx-error.log"])
        wait_for(self.port)


class Redis(Process):
    name = "redis"
    needs = {"redis-server": "apt-get install redis-server", "redis-benchmark": "apt-get install redis-tools"}

    def __init__(self, directory, cases):
        self.port = free_port()
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)]
        super().__init__(command, stdout=subprocess.DEVNULL)
        wait_for(self.port)
        for case in cases:
            put = subprocess.run(["redis-cli", "-p", str(self.port), "-x", "SET", case.file], input=case.body, check=True,
                                 capture_output=True)
            if put.stdout.strip() != b"OK":
                raise SystemExit(f"Redis did not take {case.file}: {put.stdout!r}")

    def get(self, key):
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(f"GET {key}\r\n".encode())
            stream = connection.makefile("rb")
            return stream.read(int(stream.readline()[1:]))


class FastApi(Process):
    """A small service over SQLite, with as many workers as there are cores."""

    name = "fastapi"

    @staticmethod
    def missing():
        try:
            import fastapi, uvicorn  # noqa: F401
        except ImportError:
            return "pip install fastapi 'uvicorn[standard]'"
        return None

    def __init__(self, directory, oddsbox, keys, logs):
        self.port = free_port()
        database = directory / "odds.sqlite"
        self.fill(database, oddsbox, keys)
        level = "info" if logs else "error"
        command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(self.port), "--log-level", level]
        super().__init__([*command, "--workers", str(os.cpu_count())], cwd=pathlib.Path(__file__).parent,
                         env=os.environ | {"VERSUS_DATABASE": str(database)},
                         stdout=open(directory / "fastapi.log", "w", encoding="utf-8"), stderr=subprocess.STDOUT)
        wait_for(self.port)

    @staticmethod
    def fill(database, oddsbox, keys):
        """Copies every record that oddsbox serves, in its order."""
        connection = sqlite3.connect(database)
        connection.executescript("""
PRAGMA journal_mode = WAL;
CREATE TABLE keys (hash TEXT PRIMARY KEY);
CREATE TABLE odds (position INTEGER PRIMARY KEY, id TEXT, sport_key TEXT, event_id TEXT, bookmaker TEXT, region TEXT,
                   market TEXT, last_update TEXT, outcomes TEXT);
""")
        connection.executemany("INSERT INTO keys VALUES (?)", [(hashlib.sha256(key.encode()).hexdigest(),) for key in keys])
        target, headers, position = f"/v1/sports/{board.SPORT}/odds?limit=500&regions=us,uk,eu,au", {"X-API-Key": keys[0]}, 0
        while target:
            _, answer, body = get(oddsbox.port, target, headers)
            for record in json.loads(body):
                region = board.REGIONS[board.BOOKS.index(record["bookmaker"]) % 4]
                row = (position, record["id"], record["sport_key"], record["event_id"], record["bookmaker"], region,
                       record["market"], record["last_update"], json.dumps(record["outcomes"]))
                connection.execute("INSERT INTO odds VALUES (?,?,?,?,?,?,?,?,?)", row)
                position += 1
            link = dict((name.lower(), value) for name, value in answer).get("link", "")
            target = link[link.index("<") + 1:link.index(">")] if link else None
        connection.execute("CREATE INDEX by_event ON odds (event_id, bookmaker)")
        connection.execute("CREATE INDEX by_sport ON odds (sport_key, region, position)")
        connection.commit()
        connection.close()
