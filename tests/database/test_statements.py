"""The table of reservations on real databases: how it is made, compared, timed, locked and connected to."""

from __future__ import annotations

import gc
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from sqlalchemy import Engine, NullPool, StaticPool, create_engine, event, inspect, make_url, select, text

from reservable.backends.database import DatabaseBackend
from reservable.backends.database.verbs import Execute
from reservable.errors import BackendError, ConfigurationError, NotSupported
from reservable.grants import Grant, Released
from reservable.testing.racing import fresh_processes
from tests.database.workers import take_first, wait_at
from tests.waiting import eventually

NAME = "videos:1:k"
MINUTE = timedelta(minutes=1)
MILLISECOND = timedelta(milliseconds=1)

Make = Callable[..., Engine]
Fresh = Callable[[str], str]


@pytest.fixture
def open_on() -> Iterator[Callable[..., DatabaseBackend]]:
    """`DatabaseBackend`, closed after the test."""
    with ExitStack() as stack:
        yield lambda engine, *arguments, **options: stack.enter_context(
            closing(DatabaseBackend(engine, *arguments, **options))
        )


@pytest.fixture
def engine(any_database_url: str, make_engine: Make) -> Engine:
    return make_engine(any_database_url)


Open = Callable[..., DatabaseBackend]


def take(backend: DatabaseBackend, name: str = NAME, lifetime: timedelta = MINUTE) -> Grant | None:
    return backend.acquire(name, token_hex(16), "host:1", lifetime)


def over(backend: DatabaseBackend, name: str) -> None:
    eventually(lambda: backend.holder(name) is None)


# The table


def test_the_table_is_made_when_it_is_first_needed(engine: Engine, open_on: Open) -> None:
    backend = open_on(engine)
    assert not inspect(engine).has_table("reservations")
    assert backend.holder(NAME) is None
    made = inspect(engine)
    assert made.get_pk_constraint("reservations")["constrained_columns"] == ["name"]
    columns = [column["name"] for column in made.get_columns("reservations")]
    assert columns == ["name", "token", "owner", "fence", "since", "until"]
    assert take(backend) is not None


def test_the_table_is_made_by_many_processes_at_once(any_database_url: str) -> None:
    context = fresh_processes()
    with ProcessPoolExecutor(8, context, initializer=wait_at, initargs=(context.Barrier(8),)) as pool:
        grants = list(pool.map(take_first, [any_database_url] * 8))
    assert len([grant for grant in grants if grant is not None]) == 1


def test_a_table_that_was_dropped_is_made_again(engine: Engine, open_on: Open) -> None:
    backend = open_on(engine)
    grant = take(backend)
    assert grant is not None
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE reservations"))
    assert backend.extend(NAME, grant.token, MINUTE) is None
    assert backend.release(NAME, grant.token) is Released.NOT_HELD
    assert take(backend) is not None


def test_a_missing_table_that_we_must_not_make_names_the_migration(engine: Engine, open_on: Open) -> None:
    backend = open_on(engine, create=False)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE notes (id INTEGER PRIMARY KEY)"))
    with engine.connect() as connection, connection.begin():
        connection.execute(select(1))
        for verb in (lambda: take(backend), lambda: backend.holder(NAME), lambda: [*backend.list()]):
            with pytest.raises(ConfigurationError, match=r"migration.*reservations_table") as caught:
                verb()
            assert "CREATE TABLE reservations" in str(caught.value)
        connection.execute(text("INSERT INTO notes VALUES (1)"))
    assert inspect(engine).get_table_names() == ["notes"]


def test_a_table_and_a_schema_of_the_users_choice(
    fresh_database: Fresh, make_engine: Make, open_on: Open
) -> None:
    engine = make_engine(fresh_database("postgresql"))
    with engine.begin() as connection:
        connection.execute(text('CREATE SCHEMA "Ops"'))
    chosen = open_on(engine, table="Held rows", schema="Ops")
    usual = open_on(engine)
    assert take(chosen) is not None
    assert take(usual) is not None
    assert take(chosen) is None
    assert [held.name for held in chosen.list()] == [NAME]
    assert inspect(engine).get_table_names(schema="Ops") == ["Held rows"]
    with pytest.raises(BackendError, match=r"nowhere\.reservations.*could not be created"):
        take(open_on(engine, schema="nowhere"))


def test_the_schema_is_another_database(fresh_database: Fresh, make_engine: Make, open_on: Open) -> None:
    engine, other = make_engine(fresh_database("mariadb")), make_url(fresh_database("mariadb")).database
    chosen = open_on(engine, table="held", schema=other)
    usual = open_on(engine)
    assert take(chosen) is not None
    assert take(usual) is not None
    assert take(chosen) is None
    assert inspect(engine).get_table_names(schema=other) == ["held"]
    with pytest.raises(BackendError):
        take(open_on(engine, schema="nowhere"))


def test_names_are_compared_by_bytes_whatever_the_databases_collation(
    fresh_database: Fresh, make_engine: Make, open_on: Open
) -> None:
    engine = make_engine(fresh_database("mariadb"))
    with engine.begin() as connection:
        connection.execute(text("ALTER DATABASE COLLATE utf8mb4_general_ci"))
        connection.execute(text("CREATE TABLE videos (code VARCHAR(20) COLLATE utf8mb4_unicode_ci)"))
        connection.execute(text("INSERT INTO videos VALUES ('Job')"))
    backend = open_on(engine)
    upper, lower = take(backend, "Job"), take(backend, "job")
    assert upper is not None
    assert lower is not None
    assert backend.release("JOB", upper.token) is Released.NOT_HELD
    assert backend.release("job", upper.token) is Released.BY_ANOTHER
    assert backend.acquire("Job", upper.token.upper(), "o", MINUTE) is None
    assert {held.name for held in backend.list()} == {"Job", "job"}
    with engine.connect() as connection:  # joined with a column of another collation
        joined = text(
            "SELECT name FROM videos JOIN reservations ON reservations.name = CONVERT(code USING ascii)"
        )
        assert connection.scalars(joined).all() == ["Job"]


def test_a_user_who_may_only_read_is_told_so(fresh_database: Fresh, make_engine: Make, open_on: Open) -> None:
    for kind, grants in (
        (
            "postgresql",
            ["CREATE USER {0} PASSWORD 'x'", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {0}"],
        ),
        ("mariadb", ["CREATE USER {0}@'%' IDENTIFIED BY 'x'", "GRANT SELECT ON `{1}`.* TO {0}@'%'"]),
    ):
        admin = make_engine(fresh_database(kind))
        assert take(open_on(admin), "videos:2:k") is not None
        reader = f"reader_{token_hex(4)}"
        with admin.begin() as connection:
            for statement in grants:
                connection.execute(text(statement.format(reader, admin.url.database)))
        engine = make_engine(admin.url.set(username=reader, password="x"))
        backend = open_on(engine)
        with pytest.raises(BackendError, match="denied"):
            take(backend)
        assert backend.holder("videos:2:k") is not None
        with pytest.raises(BackendError, match=r"denied|could not be created"):
            take(open_on(engine, table="another"))
        with admin.begin() as connection:
            connection.execute(text(f"DROP {'OWNED BY' if kind == 'postgresql' else 'USER'} {reader}"))


def test_an_sqlite_file_that_can_only_be_read_is_an_error(
    tmp_path: Path, make_engine: Make, open_on: Open
) -> None:
    sqlite3.connect(tmp_path / "file.sqlite").close()
    backend = open_on(make_engine(f"sqlite:///file:{tmp_path / 'file.sqlite'}?mode=ro&uri=true"))
    with pytest.raises(BackendError, match="readonly"):
        take(backend)


@pytest.mark.parametrize("statement", ["DELETE FROM reservations", "TRUNCATE TABLE reservations"])
def test_rows_deleted_by_hand_are_lost_and_can_be_had_again(
    engine: Engine, open_on: Open, statement: str
) -> None:
    backend = open_on(engine)
    grant = take(backend)
    assert grant is not None
    if engine.dialect.name == "sqlite":
        statement = "DELETE FROM reservations"
    with engine.begin() as connection:
        connection.execute(text(statement))
    assert backend.holder(NAME) is None
    assert backend.extend(NAME, grant.token, MINUTE) is None
    assert backend.release(NAME, grant.token) is Released.NOT_HELD
    assert backend.break_(NAME) is False
    # With its row gone, a name has but the clock to go by, and SQLite's counts in milliseconds.
    eventually(lambda: time.time_ns() // 1_000_000 > grant.fence // 1_000)
    again = take(backend)
    assert again is not None
    assert again.fence > grant.fence


# The clock


def test_time_zone_and_stopped_clock_of_a_session_do_not_matter(
    fresh_database: Fresh, make_engine: Make, open_on: Open
) -> None:
    url = fresh_database("mariadb")
    usual, odd = make_engine(url), make_engine(url)

    @event.listens_for(odd, "connect")
    def prepare(driver: Any, _: object) -> None:
        with driver.cursor() as cursor:
            cursor.execute("SET time_zone = '+02:00'")  # Europe/Berlin, whose tables few servers have loaded
            cursor.execute("SET TIMESTAMP = 1711852200")  # in the hour that was left out that night

    with odd.connect() as connection:
        assert connection.scalar(text("SELECT YEAR(NOW())")) == 2024
    here, there = open_on(usual), open_on(odd)
    grant = take(there)
    assert grant is not None
    assert abs(grant.since / 1e6 - time.time()) < 60
    assert take(here) is None
    held = here.holder(NAME)
    assert held is not None
    assert 0 < held.remaining <= 60
    assert there.extend(NAME, grant.token, 10 * MILLISECOND) is not None
    eventually(lambda: take(here))
    assert take(there) is None


# Who waits for whom


@pytest.mark.parametrize("level", ["SERIALIZABLE", "REPEATABLE READ"])
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_threads_on_one_name_at_a_strict_isolation_level_have_one_winner(
    fresh_database: Fresh, make_engine: Make, open_on: Open, kind: str, level: str
) -> None:
    url = fresh_database(kind)
    with make_engine(url, isolation_level="AUTOCOMMIT").connect() as connection:
        if kind == "postgresql":  # for every session, our own too
            database = make_url(url).database
            strict = level.lower()
            connection.execute(
                text(f"ALTER DATABASE {database} SET default_transaction_isolation = '{strict}'")
            )
    engine = make_engine(url, isolation_level=level, pool_size=20)
    backend = open_on(engine)
    backend.holder(NAME)
    for number in range(5):
        grants = at_once(20, partial(take, backend, f"videos:{number}:k"))
        assert len([grant for grant in grants if grant is not None]) == 1


def test_a_transaction_that_has_read_the_table_blocks_nobody(engine: Engine, open_on: Open) -> None:
    backend = open_on(engine)
    taken = take(backend, "videos:1:k")
    assert taken is not None
    if engine.dialect.name == "sqlite":
        return  # where an open cursor does keep a rollback journal from being written back
    with engine.connect() as connection, connection.begin():
        connection.execute(text("SELECT * FROM reservations")).all()
        assert take(backend, "videos:2:k") is not None
        assert backend.release("videos:1:k", taken.token) is Released.YES


@pytest.mark.parametrize(
    "pool", [{"pool_size": 1, "max_overflow": 0, "pool_timeout": 5}, {"poolclass": NullPool}]
)
def test_a_caller_who_holds_the_last_connection_can_reserve(
    any_database_url: str, make_engine: Make, open_on: Open, pool: dict[str, Any]
) -> None:
    engine = make_engine(any_database_url, **pool)
    backend = open_on(engine)
    with engine.connect() as connection, connection.begin():
        connection.execute(select(1))
        grant = take(backend)
        assert grant is not None
        assert backend.extend(NAME, grant.token, MINUTE) is not None
        assert connection.scalar(select(1)) == 1
        assert backend.release(NAME, grant.token) is Released.YES


def test_our_statements_leave_the_callers_pool_alone(engine: Engine, open_on: Open) -> None:
    backend = open_on(engine)
    taken = take(backend)
    assert taken is not None
    [*backend.list()]
    backend.prune()
    assert engine.pool.status() == engine.pool.recreate().status()


# Pruning


def test_what_is_renewed_between_the_look_and_the_delete_is_not_pruned(
    engine: Engine, open_on: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, other = open_on(engine), open_on(engine)
    for name in ("videos:1:k", "videos:2:k", "videos:3:k"):
        take(backend, name, MILLISECOND)
        over(backend, name)
    taken: list[Grant | None] = []
    perform = backend.perform

    def interfere(step: Any) -> Any:
        if isinstance(step, Execute) and step.statement == "prune":
            taken.append(take(other, "videos:2:k"))
        return perform(step)

    monkeypatch.setattr(backend, "perform", interfere)
    assert backend.prune() == 2
    (grant,) = taken
    assert grant is not None
    assert [(held.name, held.fence) for held in other.list()] == [("videos:2:k", grant.fence)]


def test_pruning_goes_in_batches_and_keeps_to_its_prefix(engine: Engine, open_on: Open) -> None:
    one, other = open_on(engine, "a:"), open_on(engine, "b:")
    take(one, "videos:live:k")
    rows = [
        {"name": f"{prefix}{n:04}", "token": "", "owner": "o", "fence": 1, "since": 1, "until": 0}
        for prefix, count in (("a:", 1300), ("b:", 7))
        for n in range(count)
    ]
    with engine.begin() as connection:
        connection.execute(one.table.insert(), rows)
    assert one.prune() == 1300
    assert one.prune() == 0
    assert [held.name for held in one.list()] == ["videos:live:k"]
    assert other.prune() == 7


def test_a_fence_that_is_ahead_of_the_clock_survives_pruning(engine: Engine, open_on: Open) -> None:
    backend = open_on(engine)
    ahead = time.time_ns() // 1000 + 3_600_000_000
    backend.holder(NAME)
    with engine.begin() as connection:
        row = {"name": NAME, "token": "", "owner": "o", "fence": ahead, "since": 1, "until": 0}
        connection.execute(backend.table.insert(), [row])
    assert backend.prune() == 0
    grant = take(backend)
    assert grant is not None
    assert grant.fence > ahead


# Processes, engines, versions


def test_a_forked_child_uses_a_connection_of_its_own(engine: Engine, open_on: Open) -> None:
    backend = open_on(engine)
    mine = take(backend)
    assert mine is not None
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            refused = take(backend) is None
            theirs = take(backend, "videos:2:k")
            released = theirs is not None and backend.release("videos:2:k", theirs.token) is Released.YES
            backend.close()
            gc.collect()
            status = 0 if refused and released else 2
        finally:
            os._exit(status)
    for _ in range(50):
        assert backend.extend(NAME, mine.token, MINUTE) is not None
    assert os.waitpid(pid, 0)[1] == 0
    assert backend.extend(NAME, mine.token, MINUTE) is not None
    assert backend.release(NAME, mine.token) is Released.YES


def test_an_engine_is_not_kept_alive_by_a_backend_that_is_gone(any_database_url: str) -> None:
    engine = create_engine(any_database_url)
    backend = DatabaseBackend(engine)
    take(backend)
    list(backend.list())
    backend.close()
    engine.dispose()
    gone = weakref.ref(engine), weakref.ref(backend), weakref.ref(engine.pool)
    del engine, backend
    gc.collect()
    assert [one() for one in gone] == [None, None, None]


@pytest.mark.parametrize(
    ("kind", "version", "needed"),
    [("postgresql", (9, 4, 26), "9.5"), ("mariadb", (10, 5, 8), "10.6"), ("mariadb", (5, 5, 68), "10.6")],
)
def test_a_server_that_is_too_old_is_refused_by_its_version(
    fresh_database: Fresh,
    make_engine: Make,
    open_on: Open,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    version: tuple[int, ...],
    needed: str,
) -> None:
    engine = make_engine(fresh_database(kind))
    engine.connect().close()
    monkeypatch.setattr(engine.dialect, "server_version_info", version)
    backend = open_on(engine)
    for verb in (
        lambda: take(backend),
        lambda: backend.acquire_first(["a", "b"], "t", "o", MINUTE),
        backend.prune,
    ):
        with pytest.raises(NotSupported, match=f"{kind} {needed} or later.* {'.'.join(map(str, version))}"):
            verb()


def test_a_database_of_another_kind_is_refused(make_engine: Make) -> None:
    class Unknown:
        name = "oracle"

    class Stub:
        dialect = Unknown()

    with pytest.raises(NotSupported, match="oracle"):
        DatabaseBackend(Stub())  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file::memory:?uri=true"])
def test_a_database_in_memory_is_refused_where_a_second_connection_would_see_another(
    make_engine: Make, url: str
) -> None:
    with pytest.raises(ConfigurationError, match="memory"):
        DatabaseBackend(make_engine(url, poolclass=StaticPool))


def test_the_error_of_a_statement_tells_no_token(engine: Engine, open_on: Open) -> None:
    backend = open_on(engine)
    backend.holder(NAME)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE reservations RENAME COLUMN fence TO fences"))
    with pytest.raises(BackendError) as caught:
        backend.acquire(NAME, "a-secret-token", "o", MINUTE)
    link: BaseException | None = caught.value
    while link is not None:
        assert "a-secret-token" not in f"{link} {link!r}"
        link = link.__cause__ or link.__context__


def at_once(threads: int, work: Callable[[], Grant | None]) -> list[Grant | None]:
    gate = threading.Barrier(threads)

    def begin(_: int) -> Grant | None:
        gate.wait()
        return work()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))
