"""Load, and what it cost: wrk and redis-benchmark on loopback, CPU time and memory from the kernel's accounting."""

import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).parent
# On a shared machine, more than this share of the time for other guests spoils a measurement.
DISTURBED, ATTEMPTS = 0.05, 4


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
        try:
            children = (task / "children").read_text().split()
        except FileNotFoundError:
            # The thread has ended meanwhile.
            continue
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


def stolen_s():
    """Seconds of CPU time so far that the hypervisor gave to other guests while this one had work."""
    return int(pathlib.Path("/proc/stat").read_text().split(maxsplit=9)[8]) / os.sysconf("SC_CLK_TCK")


def with_disturbance(attempt):
    """What an attempt returns, and the share of the machine's time that other guests had meanwhile."""
    began, before = time.monotonic(), stolen_s()
    result = attempt()
    return result, (stolen_s() - before) / (time.monotonic() - began) / os.cpu_count()


def undisturbed(attempt):
    """Repeats a measurement that other guests disturbed; if all are, the one that was disturbed least counts."""
    best, least = None, 1
    for _ in range(ATTEMPTS):
        result, share = with_disturbance(attempt)
        if best is None or share < least:
            best, least = result, share
        if least <= DISTURBED:
            return best
    print(f"other guests of the machine had {least:.0%} of its time in the best of {ATTEMPTS} attempts", flush=True)
    return best


def wrk(*arguments, **settings):
    """Drives an HTTP server for some seconds."""
    return undisturbed(lambda: wrk_once(*arguments, **settings))


def wrk_once(pid, url, headers, seconds, connections, script="report.lua", arguments=()):
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

    def once():
        count = max(1000, int(fields(run(5000))[0] * seconds))
        before = cpu_micros(pid)
        per_second, _, _, p50, _, p99, longest = fields(run(count))
        spent = cpu_micros(pid) - before
        return Round(count, per_second, spent / count, p50 * 1e3, p99 * 1e3, longest * 1e3)

    return undisturbed(once)


def loaded_from(directory=None):
    """A directory for a run's files, gone with the returned object."""
    return tempfile.TemporaryDirectory(prefix="oddsbox-versus-", dir=directory or os.environ.get("TMPDIR"))
