#!/usr/bin/env python3
"""Power losses of a running oddsbox on a block device with a real file system.

    sudo tests/disk/run.py [--losses N] [--seed N] [--binary FILE] [ext4] [xfs]

The server's data directory is on a device that logs every write and every flush (device.py). While clients push prices,
issue, rotate and revoke keys, make requests, backups and exports, each answer is noted with the position in that log. Then the
power is lost, many times: all writes up to the last flush before some position are on the disk, and of those after it
any part, in any order, whole or in sectors of 512 bytes. Each time the image is mounted, so that the file system
replays its journal, and the service is started on it:

- it starts, and `oddsbox check` finds nothing, before and after
- every price, key, backup and export is as it was last acknowledged, or as a later request that had begun would make it
- texts of keys that were revoked or replaced are refused, and requests that were answered are counted in the quota
- it takes new prices and keys

The next recording continues on an image that such a loss left, so losses during recovery are among those that follow.

The last part of a run is a control on a disk that acknowledges flushes without performing them. Every run includes it,
and fails if it finds nothing lost there.

Exits with 0 if nothing was lost, 1 if something was or the control found nothing, and 2 if something needed is missing.
A recording in which something was lost is kept, and `--again` repeats the loss.

Which writes are made is up to the kernel and the clock: `--seed` repeats the choices of clients and losses, but not the
exact log. The disk processes requests one at a time: it does not model a flush that leaves out a write in progress.
"""

import argparse
import collections
import concurrent.futures
import datetime
import hashlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

# It runs as root, and leaves nothing in the checkout.
sys.dont_write_bytecode = True
import device  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Below 1 GiB of free space, oddsbox stops its log of changes. The image is sparse.
DISK_SIZE = 2 << 30
LOSSES_PER_RECORDING = 50
CONTROLS = 20
SHOWN = 5  # failures
BATCHES, COMMANDS = 60, 40
LEASE = 100  # of a key for 10,000 requests a day
EVENTS, BOOKS, SIDES = 12, 3, ("Ana Ruiz", "Bea Holt")


class Lost(Exception):
    """Something that was acknowledged is not there, or is not as it was acknowledged."""


class Broken(Exception):
    """The data file or the service does not work after a loss."""


class Socket(http.client.HTTPConnection):
    """HTTP over the admin socket."""

    def __init__(self, path):
        super().__init__("admin", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Service:
    """A server on the data directory of a mounted file system."""

    def __init__(self, binary, mount):
        self.binary, self.data = binary, os.path.join(mount, "data")
        # Prices are published every second, so the log of changes is written often. Standard error has why it ends.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ODDSBOX_")}
        self.environment = environment | {"ODDSBOX_REFRESH": "1s", "ODDSBOX_LOG": "error"}
        self.errors = tempfile.TemporaryFile("w+")
        self.process = None

    def __enter__(self):
        command = [self.binary, "serve", "--data", self.data, "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True, preexec_fn=device.die_with_parent)
        hangs = threading.Timer(60, self.process.kill)
        hangs.start()
        line = self.process.stdout.readline()
        hangs.cancel()
        if not line.startswith("listening on "):
            self.stop()
            raise Broken(f"the service does not start: {self.said()}")
        self.address = line.strip().rpartition("/")[2]
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def said(self):
        self.errors.seek(0)
        return self.errors.read().strip() or f"exit code {self.process.returncode}"

    def connect(self):
        return Socket(os.path.join(self.data, "admin", "oddsbox.sock"))

    def export(self, path):
        command = [self.binary, "export", "--data", self.data, "--output", path, "--force"]
        subprocess.run(command, env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def check(self):
        """Verifies the pages and rows of a data file that no server uses."""
        if not os.path.exists(os.path.join(self.data, "oddsbox.redb")):
            return
        command = [self.binary, "check", "--data", self.data, "--json"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise Broken(f"oddsbox check: {done.stdout.strip()} {done.stderr.strip()}")


def ask(connection, method, path, body=None, headers=None):
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    text = response.read()
    if response.status != 200:
        raise Broken(f"{method} {path}: {response.status} {text.decode()}")
    return text


def command(connection, order, /, **fields):
    body = json.dumps({"command": order, **fields})
    return json.loads(ask(connection, "POST", "/command", body, {"Content-Type": "application/json"}))


def key_state(answer):
    return [answer["id"], answer["hint"], answer["status"]]


def today():
    return str(datetime.datetime.now(datetime.timezone.utc).date())


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def odds(event, book, price):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    outcomes = [{"name": SIDES[0], "price": price}, {"name": SIDES[1], "price": 1.5}] if price else []
    return {"type": "odds", "sport": "mma", "event": event, "bookmaker": book, "market": "moneyline",
            "last_update": now, "format": "decimal", "outcomes": outcomes}


def push(connection, lines):
    body = "".join(json.dumps(line) + "\n" for line in lines)
    report = json.loads(ask(connection, "POST", "/ingest", body))
    if report["accepted"] != len(lines):
        raise Broken(f"lines were rejected: {report}")


def events_and_books():
    for book in range(BOOKS):
        yield {"type": "bookmaker", "key": f"book{book}", "title": f"Book {book}", "regions": ["us"]}
    for event in range(EVENTS):
        yield {"type": "event", "sport": "mma", "id": f"e{event}", "competition": "Fight Night", "status": "scheduled",
               "commence_time": "2090-01-01T00:00:00Z", "home": SIDES[0], "away": SIDES[1]}


class Notes:
    """What was acknowledged when.

    Everything that is checked is a register: a name with the values that it was given one after the other, and for each
    value the positions in the log when it was sent and when it was acknowledged. Only one client writes to a register.
    """

    def __init__(self, registers=None, secrets=None, day=None):
        self.registers = collections.defaultdict(lambda: [(0, 0, None)], registers or {})
        self.secrets = secrets or {}  # the texts of each key, oldest first
        self.day = day or today()

    def write(self, name, begin, end, value):
        self.registers[name].append((begin, end, value))

    def acknowledged(self):
        """All positions at which something was acknowledged."""
        return sorted({end for values in self.registers.values() for _, end, _ in values if end})

    def compare(self, found, point):
        """Raises an exception if what was found after a loss cannot be what was acknowledged before it."""
        for name in sorted(self.registers.keys() | found.keys()):
            values = self.registers[name]
            last = max(at for at, (_, end, _) in enumerate(values) if end <= point)
            allowed = [values[last][2]] + [value for begin, _, value in values[last + 1:] if begin < point]
            value = found.get(name)
            if name.startswith("requests "):
                # A lease that was not used up counts as used. Midnight begins another count.
                least, most = allowed[0] or 0, (allowed[-1] or 0) + LEASE
                if self.day == today() and not least <= (value or 0) <= most:
                    raise Lost(f"{name}: {value} are counted, {least} were answered, {most} can be counted")
            elif value not in allowed:
                raise Lost(f"{name}: found {value}, allowed are {allowed}")

    def after(self, found):
        """The notes of a recording that continues with what was found."""
        is_same_day = self.day == today()
        registers = {name: [(0, 0, value)] for name, value in found.items()
                     if is_same_day or not name.startswith("requests ")}
        return Notes(registers, {name: list(secrets) for name, secrets in self.secrets.items()})

    def save(self, directory):
        with open(os.path.join(directory, "notes.json"), "w") as file:
            json.dump([self.registers, self.secrets, self.day], file)

    @staticmethod
    def load(directory):
        with open(os.path.join(directory, "notes.json")) as file:
            return Notes(*json.load(file))


def look(connection, mount):
    """All registers as they are."""
    found = {}
    for line in ask(connection, "GET", "/export?world=live").splitlines():
        line = json.loads(line)
        if line["type"] == "odds":
            found[f"price {line['event']} {line['bookmaker']}"] = line["outcomes"][0]["price"]
    for key in command(connection, "keys-list"):
        found[f"key {key['name']}"] = key_state(key)
        found[f"requests {key['name']}"] = key["used_today"]
    for name in os.listdir(mount):
        if name.endswith((".backup", ".export")):
            found[f"file {name}"] = digest(os.path.join(mount, name))
    return found


class Recording:
    """A run of the service with three clients, on a disk that logs."""

    def __init__(self, place, notes, seed):
        self.place, self.notes, self.seed = place, notes, seed
        self.lock, self.is_over = threading.Lock(), threading.Event()

    def make(self):
        place = self.place
        device.copy(place.path("base.img"), place.path("disk.img"))
        for name in ("index", "bytes"):
            if os.path.exists(place.path(name)):
                os.remove(place.path(name))
        with device.Disk(place.path("disk"), place.path("disk.img"), place.directory) as self.disk, \
                device.Mounted(place.kind, place.path("disk"), place.path("mount"), direct_io="on"), \
                Service(place.binary, place.path("mount")) as self.service, \
                concurrent.futures.ThreadPoolExecutor() as pool:
            try:
                busy = [pool.submit(self.client, act) for act in (self.push_prices, self.change_keys)]
                requests = pool.submit(self.client, self.make_requests)
                for client in busy:
                    client.result()
            finally:
                self.is_over.set()
            requests.result()
        os.remove(place.path("disk.img"))
        self.notes.save(place.directory)

    def client(self, act):
        connection = self.service.connect()
        act(connection, random.Random(f"{self.seed} {act.__name__}"))
        connection.close()

    def write(self, act, *registers):
        """Does something that gives registers new values, and notes when; a value can be a function of the answer."""
        begin = self.disk.position()
        answer = act()
        end = self.disk.position()
        values = [(name, value(answer) if callable(value) else value) for name, value in registers]
        with self.lock:
            for name, value in values:
                self.notes.write(name, begin, end, value)
        return answer

    def push_prices(self, connection, choice):
        push(connection, list(events_and_books()))
        for _ in range(BATCHES):
            if self.is_over.is_set():
                return
            batch = {}
            for _ in range(choice.choice((1, 3, 20))):
                at = f"e{choice.randrange(EVENTS)}", f"book{choice.randrange(BOOKS)}"
                # A market without a price is closed.
                batch[at] = choice.randrange(2_000, 90_000_000) / 1000 if choice.random() < 0.9 else None
            lines = [odds(event, book, price) for (event, book), price in batch.items()]
            registers = [(f"price {event} {book}", price) for (event, book), price in batch.items()]
            self.write(lambda: push(connection, lines), *registers)
            time.sleep(choice.choice((0, 0.05, 0.2)))

    def change_keys(self, connection, choice):
        active = []
        for _ in range(COMMANDS):
            if self.is_over.is_set():
                return
            act = choice.choice(("issue", "issue", "rotate", "revoke", "back up"))
            if act == "back up":
                self.write_file(connection, choice.choice(("a.backup", "b.backup", "a.export", "b.export")))
            elif act == "issue" or not active:
                active.append(f"{choice.getrandbits(64):016x}")
                self.change_key(connection, active[-1], "keys-issue", kind="sandbox", name=active[-1])
            else:
                name = choice.choice(active)
                self.change_key(connection, name, f"keys-{act}", id=name)
                if act == "revoke":
                    active.remove(name)
            time.sleep(choice.choice((0, 0.1, 0.3)))

    def change_key(self, connection, key, order, /, **fields):
        answer = self.write(lambda: command(connection, order, **fields), (f"key {key}", key_state))
        if "key" in answer:
            self.notes.secrets.setdefault(key, []).append(answer["key"])
        return answer

    def write_file(self, connection, name):
        path = self.place.path("mount", name)
        content = (f"file {name}", lambda _: digest(path))
        if name.endswith(".backup"):
            self.write(lambda: command(connection, "backup", file=path, force=True), content)
        else:
            self.write(lambda: self.service.export(path), content)

    def make_requests(self, connection, choice):
        key = f"{choice.getrandbits(64):016x}"
        limits = {"requests_per_day": 100 * LEASE, "burst_per_minute": 1_000_000}
        secret = self.change_key(connection, key, "keys-issue", kind="sandbox", name=key, **limits)["key"]
        public = http.client.HTTPConnection(self.service.address, timeout=60)
        for count in range(1, 50 * LEASE):
            if self.is_over.is_set():
                break
            counted = (f"requests {key}", count)
            self.write(lambda: ask(public, "GET", "/v1/sports", headers={"X-API-Key": secret}), counted)
            time.sleep(choice.choice((0, 0, 0, 0.05)))
        public.close()


class Place:
    """The files of one file system's recordings and losses."""

    def __init__(self, directory, kind, binary):
        self.directory, self.kind, self.binary = directory, kind, binary
        os.makedirs(self.path("mount"), exist_ok=True)

    def path(self, *names):
        return os.path.join(self.directory, *names)


class Count:
    losses = with_lost_writes = replays = 0


def lose(place, notes, seeds, count, keep=None):
    """Loses the power once for each seed. Returns what failed, and what was found after the loss with the seed `keep`,
    whose image becomes `kept.img`."""
    log, acknowledged = device.Log(place.directory), notes.acknowledged()
    images = device.Images(log, place.path("base.img"), place.directory)
    failures, kept = [], None
    losses = [device.Loss(seed, log, acknowledged, seed.startswith("lie")) for seed in seeds]
    for loss in sorted(losses, key=lambda loss: loss.flushed):
        lost = images.make(loss, place.path("lost.img"))
        if loss.seed == keep:
            device.copy(place.path("lost.img"), place.path("kept.img"))
        count.losses += 1
        count.with_lost_writes += lost > 0
        try:
            found = recover(place, notes, loss, count)
            if loss.seed == keep:
                kept = found
        except (Lost, Broken, OSError, http.client.HTTPException) as error:
            failures.append((loss.seed, error))
    os.remove(place.path("lost.img"))
    os.remove(images.flushed)
    return failures, kept


def recover(place, notes, loss, count):
    """Mounts the image of a loss, starts the service and compares; returns what was found."""
    mount = place.path("mount")
    choice = random.Random(loss.seed)
    with device.Mounted(place.kind, place.path("lost.img"), mount) as mounted:
        count.replays += mounted.replayed
        service = Service(place.binary, mount)
        # The first that opens the file repairs it: sometimes this, sometimes the server.
        if choice.random() < 0.5:
            service.check()
        with service:
            connection = service.connect()
            found = look(connection, mount)
            notes.compare(found, loss.point)
            refuse_old_secrets(service, notes, found, choice)
            write_again(connection, mount, found)
            connection.close()
        service.check()
    return found


def refuse_old_secrets(service, notes, found, choice):
    connection = http.client.HTTPConnection(service.address, timeout=60)
    for name in choice.sample(sorted(notes.secrets), min(len(notes.secrets), 30)):
        _, hint, status = found.get(f"key {name}") or [None, "", None]
        for secret in notes.secrets[name]:
            connection.request("GET", "/v1/sports", headers={"X-API-Key": secret})
            response = connection.getresponse()
            response.read()
            is_current = status == "active" and secret[-4:] == hint[-4:]
            if response.status != (200 if is_current else 401):
                what = f"the {'current' if is_current else 'old'} text of key {name} ({status})"
                raise Lost(f"{what} is answered with {response.status}")
    connection.close()


def write_again(connection, mount, found):
    push(connection, [*events_and_books(), odds("e0", "book0", 7.5)])
    answer = command(connection, "keys-issue", kind="sandbox", name="after")
    expected = found | {"price e0 book0": 7.5, "key after": key_state(answer)}
    now = look(connection, mount)
    for name in expected.keys() | now.keys():
        if not name.startswith("requests ") and expected.get(name) != now.get(name):
            raise Lost(f"{name}: {expected.get(name)} became {now.get(name)} by writing something else")


def try_file_system(place, losses, seed):
    """Records and loses until there were enough losses, then does the control. Returns whether all was well."""
    began, count, failures = time.monotonic(), Count(), []
    device.make_file_system(place.kind, place.path("base.img"), DISK_SIZE)
    notes, number = Notes(), 0
    while count.losses < losses and not failures:
        if number:
            os.replace(place.path("kept.img"), place.path("base.img"))
        Recording(place, notes, f"{seed}-{place.kind}-{number}").make()
        log = device.Log(place.directory)
        here = min(LOSSES_PER_RECORDING, losses - count.losses)
        seeds = [f"{seed}-{place.kind}-{number}-{at}" for at in range(here)]
        writes, flushes = len(log.entries) - len(log.flushes), len(log.flushes)
        answers = sum(len(values) - 1 for values in notes.registers.values())
        say(f"{place.kind}: recording {number}: {writes} writes, {flushes} flushes, {answers} acknowledged changes and "
            f"requests; {here} power losses")
        recorded = notes
        failures, found = lose(place, recorded, seeds, count, keep=seeds[here // 2])
        number += 1
        if not failures:
            notes = recorded.after(found)
    control = Count()
    noticed, _ = lose(place, recorded, [f"lie-{seed}-{place.kind}-{at}" for at in range(CONTROLS)], control)
    noticed = [error for _, error in noticed if isinstance(error, Lost)]
    for loss, error in failures[:SHOWN]:
        # It can have the page of a report or of a panic.
        say(f"{place.kind}: FAILED: {type(error).__name__}: {str(error)[:500]}")
        say(f"  again: {sys.argv[0]} --binary {place.binary} --again {place.directory} {loss}")
    say(f"{place.kind}: {count.losses} power losses in {number} recordings, {count.with_lost_writes} of them lost "
        f"writes, {count.replays} journals replayed, {len(failures)} failures; control: {len(noticed)} of "
        f"{control.losses} losses on a disk that lies noticed; {time.monotonic() - began:.0f} s")
    if not noticed:
        say(f"{place.kind}: FAILED: the control found nothing lost on a disk that ignores flushes")
    return not failures, bool(noticed)


def say(text):
    print(text, flush=True)


def missing(kinds, binary):
    """What this needs and cannot have, with what to do about it."""
    if os.geteuid() != 0:
        yield "root: loop devices and mounts need it"
        return
    for path, module in (("/dev/fuse", "fuse"), ("/dev/loop-control", "loop")):
        if not os.path.exists(path):
            yield f"{path}: modprobe {module}"
    packages = {"ext4": "e2fsprogs", "xfs": "xfsprogs"}
    for kind in kinds:
        if not shutil.which(f"mkfs.{kind}"):
            yield f"mkfs.{kind}: apt install {packages[kind]}"
        if shutil.which("modprobe"):
            subprocess.run(["modprobe", "--quiet", kind])
        with open("/proc/filesystems") as file:
            if kind not in file.read().split():
                yield f"{kind} in this kernel: modprobe {kind}"
    programs = {"losetup": "mount", "mount": "mount", "umount": "mount", "fallocate": "util-linux"}
    for program, package in programs.items():
        if not shutil.which(program):
            yield f"{program}: apt install {package}"
    if not os.access(binary, os.X_OK):
        yield f"{binary}: cargo build --locked, or --binary FILE"
    try:
        device.own_mounts()
    except OSError as error:
        yield f"mounts of its own ({error}): run it outside of a container, or in a privileged one"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog="See the top of this file.")
    parser.add_argument("kinds", nargs="*", metavar="FILE_SYSTEM", help="ext4, xfs [default: both]")
    parser.add_argument("--losses", type=int, default=200, metavar="N", help="of each file system [default: 200]")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), metavar="N")
    target = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "debug", "oddsbox")
    parser.add_argument("--binary", default=target, metavar="FILE", help="[default: the debug build]")
    parser.add_argument("--again", nargs=2, metavar=("DIRECTORY", "LOSS"), help="repeat a loss of a kept recording")
    options = parser.parse_args()
    kinds = options.kinds or ["ext4", "xfs"]
    if unknown := [kind for kind in kinds if kind not in ("ext4", "xfs")]:
        parser.error(f"{unknown[0]} is not ext4 or xfs")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    lacks = list(missing(kinds, options.binary))
    for lack in lacks:
        print(f"missing: {lack}", file=sys.stderr)
    if lacks:
        sys.exit(2)

    if options.again:
        directory, loss = options.again
        place = Place(directory, loss.removeprefix("lie-").split("-")[1], options.binary)
        failures, _ = lose(place, Notes.load(directory), [loss], Count())
        say(str(failures[0][1]) if failures else "nothing is lost")
        sys.exit(bool(failures))

    say(f"seed {options.seed}")
    # Images and logs are large and short-lived: in memory, if there is room.
    memory = "/dev/shm"
    in_memory = os.path.isdir(memory) and shutil.disk_usage(memory).free > 2 << 30
    directory = tempfile.mkdtemp(prefix="oddsbox-disk-", dir=memory if in_memory else None)
    well, is_kept = True, True
    try:
        for kind in kinds:
            place = Place(os.path.join(directory, kind), kind, options.binary)
            nothing_lost, control = try_file_system(place, options.losses, options.seed)
            well = well and nothing_lost and control
            if nothing_lost:
                shutil.rmtree(place.directory)
        is_kept = bool(os.listdir(directory))
    except KeyboardInterrupt:
        is_kept = False
        sys.exit(130)
    finally:
        device.detach_all(directory)
        if not is_kept:
            shutil.rmtree(directory)
    sys.exit(not well)


if __name__ == "__main__":
    main()
