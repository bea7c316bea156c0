"""Where one run keeps its rows and its reservations, told to every worker, and cleared away at the end."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.orm import Session

from reservable import Backend, ReservableQuery, configure

REDIS = ("redis", "rediss", "unix")


class Unusable(Exception):
    """A place where this example cannot run; the text says why."""


@dataclass(frozen=True)
class Place:
    """`database` has the rows; `reservations` is what `configure` takes (None: beside the rows)."""

    folder: Path
    database: str
    reservations: str | None = None
    prefix: str = ""
    schema: str | None = None
    """Made for this run in somebody's server, and dropped at the end."""

    @classmethod
    def make(cls, folder: Path, backend: str | None) -> Place:
        """The place that `--backend` means: an SQLite file, with reservations beside the rows or in Redis, or a
        schema of our own in somebody's PostgreSQL or MariaDB server.
        """
        file = f"sqlite:///{folder / 'videos.sqlite'}?timeout=30"
        if backend is None:
            return cls(folder, file)
        if backend.partition(":")[0].partition("+")[0] in REDIS:
            return cls(folder, file, backend, prefix=f"demo-{secrets.token_hex(4)}:")
        url, schema = make_url(backend), f"reservable_demo_{secrets.token_hex(4)}"
        if url.get_backend_name() == "postgresql":
            own = url.update_query_dict({"options": f"-csearch_path={schema}"})
        elif url.get_backend_name() in {"mysql", "mariadb"}:
            own = url.set(database=schema)
        else:
            raise Unusable(
                f"--backend is Redis, PostgreSQL or MariaDB, not {url.drivername} (SQLite: leave it out)"
            )
        _run(url, f"CREATE SCHEMA {schema}")
        return cls(folder, own.render_as_string(hide_password=False), schema=schema)

    def configure(self, owner: str) -> Backend | None:
        """Say to the library, in this process, where reservations live and who we are."""
        return configure(self.reservations, prefix=self.prefix, owner=owner)

    def session(self) -> Session:
        return Session(create_engine(self.database), query_cls=ReservableQuery)

    def clear(self, backend: str | None) -> None:
        """Take away what the run has left in somebody's server."""
        if self.schema is not None and backend is not None:
            url = make_url(backend)
            cascade = " CASCADE" if url.get_backend_name() == "postgresql" else ""
            _run(url, f"DROP SCHEMA {self.schema}{cascade}")
        elif self.reservations is not None:
            store = self.configure("demo")
            assert store is not None
            for holder in store.list():
                store.break_(holder.name)
            store.close()


def _run(url: URL, statement: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()
