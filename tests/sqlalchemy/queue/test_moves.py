"""The queue does what the table of moves says, whatever comes after what."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Engine, select, update
from sqlalchemy.orm import Session

from reservable import Lease
from tests.queue.machine import DELAYS, Machine, compare
from tests.sqlalchemy.queue.conftest import Queues, emptied
from tests.sqlalchemy.queue.models import StrictTask, Task


class SessionMachine(Machine):
    """Rows of a mapped class."""

    engine: Engine

    def empty(self) -> None:
        self.session = Session(self.engine, expire_on_commit=False)
        for row in self.session.scalars(select(self.model)):
            self.session.delete(row)
        self.session.commit()

    def teardown(self) -> None:
        self.session.close()

    def added(self, priority: int, when: str | None) -> int:
        row = self.model(priority=priority)
        if when is None:
            row.retry_at = None
            self.session.add(row)
        else:
            assert row.enqueue(self.session, DELAYS[when] or None)
        self.session.commit()
        return row.id  # type: ignore[no-any-return]

    def set_time(self, pk: int, moment: datetime) -> None:
        self.session.execute(update(self.model).where(self.model.id == pk).values(retry_at=moment))
        self.session.commit()

    def claimed(self, limit: int) -> list[Lease]:
        return self.model.claim(self.session, limit)  # type: ignore[no-any-return]

    def started(self, pk: int, *, ignore_due: bool) -> AbstractContextManager[Lease]:
        return self.model.start(self.session, pk, ignore_due=ignore_due)  # type: ignore[no-any-return]

    def operated(self, pk: int, verb: str, arguments: tuple[Any, ...], *, commit: bool) -> bool:
        done = getattr(self.session.get_one(self.model, pk), verb)(self.session, *arguments)
        if commit:
            self.session.commit()
        else:
            self.session.rollback()
        return done  # type: ignore[no-any-return]

    def reaped(self) -> int:
        return self.model.reap(self.session)  # type: ignore[no-any-return]

    def all(self) -> list[Any]:
        rows = [*self.session.scalars(select(self.model).execution_options(populate_existing=True))]
        self.session.commit()
        return rows


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, queues: Queues) -> Engine:
    return emptied(request, queues, request.param)


@pytest.mark.parametrize("model", [Task, StrictTask])
def test_the_queue_does_what_the_table_of_moves_says(engine: Engine, model: Any) -> None:
    compare(type("Compared", (SessionMachine,), {"engine": engine, "model": model}))
