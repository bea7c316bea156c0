"""The one index serves claims: the next rows are read in its order, and nothing is sorted."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, insert, text
from sqlalchemy.orm import Session

from reservable.leasing.picking import pick
from reservable.queue.statuses import Status
from reservable.sqlalchemy.queue.queues import queue_of
from tests.sqlalchemy.queue.conftest import Queues, emptied
from tests.sqlalchemy.queue.models import Task

EXPLAIN = {"postgresql": "EXPLAIN ", "sqlite": "EXPLAIN QUERY PLAN "}


@pytest.fixture(params=EXPLAIN)
def engine(request: pytest.FixtureRequest, queues: Queues) -> Engine:
    return emptied(request, queues, request.param)


@pytest.mark.parametrize("analyzed", [True, False], ids=["analyzed", "as it comes"])
@pytest.mark.parametrize("role", [Status.PENDING, Status.RUNNING], ids=["claim", "takeover"])
def test_the_next_rows_are_found_by_the_index_and_in_its_order(
    session: Session, engine: Engine, role: Status, analyzed: bool
) -> None:
    session.execute(
        insert(Task),
        [
            {"priority": number % 3, "status": role.value if number % 5 else "succeeded"}
            for number in range(5000)
        ],
    )
    session.commit()
    if analyzed:
        session.execute(text("ANALYZE"))
        session.commit()
    statement = pick(queue_of(Task), role, ()).compile(engine, compile_kwargs={"literal_binds": True})
    found = session.connection().exec_driver_sql(EXPLAIN[engine.dialect.name] + str(statement)).all()
    session.rollback()
    plan = " ".join(str(line) for line in found)
    assert "ix_tasks_status" in plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize("analyzed", [True, False], ids=["analyzed", "as it comes"])
def test_no_more_rows_are_claimed_than_asked_for_however_it_is_planned(
    session: Session, analyzed: bool
) -> None:
    session.execute(insert(Task), [{"priority": number % 2} for number in range(500)])
    session.commit()
    if analyzed:
        session.execute(text("ANALYZE"))
        session.commit()
    assert len(Task.claim(session, 7, where=Task.priority >= 0)) == 7
    assert Task.status_counts(session)["running"] == 7
