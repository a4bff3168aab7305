"""Does what README.md says: runs the commands of its ```console blocks in one shell, and compares what they print.

    python3 tests/readme.py README.md [COMMAND...]      from the root of the repository; commands to leave out

How a block is read, so that it stays a page for people:
- A line that begins with `$ ` is a command (a backslash at its end goes on with the next line); what stands below it, up
  to the next command, is its promised output. A command without output promises only to succeed. A promise that begins
  with `error: ` is a failure that is reported on standard error.
- `…` in a promise stands for anything, also for lines. Line breaks and the width of blanks do not count.
- A promised JSON document is a promise of form: the same fields with the same types, in lists of at least one element;
  prices, names and times are as they are on the day. A null promises nothing but the field.
- `…` in a command stands for the rest of a word that was shown before, the latest one: `KEY=sk_test_ob_…`.
- After `<!-- runs on -->` the block's command goes on in the background, and its promise is to be kept in time.
- The one liberty: 127.0.0.1:8080 is wherever the service that runs on says that it listens.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ADDRESS = "127.0.0.1:8080"
LONGEST_S = 1800  # a cold build on a slow machine


class Broken(Exception):
    """A promise that was not kept."""


def commands(text):
    """Each command of the page: its line number, itself, its promise, and whether it runs on."""
    runs_on = is_console = False
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            is_console, was_console = line == "```console", is_console
            runs_on = runs_on and not was_console
        elif line.startswith("<!-- runs on"):
            runs_on = True
        elif is_console and line.startswith("$ "):
            found.append([number, line[2:], [], runs_on])
        elif is_console and found and found[-1][1].endswith("\\") and not found[-1][2]:
            found[-1][1] += "\n" + line
        elif is_console and found:
            found[-1][2].append(line)
    return [(number, command, "\n".join(promise).strip(), runs_on) for number, command, promise, runs_on in found]


def form(value):
    """A document without its values."""
    if isinstance(value, dict):
        return {name: form(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [form(inner) for inner in value]
    return {bool: "truth", int: "number", float: "number", str: "text"}.get(type(value))


def is_like(promised, shown):
    """Whether a form has what another promises."""
    if promised is None or shown is None:
        return promised is None or isinstance(promised, str)
    if isinstance(promised, dict):
        same = isinstance(shown, dict) and promised.keys() == shown.keys()
        return same and all(is_like(inner, shown[name]) for name, inner in promised.items())
    if isinstance(promised, list):
        same = isinstance(shown, list) and bool(promised) <= bool(shown)
        return same and all(any(is_like(inner, other) for inner in promised) for other in shown if promised)
    return promised == shown


def document(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def keeps(promise, shown, is_whole=True):
    """Whether what was shown is what was promised."""
    promised = document(promise)
    if promised is not None:
        given = document(shown)
        return given is not None and is_like(form(promised), form(given))
    blank = re.compile(r"\s+")
    pattern = ".*".join(re.escape(blank.sub("", part)) for part in promise.split("…"))
    pattern = pattern.replace(re.escape(ADDRESS), r"127\.0\.0\.1:\d+")
    shown = blank.sub("", shown)
    return bool(re.fullmatch(pattern, shown) if is_whole else re.search(pattern, shown))


class Shell:
    """One bash for the whole page, so that variables last."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.seen = ""
        self.address = ADDRESS
        self.bash = subprocess.Popen(["bash"], stdin=subprocess.PIPE, text=True, start_new_session=True)

    def path(self, name):
        return os.path.join(self.scratch, name)

    def read(self, name):
        with open(self.path(name), errors="replace") as file:
            return file.read()

    def send(self, text):
        self.bash.stdin.write(text + "\n")
        self.bash.stdin.flush()

    def filled(self, command):
        """The command with what was shown before in the place of `…`, and the address that there is."""

        def latest(match):
            words = re.findall(re.escape(match[1]) + r"\w+", self.seen)
            if not words:
                raise Broken(f"nothing that begins with {match[1]} was shown before")
            return words[-1]

        return re.sub(r"(\w+)…", latest, command).replace(ADDRESS, self.address)

    def wait(self, what, is_done):
        deadline = time.monotonic() + LONGEST_S
        while not is_done():
            if self.bash.poll() is not None or time.monotonic() > deadline:
                raise Broken(f"{what}: the shell ended" if self.bash.poll() is not None else f"{what}: took too long")
            time.sleep(0.05)

    def run(self, command, promise):
        out, err, code = self.path("out"), self.path("err"), self.path("code")
        self.send(f"{{ {self.filled(command)}\n}} >{out} 2>{err} </dev/null; echo $? >{code}.new; mv {code}.new {code}")
        self.wait(command, lambda: os.path.exists(code))
        status = int(self.read("code"))
        os.remove(code)
        is_failure = promise.startswith("error: ")
        shown = self.read("err" if is_failure else "out")
        self.seen += self.read("out")
        if (status != 0) != is_failure:
            raise Broken(f"exit code {status}\n{self.read('out')[-2000:]}{self.read('err')[-4000:]}")
        if promise and not keeps(promise, shown):
            raise Broken(f"promised:\n{promise}\nshown:\n{shown[:4000]}")

    def run_on(self, command, promise):
        out = self.path("runs-on")
        # A command in the background makes its files when it comes to it, which may be after the shell has gone on.
        for name in (out, f"{out}.err"):
            open(name, "w").close()
        self.send(f"{self.filled(command)} >{out} 2>{out}.err </dev/null &\necho $! >{out}.pid")
        self.wait(command, lambda: os.path.exists(out + ".pid") and self.read("runs-on.pid").strip())
        process = int(self.read("runs-on.pid"))

        def is_kept():
            if not os.path.exists(f"/proc/{process}") and os.path.exists("/proc"):
                raise Broken(f"it ended:\n{self.read('runs-on')}{self.read('runs-on.err')[-4000:]}")
            return keeps(promise, self.read("runs-on"), is_whole=False)

        try:
            self.wait(command, is_kept)
        except Broken as broken:
            raise Broken(f"{broken}\npromised:\n{promise}\nshown:\n{self.read('runs-on')}") from broken
        self.seen += self.read("runs-on")
        listening = re.search(r"127\.0\.0\.1:\d+", self.seen)
        self.address = listening[0] if listening else ADDRESS

    def close(self):
        """Ends the shell and whatever it left running, which is one group and ours, and waits until all of it is gone."""
        deadline = time.monotonic() + 60
        try:
            os.killpg(self.bash.pid, signal.SIGTERM)
            while time.monotonic() < deadline:
                self.bash.poll()
                os.killpg(self.bash.pid, 0)
                time.sleep(0.05)
            os.killpg(self.bash.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def main():
    page, *left_out = sys.argv[1:]
    with open(page) as file:
        found = commands(file.read())
    if not found:
        sys.exit(f"{page} has no ```console block")
    with tempfile.TemporaryDirectory() as scratch:
        shell = Shell(scratch)
        try:
            for number, command, promise, runs_on in found:
                if command in left_out:
                    print(f"{page}:{number}: left out: {command}", flush=True)
                    continue
                try:
                    (shell.run_on if runs_on else shell.run)(command, promise)
                except Broken as broken:
                    sys.exit(f"{page}:{number}: $ {command}\n{broken}")
                print(f"{page}:{number}: ok: {command}", flush=True)
        finally:
            shell.close()


if __name__ == "__main__":
    main()
