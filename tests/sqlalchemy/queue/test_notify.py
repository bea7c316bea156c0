"""PostgreSQL wakes idle workers, whatever made a row claimable, on a queue that has `notify`."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

import pytest
from sqlalchemy import Engine, String, create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from reservable import AsyncLease, Backoff, ConfigurationError, Lease, Queued, QueueOptions
from reservable.leasing import intake
from reservable.leasing.telling import channel_of
from tests.sqlalchemy.queue.rows import added, states
from tests.waiting import eventually

Sessions = sessionmaker[Session]


class Base(DeclarativeBase):
    pass


class Job(Queued, Base):
    __tablename__ = "jobs"
    __queue__ = QueueOptions(
        notify=True, max_attempts=3, steps=("first", "second"), backoff=Backoff(base=0, jitter=0)
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str | None] = mapped_column(String(20))


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle workers do not look by themselves."""
    monkeypatch.setattr(intake, "pauses", lambda *_: itertools.repeat(3600.0))


@pytest.fixture
def url(fresh_database: Callable[[str], str]) -> str:
    return fresh_database("postgresql")


@pytest.fixture
def engine(url: str, patience: None) -> Iterator[Engine]:
    engine = create_engine(url)
    Base.metadata.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def sessions(engine: Engine) -> Sessions:
    return sessionmaker(engine, expire_on_commit=False)


@pytest.fixture
def session(sessions: Sessions) -> Iterator[Session]:
    with sessions() as session:
        yield session


class Worker:
    """In a thread; it claims rows of one kind, and completes them."""

    def __init__(self, loop: Callable[..., None]) -> None:
        self.done: list[Any] = []
        self.stop = threading.Event()
        self._thread = threading.Thread(target=loop, args=(self,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self._thread.join(20)
        assert not self._thread.is_alive()


OPTIONS: dict[str, Any] = {"where": Job.kind == "wanted"}


def work(sessions: Sessions) -> Callable[[Worker], None]:
    def loop(worker: Worker) -> None:
        for lease in Job.work(sessions, stop=worker.stop, **OPTIONS):
            with lease:
                worker.done.append(lease.row.id)

    return loop


def run(sessions: Sessions) -> Callable[[Worker], None]:
    def loop(worker: Worker) -> None:
        def handler(lease: Lease) -> None:
            worker.done.append(lease.row.id)

        Job.run(sessions, handler, concurrency=2, stop=worker.stop, **OPTIONS)

    return loop


def awaited(
    body: Callable[[Any, Worker], Any], driver: str
) -> Callable[[Sessions], Callable[[Worker], None]]:
    def made(sessions: Sessions) -> Callable[[Worker], None]:
        async def whole(worker: Worker) -> None:
            engine = create_async_engine(sessions.kw["bind"].url.set(drivername=driver))
            await body(async_sessionmaker(engine), worker)
            await engine.dispose()

        return lambda worker: asyncio.run(whole(worker))

    return made


async def awork(makers: Callable[[], AsyncSession], worker: Worker) -> None:
    async for lease in Job.awork(makers, stop=worker.stop, **OPTIONS):
        async with lease:
            worker.done.append(lease.row.id)


async def arun(makers: Callable[[], AsyncSession], worker: Worker) -> None:
    async def handler(lease: AsyncLease) -> None:
        worker.done.append(lease.row.id)

    await Job.arun(makers, handler, concurrency=2, stop=worker.stop, **OPTIONS)


LOOPS = {
    "work": work,
    "run": run,
    "awork-psycopg": awaited(awork, "postgresql+psycopg"),
    "awork-asyncpg": awaited(awork, "postgresql+asyncpg"),
    "arun-psycopg": awaited(arun, "postgresql+psycopg"),
    "arun-asyncpg": awaited(arun, "postgresql+asyncpg"),
}


@pytest.fixture(params=LOOPS)
def worker(request: pytest.FixtureRequest, sessions: Sessions) -> Iterator[Worker]:
    """One that is idle and listens."""
    with sessions() as session, Worker(LOOPS[request.param](sessions)) as worker:
        [one] = added(session, Job(kind="wanted"))
        eventually(lambda: worker.done == [one, one])  # both steps
        worker.done.clear()
        eventually(lambda: len(listeners(session)) == 1)
        yield worker


def listeners(session: Session) -> list[int]:
    """The server's processes for who listens."""
    found = session.scalars(
        text(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND (query LIKE 'LISTEN%' OR query LIKE '%pg_backend_pid%' OR query LIKE '%pg_listening_channels%')"
        )
    ).all()
    session.rollback()
    return [*found]


def test_a_row_that_is_added_wakes(session: Session, worker: Worker) -> None:
    [one] = added(session, Job(kind="wanted"))
    eventually(lambda: worker.done == [one, one])


def test_whatever_makes_a_row_claimable_wakes(session: Session, sessions: Sessions) -> None:
    with Worker(work(sessions)) as worker:
        [one] = added(session, Job(kind="wanted"))
        job = session.get_one(Job, one)

        def wakes(move: Callable[[], object]) -> None:
            worker.done.clear()
            move()
            session.commit()
            eventually(lambda: worker.done)
            eventually(lambda: states(session, Job)[one][0] == "succeeded")

        wakes(lambda: job.enqueue(session))
        wakes(lambda: job.enqueue(session, at=0.3))
        with Job.start(session, added(session, Job(kind="other"))[0]):  # another's, and no business of ours
            pass
        job.enqueue(session)
        job.cancel(session)
        session.commit()
        wakes(lambda: job.retry(session))
        job.enqueue(session)
        job.pause(session)
        session.commit()
        wakes(lambda: job.resume(session))


@pytest.mark.parametrize("verb", ["release", "fail", "complete"])
def test_a_row_that_another_worker_gives_back_wakes(session: Session, sessions: Sessions, verb: str) -> None:
    [one] = added(session, Job(kind="wanted"))
    [lease] = Job.claim(session)
    with Worker(work(sessions)) as worker:
        eventually(lambda: len(listeners(session)) == 1)
        {"release": lease.release, "fail": lambda: lease.fail("no"), "complete": lease.complete}[verb]()
        eventually(lambda: worker.done)
        eventually(lambda: states(session, Job)[one][0] == "succeeded")


def test_what_was_inserted_in_any_other_way_can_be_told_of_by_name(session: Session, worker: Worker) -> None:
    session.execute(text("INSERT INTO jobs (kind) VALUES ('wanted')"))
    session.execute(text(f"NOTIFY {channel_of(Job.__table__)}"))  # type: ignore[arg-type]
    session.commit()
    eventually(lambda: worker.done)


def test_a_worker_whose_connection_was_cut_listens_again(session: Session, worker: Worker) -> None:
    [deaf] = listeners(session)
    session.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": deaf})
    session.commit()
    [one] = added(session, Job(kind="wanted"))
    eventually(lambda: worker.done == [one, one])
    eventually(lambda: listeners(session) not in ([], [deaf]))
    worker.done.clear()
    [two] = added(session, Job(kind="wanted"))
    eventually(lambda: worker.done == [two, two])


def test_nobody_listens_when_the_work_is_over(session: Session, worker: Worker) -> None:
    worker.stop.set()
    eventually(lambda: not listeners(session))


def test_the_channels_name_says_which_table_and_fits() -> None:
    class Long(Queued, Base):
        __tablename__ = "l" * 60
        id: Mapped[int] = mapped_column(primary_key=True)

    assert channel_of(Job.__table__) == "reservable_queue_jobs"  # type: ignore[arg-type]
    assert len(channel_of(Long.__table__)) <= 63  # type: ignore[arg-type]
    Base.metadata.remove(Long.__table__)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["sqlite", "mariadb"])
def test_elsewhere_workers_look_by_themselves(fresh_database: Callable[[str], str], kind: str) -> None:
    engine = create_engine(fresh_database(kind))
    Base.metadata.create_all(engine)
    sessions = sessionmaker(engine, expire_on_commit=False)
    done: list[Any] = []
    stop = threading.Event()

    def handler(lease: Lease) -> None:
        done.append(lease.pk)
        if len(done) == 2:
            stop.set()

    with sessions() as session:
        added(session, Job(kind="wanted"))
    Job.run(sessions, handler, stop=stop)
    engine.dispose()
    assert len(done) == 2


def test_notify_is_true_or_false() -> None:
    with pytest.raises(ConfigurationError, match="notify"):
        QueueOptions(notify="yes")  # type: ignore[arg-type]
