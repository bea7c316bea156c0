"""`work`: row after row in a loop of the caller's own, on every database."""

from __future__ import annotations

import logging
import math
import threading
import time
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy.orm import Session

from reservable import BackendError, ConfigurationError, InvalidDuration, Lease, NotSupported, Snooze
from reservable.leasing import asked, claiming
from tests.sqlalchemy.queue.conftest import Sessions
from tests.sqlalchemy.queue.models import Kept, Short, Stage, Task
from tests.sqlalchemy.queue.rows import added, states
from tests.waiting import eventually


def test_rows_come_in_their_order_until_it_is_to_stop(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    first, second, third, left = added(session, Task(), Task(priority=1), Task(), Task(priority=-1))
    done = []
    for lease in Task.work(sessions, batch=2, worker="me", stop=stop):
        with lease:
            assert lease.row.leased_by == "me"
            done.append(lease.pk[0])
        if len(done) == 3:
            stop.set()
    assert done == [second, first, third]
    assert states(session)[left] == ("pending", 0)


def test_an_exception_in_the_block_is_stored_and_the_loop_goes_on(
    session: Session, sessions: Sessions, stop: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = added(session, Task(), Task())
    for lease in Task.work(sessions, stop=stop):
        with lease:
            if lease.pk == (bad,):
                raise ValueError("no such page")
            stop.set()
    assert states(session) == {bad: ("pending", 1), good: ("succeeded", 1)}
    assert session.get_one(Task, bad).last_error["message"] == "no such page"  # type: ignore[index]
    assert f"tasks:{bad} failed" in caplog.text


def test_a_row_that_was_not_begun_is_given_back(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    ids = added(session, Task(), Task(), Task())
    for lease in Task.work(sessions, batch=3, stop=stop):
        if lease.pk == (ids[1],):
            with lease:
                stop.set()
    assert states(session) == {ids[0]: ("pending", 0), ids[1]: ("succeeded", 1), ids[2]: ("pending", 0)}


def test_a_row_that_was_finished_without_a_block_is_left_as_it_is(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    [one] = added(session, Task())
    for lease in Task.work(sessions, stop=stop):
        lease.fail("by hand", retry_in="1 hour")
        stop.set()
    assert states(session) == {one: ("pending", 1)}


def test_a_row_whose_block_still_runs_elsewhere_is_left_alone(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    [one] = added(session, Task())
    go_on = threading.Event()
    threads = []
    for lease in Task.work(sessions, stop=stop):
        begun = threading.Event()

        def body(lease: Lease = lease, begun: threading.Event = begun) -> None:
            with lease:
                begun.set()
                go_on.wait(10)

        threads.append(threading.Thread(target=body))
        threads[-1].start()
        assert begun.wait(10)
        stop.set()
    assert states(session) == {one: ("running", 1)}
    go_on.set()
    threads[0].join()
    assert states(session) == {one: ("succeeded", 1)}


def test_leaving_the_loop_gives_back_what_was_not_begun(session: Session, sessions: Sessions) -> None:
    ids = added(session, Task(), Task(), Task())
    for lease in Task.work(sessions, batch=3):
        with lease:
            break
    assert states(session) == {ids[0]: ("succeeded", 1), ids[1]: ("pending", 0), ids[2]: ("pending", 0)}


def test_an_exception_outside_of_the_block_comes_out_and_nothing_is_kept(
    session: Session, sessions: Sessions
) -> None:
    ids = added(session, Task(), Task())
    with closing(Task.work(sessions, batch=2)) as leases, pytest.raises(RuntimeError, match="mine"):  # type: ignore[type-var]
        for _ in leases:
            raise RuntimeError("mine")
    assert states(session) == dict.fromkeys(ids, ("pending", 0))


def test_an_interrupt_gives_everything_back(session: Session, sessions: Sessions) -> None:
    ids = added(session, Task(), Task())
    with closing(Task.work(sessions, batch=2)) as leases, pytest.raises(KeyboardInterrupt):  # type: ignore[type-var]
        for lease in leases:
            with lease:
                raise KeyboardInterrupt
    assert states(session) == dict.fromkeys(ids, ("pending", 0))


@pytest.mark.parametrize("title", ["x" * 200, "\ud800"])
def test_a_row_whose_values_the_database_refuses_has_failed_and_the_next_one_comes(
    session: Session, sessions: Sessions, stop: threading.Event, title: str
) -> None:
    if session.get_bind().dialect.name == "sqlite" and title.isascii():
        pytest.skip("SQLite does not look at lengths")
    bad, good = added(session, Task(), Task())
    for lease in Task.work(sessions, stop=stop):
        with lease:
            if lease.pk == (bad,):
                lease.set(title=title)
            else:
                stop.set()
    assert states(session) == {bad: ("pending", 1), good: ("succeeded", 1)}
    last = session.get_one(Task, bad).last_error
    assert last is not None
    assert last["type"] == "reservable.errors.BackendError"


def test_rows_that_wait_for_their_turn_are_kept_alive(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    first, second = added(session, Kept(), Kept())
    for lease in Kept.work(sessions, batch=2, stop=stop):
        with lease:
            if lease.pk == (first,):
                begun = time.monotonic()
                while time.monotonic() < begun + 2.2:  # longer than the lease
                    assert Kept.claim(session) == []
            else:
                stop.set()
    assert states(session, Kept) == {first: ("succeeded", 1), second: ("succeeded", 1)}


def test_a_row_that_is_lost_before_its_turn_is_passed_over(
    session: Session, sessions: Sessions, stop: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, third = added(session, Kept(), Kept(), Kept())
    done = []
    for lease in Kept.work(sessions, batch=3, stop=stop):
        with lease:
            done.append(lease.pk[0])
            if lease.pk == (first,):
                session.get_one(Kept, second).pause(session)
                session.commit()
                eventually(lambda: f"lost kept:{second}" in caplog.text)
            if lease.pk == (third,):
                stop.set()
    assert done == [first, third]
    assert states(session, Kept)[second] == ("paused", 0)


def test_what_the_rows_have_to_match_is_asked_of_every_claim(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    mine, _ = added(session, Task(title="mine"), Task(title="theirs", priority=9))
    for lease in Task.work(sessions, where=Task.title == "mine", stop=stop):
        with lease:
            assert lease.pk == (mine,)
            stop.set()


def test_a_worker_of_one_step_sees_rows_of_that_step_alone(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    early, late = added(session, Stage(), Stage(step="transcribe"))
    for lease in Stage.work(sessions, batch=5, step="transcribe", stop=stop):
        with lease:
            stop.set()
            assert lease.pk == (late,)
    assert states(session, Stage)[early] == ("pending", 0)


def test_an_idle_worker_wakes_when_the_next_row_comes_due(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    session.add(row := Task())
    due = time.monotonic() + 1  # or later, by what it takes to ask for it
    row.enqueue(session, at="1s")
    session.commit()
    committed, begun = time.monotonic(), math.inf
    for lease in Task.work(sessions, stop=stop, idle="1 hour"):
        begun = time.monotonic()
        with lease:
            stop.set()
    assert begun > due - 0.001  # two clocks
    assert begun < committed + 1 + 5


def test_an_idle_worker_wakes_when_another_workers_lease_is_over(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    added(session, Short())
    [crashed] = Short.claim(session)
    over, late = time.monotonic() + 0.5, math.inf
    for lease in Short.work(sessions, stop=stop, idle="1 hour"):
        late = time.monotonic() - over
        with lease:
            stop.set()
    assert late < 5
    assert crashed.lost.is_set() or crashed.token < lease.token


def test_a_row_that_snoozes_comes_back(session: Session, sessions: Sessions, stop: threading.Event) -> None:
    [one] = added(session, Task())
    turns = 0
    for lease in Task.work(sessions, stop=stop, idle=0.1):
        with lease:
            turns += 1
            if turns == 1:
                raise Snooze(0.2)
            stop.set()
    assert states(session) == {one: ("succeeded", 1)}


@pytest.mark.parametrize("kind", ["event", "function"])
def test_an_idle_worker_stops_soon(engine: Any, sessions: Sessions, kind: str) -> None:
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    begun = time.monotonic()
    assert [*Task.work(sessions, stop=stop if kind == "event" else stop.is_set, idle="1 hour")] == []
    assert 0.2 < time.monotonic() - begun < 2
    timer.join()


def test_a_worker_that_is_to_stop_from_the_beginning_claims_nothing(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    [one] = added(session, Task())
    stop.set()
    assert [*Task.work(sessions, stop=stop)] == []
    assert states(session) == {one: ("pending", 0)}


def test_bad_arguments_are_refused_before_the_loop_begins(session: Session, sessions: Sessions) -> None:
    bad: Any
    for bad in ({"batch": 0}, {"batch": "5"}, {"worker": ""}, {"step": "none"}, {"stop": 5}):
        with pytest.raises(ConfigurationError):
            Task.work(sessions, **bad)
    with pytest.raises(InvalidDuration):
        Task.work(sessions, idle=-1)
    bad = session
    with pytest.raises(NotSupported, match="makes sessions"):
        Task.work(bad)
    bad = dict
    with pytest.raises(NotSupported, match="Session"):
        next(Task.work(bad))


class Outage:
    """Claims that fail while it lasts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lasts = False
        self.met = 0
        real = claiming.claim_next

        def claim_next(*arguments: Any) -> Any:
            if self.lasts:
                self.met += 1
                raise BackendError("connection refused")
            return real(*arguments)

        monkeypatch.setattr(asked, "claim_next", claim_next)


def test_a_database_that_cannot_be_reached_from_the_beginning_is_told(
    engine: Any, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    Outage(monkeypatch).lasts = True
    with pytest.raises(BackendError, match="refused"):
        next(Task.work(sessions))


def test_an_outage_is_waited_for(
    session: Session,
    sessions: Sessions,
    stop: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ids = added(session, Task(), Task())
    outage = Outage(monkeypatch)
    caplog.set_level(logging.WARNING)

    def is_to_stop() -> bool:
        outage.lasts = outage.lasts and outage.met < 3
        return stop.is_set()

    for lease in Task.work(sessions, stop=is_to_stop, idle=0.05):
        with lease:
            outage.lasts = outage.met == 0
            if lease.pk == (ids[1],):
                stop.set()
    assert outage.met == 3
    assert "nothing can be claimed: connection refused" in caplog.text
    assert states(session) == dict.fromkeys(ids, ("succeeded", 1))
