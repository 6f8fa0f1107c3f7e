"""A guard over a table of PostgreSQL: one more column, an index on it, and no copy of the keys in memory.

    pip install besom "psycopg[binary]"
    python examples/postgres.py

Starts a server of its own on loopback, from the packages of the system, and ends it. Where there is none, or no psycopg, it says
so and shows nothing.
"""

import glob
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

import besom

try:
    import psycopg
except ImportError as error:
    raise SystemExit(f'!! NOT SHOWN: there is no psycopg ({error}); pip install "psycopg[binary]"') from None

PAGE = 1_000  # rows that are read at once

# The "C" collation orders names by their bytes, as the guard does. The index has everything that a repair reads.
TABLE = """CREATE TABLE people (name text COLLATE "C" PRIMARY KEY, age bigint NOT NULL, hash bigint NOT NULL);
    CREATE UNIQUE INDEX people_by_hash ON people (hash, name)"""


class People(MutableMapping[str, int]):
    seed = 0x746561  # part of the data, forever

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        assert connection.autocommit, "a repair must see what was committed last"
        self.connection = connection

    def range(self, lo: int, hi: int) -> Iterator[tuple[int, str]]:
        # bigint is signed: the column is shifted, which keeps the order.
        hash, name, last = lo - 2**63, "", hi - 2**63
        while True:
            rows = self.connection.execute(
                "SELECT hash, name FROM people WHERE (hash, name) >= (%s, %s) AND hash <= %s ORDER BY hash, name LIMIT %s",
                (hash, name, last, PAGE),
            ).fetchall()
            for hash, name in rows:  # type: ignore[assignment]
                yield hash + 2**63, name
            if len(rows) < PAGE:
                return
            name += "\x01"  # the least name behind the last one: PostgreSQL's text has no "\0"

    def __getitem__(self, name: str) -> int:
        row = self.connection.execute("SELECT age FROM people WHERE name = %s", (name,)).fetchone()
        if row is None:
            raise KeyError(name)
        return int(str(row[0]))

    def __setitem__(self, name: str, age: int) -> None:
        self.connection.execute(
            "INSERT INTO people VALUES (%s, %s, %s) ON CONFLICT (name) DO UPDATE SET age = excluded.age",
            (name, age, besom.key_hash(name, self.seed) - 2**63),
        )

    def __delitem__(self, name: str) -> None:
        if self.connection.execute("DELETE FROM people WHERE name = %s", (name,)).rowcount == 0:
            raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for _, name in self.range(0, 2**64 - 1))

    def __len__(self) -> int:
        row = self.connection.execute("SELECT count(*) FROM people").fetchone()
        return int(str(row[0])) if row else 0


def program(name: str) -> str:
    """Where Debian puts the programs of a server, or the search path has them."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}")) or [shutil.which(name) or ""]
    if not found[-1]:
        raise SystemExit("!! NOT SHOWN: there is no PostgreSQL server on this machine (Debian: apt-get install postgresql)")
    return found[-1]


@contextmanager
def server() -> Iterator[str]:
    """A server in a folder of its own; yields what to connect to."""
    nobody = 65_534 if os.getuid() == 0 else None  # root is refused
    with tempfile.TemporaryDirectory(prefix="besom-postgres-") as folder:
        if nobody is not None:
            os.chown(folder, nobody, nobody)

        def start(name: str, *arguments: str) -> "subprocess.Popen[bytes]":
            return subprocess.Popen(
                [program(name), "-D", "data", *arguments],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                user=nobody,
                group=nobody,
                extra_groups=[] if nobody else None,
            )

        if start("initdb", "-U", "besom", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync").wait() != 0:
            raise SystemExit("!! NOT SHOWN: the PostgreSQL server of this machine cannot make a database")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        process = start("postgres", "-h", "127.0.0.1", "-p", str(port), "-c", "unix_socket_directories=")
        try:
            yield f"host=127.0.0.1 port={port} user=besom dbname=postgres"
        finally:
            process.terminate()
            process.wait(60)


def connect(to: str) -> "psycopg.Connection[tuple[object, ...]]":
    """A connection to a server that may still be starting."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return psycopg.connect(to, autocommit=True)
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def main() -> None:
    with server() as to, connect(to) as connection:
        connection.execute(TABLE)
        table = People(connection)
        with connection.transaction():
            for number in range(2_000):
                table[f"person {number}"] = number % 90

        people: besom.Guard[int] = besom.Guard(table, rate=1 / 256, seed=table.seed)  # the rows were there before it
        people["Ada"] = 36
        assert people["Ada"] == 36
        assert people.pop("person 7") == 7 and "person 7" not in people
        for _ in range(5):
            for number in range(20_000):
                assert people.get(f"nobody {number}") is None
        stats = people.stats()
        print(f"{stats['queries']:,} queries, {stats['false_positives']:,} of them reached PostgreSQL for nothing")
        assert stats["false_positives"] < 400 and stats["failed_repairs"] == 0
        people.verify()
        print(f"{len(people):,} keys; filter and table agree")


if __name__ == "__main__":
    main()
