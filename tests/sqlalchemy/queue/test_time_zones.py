"""A server in a zone with summer time: an hour is left out in spring, and one comes twice in autumn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, select, text
from sqlalchemy.orm import Session

from tests import server_process
from tests.servers import ServerMissing, start_mariadb
from tests.sqlalchemy.queue.models import Base, Document, Kept, Task
from tests.sqlalchemy.queue.rows import added
from tests.stores import servers_are_required

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A MariaDB whose zone, and so every session's, is Berlin's."""
    with pytest.MonkeyPatch.context() as patch:
        environment = server_process._environment()
        patch.setattr(server_process, "_environment", lambda: {**environment, "TZ": "Europe/Berlin"})
        try:
            server = start_mariadb()
        except ServerMissing as missing:
            if servers_are_required():
                raise
            pytest.skip(str(missing))
    with server:
        engine = create_engine(server.url)
        Base.metadata.create_all(engine)
        engine.dispose()
        yield server.url


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = create_engine(url)
    yield engine
    with engine.begin() as connection:
        for table in reversed(Base.metadata.sorted_tables):
            connection.execute(table.delete())
    engine.dispose()


def at(engine: Engine, moment: datetime) -> None:
    """The sessions of the engine begin at this time, which then stands still."""

    @event.listens_for(engine, "connect")
    def prepare(driver: Any, _: object) -> None:
        with driver.cursor() as cursor:
            cursor.execute(f"SET TIMESTAMP = {moment.timestamp()}")


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2024, 3, 31, 0, 30, tzinfo=UTC),
        datetime(2024, 3, 31, 2, 30, tzinfo=UTC),
        datetime(2024, 10, 26, 23, 30, tzinfo=UTC),
        datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
        datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
    ],
    ids=[
        "before it is left out",
        "as UTC in it",
        "before it comes twice",
        "the first time",
        "the second time",
    ],
)
def test_an_hour_is_an_hour_in_a_session_of_that_night(engine: Engine, moment: datetime) -> None:
    at(engine, moment)
    with Session(engine) as session:
        assert session.scalar(text("SELECT @@system_time_zone")) in ("CET", "CEST")
        row, later = Task(), Task()
        added(session, row)
        assert later.enqueue(session, "1 hour")
        session.commit()
        assert (row.retry_at, later.retry_at) == (moment, moment + HOUR)
        assert session.scalars(select(Task.id).where(Task.due())).all() == [row.id]
        session.commit()
        assert later.pause(session)
        assert later.resume(session, "2 hours")
        session.commit()
        assert later.retry_at == moment + 2 * HOUR
        assert later.cancel(session)
        session.commit()
        assert later.finished_at == moment


def test_claims_and_reservations_beside_such_a_session_are_of_today(engine: Engine) -> None:
    at(engine, datetime(2024, 3, 31, 2, 30, tzinfo=UTC))
    with Session(engine) as session, Session(engine) as other:
        added(session, Kept())
        [lease] = Kept.claim(session)
        assert abs(lease.row.retry_at - datetime.now(UTC)) < timedelta(minutes=1)
        assert Kept.claim(other) == []
        lease.heartbeat("1 hour")
        assert lease.expires_at is not None
        assert abs(lease.expires_at - datetime.now(UTC) - HOUR) < timedelta(minutes=1)
        lease.complete()
        document = Document()
        session.add(document)
        session.commit()
        assert document.reserve("download", "1 hour")
        assert document.reservation("download").extend("2 hours")
        assert not other.get_one(Document, document.id).reserve("download", "1 hour")
        ends = document.reservation("download").expires_at
        assert ends is not None
        assert abs(ends - datetime.now(UTC) - 2 * HOUR) < timedelta(minutes=1)
        assert document.release("download")
