"""Reservations end by the store's clock: not by the host's, which is wrong, nor by when a host that stood still asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from reservable import first_reserved, take_reserved
from reservable.backends.database.execution import TextStatement
from tests.clocks import wrong_clock
from tests.sqlalchemy.conftest import Place
from tests.sqlalchemy.models import Video
from tests.waiting import eventually

Sessions = Callable[..., Session]
WRONG = pytest.mark.parametrize("by", [timedelta(hours=2), timedelta(hours=-2)], ids=["ahead", "behind"])


@pytest.fixture
def mine(shared_place: Place, sessions: Sessions) -> Video:
    """A new row, and somebody else's copy of it in `theirs`."""
    session = sessions(shared_place.engine, expire_on_commit=False)
    video = Video(title="new")
    session.add(video)
    session.commit()
    return video


@pytest.fixture
def theirs(shared_place: Place, sessions: Sessions, mine: Video) -> Video:
    return sessions(shared_place.engine).get_one(Video, mine.id)


@WRONG
def test_a_wrong_clock_takes_nothing_from_its_holder(
    mine: Video, theirs: Video, shared_place: Place, sessions: Sessions, by: timedelta
) -> None:
    assert mine.reserve("clock", "1 hour")
    found = select(Video).where(Video.id == mine.id)
    with wrong_clock(by):
        assert theirs.is_reserved("clock")
        assert not theirs.reserve("clock", "1 hour")
        session = sessions(shared_place.engine)
        assert first_reserved(session, found, "clock", "1 hour") is None
        assert take_reserved(session, found, "clock", "1 hour", limit=3) == []
        mine.reservation("clock").backend.prune()
    mine.reservation("clock").check()


@WRONG
def test_a_wrong_clock_reserves_for_as_long_as_was_said(mine: Video, theirs: Video, by: timedelta) -> None:
    with wrong_clock(by):
        assert theirs.reserve("clock", "1 hour")
        holder = mine.reservation("clock").holder()
        assert holder is not None
        assert 3500 < holder.remaining <= 3600
    holder = mine.reservation("clock").holder()
    assert holder is not None
    assert 3500 < holder.remaining <= 3600
    assert not mine.reserve("clock")
    with wrong_clock(by):
        assert theirs.reservation("clock").extend(0.5)
    eventually(lambda: mine.reserve("clock"))


@pytest.fixture
def standing_still(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What happens, once, when a reservation is about to be sent to the database."""
    meanwhile: list[Callable[[], object]] = []
    send = TextStatement.send

    def sent(self: TextStatement, cursor: Any, values: Any) -> Any:
        if meanwhile and self.text.startswith("INSERT"):
            meanwhile.pop()()
        return send(self, cursor, values)

    monkeypatch.setattr(TextStatement, "send", sent)
    return meanwhile


@pytest.mark.parametrize("shared_place", ["sqlite", "postgresql", "mariadb"], indirect=True)
def test_the_time_of_a_host_that_stood_still_begins_when_the_database_is_asked(
    mine: Video, theirs: Video, standing_still: list[Callable[[], object]]
) -> None:
    another = theirs.reservation("another", 1)
    ends: list[datetime] = []

    def until_another_ends() -> None:
        assert another.acquire()
        assert another.expires_at is not None
        ends.append(another.expires_at)
        eventually(lambda: not another.holder())

    standing_still.append(until_another_ends)
    assert mine.reserve("clock", 60)
    holder = theirs.reservation("clock").holder()
    assert holder is not None
    assert holder.since >= ends[0]
    assert holder.until - holder.since == timedelta(seconds=60)


@pytest.mark.parametrize("shared_place", ["sqlite", "postgresql", "mariadb"], indirect=True)
def test_nobody_is_told_that_he_holds_what_he_asked_for_too_long_ago(
    mine: Video, theirs: Video, standing_still: list[Callable[[], object]]
) -> None:
    another = theirs.reservation("another", 1)

    def until_another_ends() -> None:
        assert another.acquire()
        eventually(lambda: not another.holder())

    standing_still.append(until_another_ends)
    assert not mine.reserve("clock", 0.9)
    assert not standing_still
    assert theirs.reserve("clock", 60)
    assert not mine.release("clock")
    assert theirs.release("clock")
