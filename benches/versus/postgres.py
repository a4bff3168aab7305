"""A Postgres server of the run's own, with the changes that history.py writes."""

import getpass
import os
import pathlib
import shutil
import subprocess
import time

try:
    import psycopg2
except ImportError:
    psycopg2 = None

import contenders

# As Debian installs it, the newest version first.
PROGRAMS = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
TABLE = """CREATE TABLE changes (
    event integer, book smallint, market smallint, time integer, home integer, away integer, point integer,
    PRIMARY KEY (event, book, market, time))"""
LINE = """SELECT time, home, away, point FROM changes
    WHERE event = $1 AND book = $2 AND market = $3 ORDER BY time"""
PART = LINE.replace("ORDER", "AND time BETWEEN $4 AND $5 ORDER")
RECORD = """SELECT home, away, point FROM changes
    WHERE event = $1 AND book = $2 AND market = $3 AND time <= $4 ORDER BY time DESC LIMIT 1"""
SCAN = """SELECT DISTINCT ON (event, book, market) event, book, market, home, away, point FROM changes
    WHERE time <= $1 ORDER BY event, book, market, time DESC"""
BOARD = """SELECT r.event, r.book, r.market, c.home, c.away, c.point FROM records r CROSS JOIN LATERAL (
    SELECT home, away, point FROM changes d
    WHERE d.event = r.event AND d.book = r.book AND d.market = r.market AND d.time <= $1 ORDER BY time DESC LIMIT 1) c"""


def missing():
    """What is not installed, or nothing."""
    if not PROGRAMS:
        return "apt-get install postgresql"
    return None if psycopg2 else "apt-get install python3-psycopg2, or pip install psycopg2-binary"


class Postgres(contenders.Process):
    """With its default settings. It refuses to run as root, so it then runs as the user of the package."""

    def __init__(self, directory):
        self.directory = directory / "postgres"
        self.directory.mkdir()
        self.user = "postgres" if os.geteuid() == 0 else getpass.getuser()
        as_user = ["setpriv", f"--reuid={self.user}", "--init-groups"] if os.geteuid() == 0 else []
        if as_user:
            directory.chmod(0o711)
            shutil.chown(self.directory, self.user)
        init = [*as_user, PROGRAMS[0] / "initdb", "--auth=trust", "--no-sync", "-D", self.directory / "data"]
        subprocess.run(init, check=True, stdout=subprocess.DEVNULL)
        serve = [PROGRAMS[0] / "postgres", "-D", self.directory / "data", "-k", self.directory, "-c", "listen_addresses="]
        log = open(directory / "postgres.log", "w", encoding="utf-8")
        super().__init__([*as_user, *serve], stderr=log)

    def connect(self):
        ready = [PROGRAMS[0] / "pg_isready", "--quiet", "-h", self.directory, "-t", "60"]
        while subprocess.run(ready).returncode != 0:
            if self.process.poll() is not None:
                raise SystemExit("Postgres has ended: see postgres.log")
        connection = psycopg2.connect(host=str(self.directory), user=self.user, dbname="postgres")
        connection.autocommit = True
        return connection.cursor()


class Prepared:
    """A statement that is parsed and planned once."""

    def __init__(self, cursor, name, query):
        self.cursor, count = cursor, max(int(text[0]) for text in query.split("$")[1:])
        cursor.execute(f"PREPARE {name} AS {query}")
        self.call = f"EXECUTE {name} ({', '.join(['%s'] * count)})"

    def rows(self, *values):
        self.cursor.execute(self.call, values)
        return self.cursor.fetchall()


class Base:
    """The changes in Postgres, and the questions about them."""

    name = "Postgres"

    def __init__(self, directory):
        self.server = Postgres(directory)
        self.cursor = cursor = self.server.connect()
        cursor.execute(TABLE)
        began = time.perf_counter()
        with open(directory / "changes.csv", encoding="utf-8", newline="") as changes:
            cursor.copy_expert("COPY changes FROM STDIN CSV", changes)
        self.write_s = time.perf_counter() - began
        cursor.execute("VACUUM ANALYZE changes")
        cursor.execute("SELECT pg_total_relation_size('changes')")
        self.bytes = cursor.fetchone()[0]
        cursor.execute("CREATE TABLE records AS SELECT DISTINCT event, book, market FROM changes")
        cursor.execute("ANALYZE records")
        cursor.execute("SELECT count(*), min(time), max(time) FROM changes")
        self.changes, self.first, self.last = cursor.fetchone()
        queries = {"line": LINE, "part": PART, "record": RECORD, "board": BOARD, "scan": SCAN}
        self.prepared = {name: Prepared(cursor, name, query) for name, query in queries.items()}

    def ask(self, question, *values):
        return self.prepared[question].rows(*values)

    def close(self):
        self.cursor.connection.close()
        self.server.stop()
