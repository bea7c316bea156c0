"""Filters find the right rows whatever their values are, and with other values the next time."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import and_, bindparam, case, func, literal, literal_column, not_, or_, select, text

from reservable import first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Video
from tests.sqlalchemy.finding.samples import Colour, Sample
from tests.sqlalchemy.finding.worlds import KEY, World

VALUES: dict[str, tuple[Any, Any]] = {
    "moment": (
        dt.datetime.fromisoformat("2024-02-29T23:59:59"),
        dt.datetime.fromisoformat("2024-03-31T02:30"),
    ),
    "date": (dt.date(2024, 2, 29), dt.date(1999, 12, 31)),
    "time": (dt.time(12, 0), dt.time(23, 59, 59)),
    "span": (dt.timedelta(days=1), dt.timedelta(seconds=1)),
    "colour": (Colour.RED, Colour.BLUE),
    "flag": (True, False),
    "ident": (uuid.UUID(int=1), uuid.UUID(int=2**127 + 5)),
    "code": (7, 8),
    "price": (Decimal("1.10"), Decimal("99999.99")),
    "weight": (0.5, 2.25),
    "blob": (b"\x00\xff", b"'%s\\"),
    "text": ("100% :it's %s \\ \"", "日本 😀"),
}


@pytest.mark.parametrize("column", VALUES)
def test_a_value_of_any_type_finds_its_row(dialect: World, column: str):
    one, other = VALUES[column]
    dialect.add(Sample(id=1, **{column: one}), Sample(id=2, **{column: other}), Sample(id=3))
    session = dialect.session()
    attribute = getattr(Sample, column)

    def find(criterion: Any) -> int | None:
        found = first_reserved(session, select(Sample).where(criterion).order_by(Sample.id), KEY)
        if found is None:
            return None
        assert found.release(KEY)
        return found.id

    # The second time with another value: what is remembered of the first must not be its value.
    assert [find(attribute == one), find(attribute == other), find(attribute == one)] == [1, 2, 1]
    assert find(attribute.in_([other])) == 2
    assert find(attribute.in_([one, other])) == 1
    assert find(attribute.in_([])) is None
    assert find(attribute.is_(None)) == 3
    assert find(attribute == None) == 3  # noqa: E711 - SQLAlchemy makes IS NULL of it


FORMS: dict[str, tuple[Any, list[int]]] = {
    "like with percents": (Sample.text.like("100\\%%", escape="\\"), [1]),
    "contains": (Sample.text.contains("%", autoescape=True), [1]),
    "text": (text("samples.text LIKE '100%'"), [1]),
    "text with values": (text("samples.id > :least").bindparams(least=2), [3, 4]),
    "a parameter": (Sample.id == bindparam("wanted", 3), [3]),
    "a literal": (Sample.id + literal(1) == literal(3), [2]),
    "a literal column": (literal_column("samples.id") == 4, [4]),
    "and or not": (and_(or_(Sample.id == 1, Sample.id == 4), not_(Sample.id == 1)), [4]),
    "between": (Sample.id.between(2, 3), [2, 3]),
    "case": (case((Sample.id == 2, "yes"), else_="no") == "yes", [2]),
    "a function": (func.lower(Sample.text) == "abc", [2]),
    "a tuple": (Sample.id.in_([1, 3]) & Sample.text.is_not(None), [1]),
    "true": (literal(True).is_(True), [1, 2, 3, 4]),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_condition_of_any_form_holds(dialect: World, form: str):
    dialect.add(Sample(id=1, text="100% sure"), Sample(id=2, text="ABC"), Sample(id=3), Sample(id=4))
    condition, expected = FORMS[form]
    statement = select(Sample).where(condition).order_by(Sample.id)
    session = dialect.session()
    for _ in range(2):
        found = take_reserved(session, statement, KEY, limit=9)
        assert [sample.id for sample in found] == expected
        assert all(sample.release(KEY) for sample in found)


def test_lists_of_different_lengths_follow_each_other(dialect: World):
    dialect.add_videos(9)
    session = dialect.session()
    for wanted in ([3], [5, 4], [], [9, 8, 7], [3]):
        statement = select(Video).where(Video.id.in_(wanted)).order_by(Video.id)
        found = take_reserved(session, statement, KEY, limit=9)
        assert [video.id for video in found] == sorted(wanted)
        assert all(video.release(KEY) for video in found)


def test_purposes_and_lifetimes_follow_each_other(dialect: World):
    dialect.add_videos(3)
    session = dialect.session()
    statement = select(Video).order_by(Video.id)
    for key, duration in (("a", 100), ("b", 5000), ("a", 50), ("b", 70), ("c", 100)):
        found = first_reserved(session, statement, key, duration)
        assert found is not None
        handle = found.reservation(key)
        assert handle.name == f"videos:{found.id}:{key}"
        assert duration - 30 < handle.remaining <= duration


def test_statements_built_anew_each_time_find_the_next_row(dialect: World):
    dialect.add_videos(5)
    session = dialect.session()
    got = []
    for least in (1, 2, 1, 4, 1):
        found = first_reserved(session, select(Video).where(Video.id >= least).order_by(Video.id), KEY)
        assert found is not None
        got.append(found.id)
    assert got == [1, 2, 3, 4, 5]


def test_values_given_beside_the_statement_may_change(dialect: World):
    dialect.add_videos(5)
    session = dialect.session()
    statement = select(Video).where(Video.id >= bindparam("least")).order_by(Video.id)
    got = [first_reserved(session, statement.params(least=least), KEY).id for least in (3, 1, 3)]  # type: ignore[union-attr]
    assert got == [3, 1, 4]
