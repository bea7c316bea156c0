"""Rows are found whatever their primary key is: text with odd characters, UUIDs, several parts, odd types."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest
from sqlalchemy import select

from reservable import InvalidKey, each_reserved, first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Code, Day, File, Page, Product, Seat, Shelf, TextualFile
from tests.sqlalchemy.finding.worlds import KEY, World

ODD = [
    "plain", "with space", "a:b", "a,b", "a%b", "100%25", "ümlaut", "日本", "😀", "'quoted\"", "back\\slash",
    "tab\there", "-._~", "?*[]", "e\u0301", "{x}", "a/b?c=d&e", "%s", "%(name)s", ":name", "$1",
]  # fmt: skip


def test_text_keys_with_odd_characters_are_found_and_released(dialect: World):
    dialect.add(*(Page(url=url) for url in ODD))
    session = dialect.session()
    found = []
    while (page := first_reserved(session, select(Page).where(Page.path.is_(None)), KEY)) is not None:
        found.append(page)
    assert {page.url for page in found} == set(ODD)
    assert sorted(dialect.reserved(Page)) == sorted(ODD)
    assert all(page.release(KEY) for page in found)
    assert dialect.reserved(Page) == []


def test_text_keys_that_are_reserved_one_by_one_are_passed_over(dialect: World):
    dialect.add(*(Page(url=url) for url in ODD))
    dialect.reserve(*ODD[1:], model=Page)
    assert first_reserved(dialect.session(), select(Page), KEY).url == ODD[0]  # type: ignore[union-attr]
    assert first_reserved(dialect.session(), select(Page), KEY) is None


def test_text_keys_that_differ_in_case_are_different_rows(dialect: World):
    if dialect.database == "mariadb":
        pytest.skip("its collation takes them for one key, and so for one row")
    dialect.add(Page(url="aB1"), Page(url="Ab1"))
    dialect.reserve("aB1", model=Page)
    assert first_reserved(dialect.session(), select(Page), KEY).url == "Ab1"  # type: ignore[union-attr]
    assert first_reserved(dialect.session(), select(Page), KEY) is None


def test_a_key_too_long_for_a_name_is_refused_and_nothing_stays_reserved(dialect: World):
    dialect.add(Page(url="ü" * 80))
    with pytest.raises(InvalidKey, match="primary key"):
        first_reserved(dialect.session(), select(Page), KEY)
    assert list(dialect.backend.list()) == []


def test_uuids_are_found(dialect: World):
    keys = sorted(uuid.uuid4() for _ in range(3))
    dialect.add(*(File(id=key) for key in keys))
    dialect.reserve(keys[0], model=File)
    found = take_reserved(dialect.session(), select(File).order_by(File.id), KEY, limit=5)
    assert {file.id for file in found} == set(keys[1:])
    assert all(file.release(KEY) for file in found)


def test_uuids_that_python_sees_as_text_are_found(dialect: World):
    keys = [str(uuid.uuid4()) for _ in range(3)]
    dialect.add(*(TextualFile(id=key) for key in keys))
    dialect.reserve(keys[0], model=TextualFile)
    found = take_reserved(dialect.session(), select(TextualFile), KEY, limit=5)
    assert {file.id for file in found} == set(keys[1:])
    assert all(file.release(KEY) for file in found)


def test_composite_keys_are_found_and_do_not_run_together(dialect: World):
    seats = [("1", 23), ("12", 3), ("a,b", 1), ("a", 1), ("a%2Cb", 1)]
    dialect.add(*(Seat(row=row, number=number) for row, number in seats))
    dialect.reserve(("1", 23), model=Seat)
    session = dialect.session()
    free = select(Seat).where(Seat.guest.is_(None)).order_by(Seat.number, Seat.row)
    found = take_reserved(session, free, KEY, limit=2)
    found += list(each_reserved(session, free, KEY))
    assert sorted((seat.row, seat.number) for seat in found) == sorted(seats[1:])
    assert all(seat.release(KEY) for seat in found)


def test_keys_of_a_type_of_the_users_own_are_found(dialect: World):
    dialect.add(*(Product(code=code) for code in (7, 8, 9)))
    dialect.reserve(7, model=Product)
    session = dialect.session()
    statement = select(Product).order_by(Product.code)
    assert first_reserved(session, statement, KEY).code == 8  # type: ignore[union-attr]
    assert [product.code for product in each_reserved(session, statement, KEY)] == [9]
    assert dialect.reserved(Product) == [7, 8, 9]
    assert isinstance(Product.__table__.c.code.type, Code)


def test_composite_keys_with_a_type_of_the_users_own_are_found(dialect: World):
    dialect.add(*(Shelf(hall=hall, code=code) for hall in (1, 2) for code in (7, 8)))
    dialect.reserve((1, 7), model=Shelf)
    statement = select(Shelf).order_by(Shelf.hall, Shelf.code)
    found = take_reserved(dialect.session(), statement, KEY, limit=5)
    assert [(shelf.hall, shelf.code) for shelf in found] == [(1, 8), (2, 7), (2, 8)]


def test_date_keys_are_found(dialect: World):
    days = [dt.date(2024, 2, day) for day in (27, 28, 29)]
    dialect.add(*(Day(date=day) for day in days))
    dialect.reserve(days[2], model=Day)
    session = dialect.session()
    statement = select(Day).order_by(Day.date.desc())
    assert first_reserved(session, statement, KEY).date == days[1]  # type: ignore[union-attr]
    assert first_reserved(session, statement, KEY).date == days[0]  # type: ignore[union-attr]
    assert first_reserved(session, statement, KEY) is None
