"""Load, and what it cost: wrk and redis-benchmark on loopback, CPU time and memory from the kernel's accounting."""

import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass
class Round:
    """One contender under load for one round."""

    requests: int
    per_second: float
    cpu_micros: float
    """The server's own CPU time for each request."""
    p50_micros: float
    p99_micros: float
    max_micros: float


def processes(pid):
    """A process and its children."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        children = (task / "children").read_text().split()
        found.extend(below for child in children for below in processes(int(child)))
    return found


def cpu_micros(pid):
    """CPU time so far of a process with its children, user and system, threads that have ended included."""
    # The CPU clock of a process, as clock_getcpuclockid() names it: /proc has the same in steps of 10 ms.
    return sum(time.clock_gettime_ns((~each << 3) | 2) // 1000 for each in processes(pid))


def memory_bytes(pid):
    """Memory that is the process's and its children's own, shared pages divided."""
    total = 0
    for each in processes(pid):
        for line in pathlib.Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def wrk(pid, url, headers, seconds, connections, script="report.lua", arguments=()):
    """Drives an HTTP server for some seconds."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", str(HERE / script)]
    for name, value in headers.items():
        command += ["-H", f"{name}: {value}"]
    before = cpu_micros(pid)
    output = subprocess.run([*command, url, "--", *arguments], capture_output=True, text=True, check=True).stdout
    spent = cpu_micros(pid) - before
    told = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    if told["errors"] or told["bad_status"] or not told["requests"]:
        raise SystemExit(f"{url} did not answer well under load: {told}")
    return Round(
        told["requests"], told["requests"] / (told["micros"] / 1e6), spent / told["requests"],
        told["p50"], told["p99"], told["max"],
    )


def redis_get(pid, port, key, seconds, connections):
    """Drives Redis with GET for about some seconds."""
    def run(count):
        command = ["redis-benchmark", "-p", str(port), "-c", str(connections), "-n", str(count), "--csv", "GET", key]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]

    def fields(line):
        return [float(field.strip('"')) for field in line.rsplit(",", 7)[1:]]

    count = max(1000, int(fields(run(5000))[0] * seconds))
    before = cpu_micros(pid)
    per_second, _, _, p50, _, p99, longest = fields(run(count))
    spent = cpu_micros(pid) - before
    return Round(count, per_second, spent / count, p50 * 1e3, p99 * 1e3, longest * 1e3)


def loaded_from(directory=None):
    """A directory for a run's files, gone with the returned object."""
    return tempfile.TemporaryDirectory(prefix="oddsbox-versus-", dir=directory or os.environ.get("TMPDIR"))
