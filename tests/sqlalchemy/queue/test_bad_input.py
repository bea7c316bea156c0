"""What a queue refuses, before anything has happened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, configure_mappers, mapped_column

from reservable import AsyncLease, ConfigurationError, Lease, LeaseLost, NotSupported, Queued, QueueOptions
from tests.sqlalchemy.queue.conftest import Sessions, Tell
from tests.sqlalchemy.queue.models import Task
from tests.sqlalchemy.queue.rows import added, async_added, async_states, makers, states


def _generator(lease: Any) -> Iterator[None]:
    yield


async def _async_generator(lease: Any) -> AsyncIterator[None]:
    yield


async def _coroutine(lease: Any) -> None:
    pass


class Callable:
    async def __call__(self, lease: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("handler", "error", "says"),
    [
        (None, ConfigurationError, "give a function"),
        ("download", ConfigurationError, "give a function"),
        (_generator, NotSupported, "generator"),
        (_async_generator, NotSupported, "generator"),
        (_coroutine, NotSupported, r"arun\(\)"),
        (Callable(), NotSupported, r"arun\(\)"),
    ],
)
def test_handlers_that_would_not_have_worked(
    session: Session, sessions: Sessions, handler: Any, error: type[Exception], says: str
) -> None:
    [one] = added(session, Task())
    with pytest.raises(error, match=says):
        Task.run(sessions, handler)
    assert states(session) == {one: ("pending", 0)}


@pytest.mark.parametrize(
    ("handler", "error"),
    [(None, ConfigurationError), (_generator, NotSupported), (_async_generator, NotSupported)],
)
def test_handlers_that_would_not_have_worked_in_asyncio(
    tell: Tell, handler: Any, error: type[Exception]
) -> None:
    async def story(session: AsyncSession) -> None:
        with pytest.raises(error):
            await Task.arun(makers(session), handler)

    tell(story)


def test_a_coroutine_that_a_handler_returns_is_no_work_done(
    session: Session, sessions: Sessions, caplog: pytest.LogCaptureFixture
) -> None:
    [one] = added(session, Task())
    seen: list[Lease] = []

    def handler(lease: Lease) -> Any:
        seen.append(lease)
        return _coroutine(lease)

    Task.run(sessions, handler, stop=lambda: bool(seen))
    assert states(session) == {one: ("pending", 1)}
    assert "what test_a_coroutine_that_a_handler_returns" in caplog.text


def test_a_plain_function_is_a_handler_in_asyncio(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        ids = await async_added(session, Task(), Task())
        seen: list[Any] = []

        def handler(lease: AsyncLease) -> Any:
            seen.append(lease)
            return _coroutine(lease) if len(seen) == 1 else None

        await Task.arun(makers(session), handler, stop=lambda: len(seen) == 2)
        assert await async_states(session) == dict.fromkeys(ids, ("succeeded", 1))

    tell(story)


VERBS: dict[str, Any] = {
    "set": lambda lease: lease.set(title="late"),
    "update": lambda lease: lease.update(title="late"),
    "heartbeat": lambda lease: lease.heartbeat(),
    "complete": lambda lease: lease.complete(title="late"),
    "fail": lambda lease: lease.fail(ValueError("late")),
    "snooze": lambda lease: lease.snooze("1 hour"),
    "release": lambda lease: lease.release(),
    "cancel": lambda lease: lease.cancel("late"),
    "block": lambda lease: lease.__enter__(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_lease_that_is_finished_is_refused_everything(session: Session, verb: str) -> None:
    added(session, Task(title="new"))
    [lease] = Task.claim(session)
    with lease:
        pass
    with pytest.raises(LeaseLost, match="finished already"):
        VERBS[verb](lease)
    stored = session.get_one(Task, lease.pk[0])
    assert (stored.status, stored.title, stored.lease_token) == ("succeeded", "new", 1)


def test_a_lease_that_is_finished_has_no_transaction_left(session: Session) -> None:
    added(session, Task(title="new"))
    [lease] = Task.claim(session)
    lease.release()
    with pytest.raises(LeaseLost, match="finished already"), lease.transaction(session) as row:
        row.title = "late"
    session.rollback()
    assert session.get_one(Task, lease.pk[0]).title == "new"


def test_a_column_of_the_models_own_cannot_take_the_place_of_the_queues() -> None:
    class Base(DeclarativeBase):
        pass

    with pytest.raises(ConfigurationError, match=r"Video\.retry_at is the queue's own"):

        class Video(Queued, Base):
            __tablename__ = "videos"
            id: Mapped[int] = mapped_column(primary_key=True)
            retry_at: Mapped[datetime | None] = mapped_column()

        configure_mappers()


def test_statuses_of_the_users_own_are_a_list() -> None:
    with pytest.raises(ConfigurationError, match="give a list"):
        QueueOptions(extra="archived")
