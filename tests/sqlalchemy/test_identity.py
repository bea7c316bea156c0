"""Which row an instance is: equal rows are one reservation however their key was typed, different rows never."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import String
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reservable import ConfigurationError, InvalidKey, Reservable, UnidentifiedInstance, configure
from tests.sqlalchemy.models import (
    Account,
    Animal,
    Chunk,
    Circle,
    Code,
    Color,
    Day,
    Doc,
    Dog,
    Engineer,
    Film,
    Paint,
    Parcel,
    Person,
    Seat,
    Shape,
    Ticket,
    Video,
)

Sessions = Callable[..., Session]
ID = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")


@pytest.fixture
def in_memory() -> None:
    configure("memory://")


def name(instance: Any) -> str:
    return str(instance.reservation("download").name)


ROWS = [
    Video,
    lambda: Doc(path=f"a b/ü:{uuid4()}%, '\"\\ \n🎬"),
    lambda: Account(id=uuid4()),
    lambda: Parcel(id=uuid4()),
    lambda: Seat(hall=f"east,{uuid4()}", number=-3),
    lambda: Chunk(digest=uuid4().bytes[:15] + b"\x00"),
    lambda: Day(day=date(2024, 2, 29)),
    lambda: Paint(color=Color.RED),
    lambda: Code(code=uuid4().hex[:5]),
    lambda: Ticket(number=f"t-{uuid4().hex[:9]}"),
    Film,
    Animal,
    Dog,
    Engineer,
    Circle,
]


@pytest.mark.parametrize("make", ROWS, ids=lambda make: type(make()).__name__)
def test_a_row_is_the_same_row_for_who_made_it_and_who_loaded_it(place, sessions: Sessions, make):
    ours, theirs = sessions(place.engine), sessions(place.engine)
    made = make()
    there = ours.query(type(made)).first() if isinstance(made, Day | Paint) else None
    if there is None:
        ours.add(made)
        ours.commit()
    else:
        made = there
    made_name = name(made)
    key = made.__mapper__.primary_key_from_instance(made)
    ours.commit()  # an SQLite file lets nobody else write while we read a journal
    loaded = theirs.get_one(type(made), tuple(key))
    assert name(loaded) == made_name
    assert made.reserve("download")
    assert loaded.is_reserved("download")
    assert not loaded.reserve("download")
    assert made.release("download")
    assert loaded.reserve("download")
    assert loaded.release("download")


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize(
    ("model", "attribute", "typed"),
    [
        (Video, "id", [1, "1", True, 1.0, Decimal("1.00")]),
        (Film, "number", [7, "7"]),
        (Account, "id", [ID, str(ID), str(ID).upper(), ID.hex, f"{{{ID}}}", ID.urn]),
        (Parcel, "id", [ID, str(ID), str(ID).upper(), ID.hex]),
        (Chunk, "digest", [b"\x01\xff", bytearray(b"\x01\xff"), memoryview(b"\x01\xff")]),
        (Day, "day", [date(2024, 2, 29), "2024-02-29"]),
        (Paint, "color", [Color.RED, "RED"]),
        (Code, "code", ["abc", "abc     "]),
        (Ticket, "number", ["T-7", "t-7", "7", 7]),
        (Doc, "path", ["7", 7]),
    ],
)
def test_equal_keys_give_one_name_however_they_are_typed(model, attribute, typed):
    assert len({name(model(**{attribute: value})) for value in typed}) == 1


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize(
    ("model", "keys"),
    [
        (Seat, [{"hall": "1", "number": 23}, {"hall": "12", "number": 3}, {"hall": "1,2", "number": 3}]),
        (
            Doc,
            [
                {"path": p}
                for p in ["a", "A", "a ", " a", "ä", "a\u0308", "a:b", "a%3Ab", "", "a\x00", "ss", "ß"]
            ],
        ),
        (Day, [{"day": date(2024, 2, 29)}, {"day": date(2024, 3, 1)}]),
        (Chunk, [{"digest": b"a"}, {"digest": b"a\x00"}, {"digest": b"%00"}, {"digest": b"A"}]),
        (Video, [{"id": 1}, {"id": 11}, {"id": -1}]),
    ],
)
def test_different_keys_give_different_names(model, keys):
    assert len({name(model(**key)) for key in keys}) == len(keys)


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize(
    "key", ["x", 1.5, float("inf"), float("nan"), b"x", object(), datetime(2024, 1, 1, tzinfo=UTC)]
)
def test_what_cannot_be_a_number_is_no_key(key):
    with pytest.raises(InvalidKey):
        name(Video(id=key))


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize(
    "part", [Seat(hall="east"), Seat(number=1), Seat(hall=None, number=1), Doc(), Video()]
)
def test_a_row_without_its_whole_key_is_unidentified(part):
    with pytest.raises(UnidentifiedInstance):
        part.reserve("download")


@pytest.mark.usefixtures("in_memory")
def test_a_key_is_never_cut():
    with pytest.raises(InvalidKey, match="255"):
        name(Doc(path="x" * 256))
    for number in (2**64, -(10**300), 10**5000):
        with pytest.raises(InvalidKey, match="64 bits"):
            name(Video(id=number))


@pytest.mark.usefixtures("in_memory")
def test_classes_that_share_rows_share_names():
    assert name(Dog(id=1)) == name(Animal(id=1)) == "animals:1:download"
    assert name(Engineer(id=1, engineer_id=1)) == name(Person(id=1)) == "people:1:download"


@pytest.mark.usefixtures("in_memory")
def test_classes_with_rows_of_their_own_share_no_names():
    assert name(Shape(id=1)) == "figure:1:download"
    assert name(Circle(id=1)) == "circles:1:download"


@pytest.mark.usefixtures("in_memory")
def test_the_schema_is_part_of_the_name():
    class Other(DeclarativeBase):
        pass

    class Plain(Reservable, Other):
        __tablename__ = "things"
        id: Mapped[int] = mapped_column(primary_key=True)

    class Shop(Reservable, Other):
        __tablename__ = "things"
        __table_args__ = {"schema": "shop"}  # noqa: RUF012
        id: Mapped[int] = mapped_column(primary_key=True)

    class Another(DeclarativeBase):
        pass

    class Dotted(Reservable, Another):
        __tablename__ = "shop.things"
        id: Mapped[int] = mapped_column(primary_key=True)

    names = [name(model(id=1)) for model in (Plain, Shop, Dotted)]
    assert names == ["things:1:download", "shop.things:1:download", "shop%2Ethings:1:download"]


@pytest.mark.usefixtures("in_memory")
def test_a_chosen_name_outlives_the_class_and_its_table():
    class Other(DeclarativeBase):
        pass

    class Renamed(Reservable, Other):
        __tablename__ = "clips"
        __reservable_name__ = "videos"
        id: Mapped[int] = mapped_column(primary_key=True)

    class Child(Renamed):
        pass

    assert name(Renamed(id=1)) == name(Child(id=1)) == name(Video(id=1)) == "videos:1:download"


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize("chosen", ["", 5, b"x"])
def test_a_chosen_name_is_text(chosen):
    class Other(DeclarativeBase):
        pass

    class Thing(Reservable, Other):
        __tablename__ = "things"
        __reservable_name__ = chosen
        id: Mapped[str] = mapped_column(String(3), primary_key=True)

    with pytest.raises(InvalidKey, match="__reservable_name__"):
        name(Thing(id="x"))


@pytest.mark.usefixtures("in_memory")
def test_a_class_that_shares_rows_cannot_choose_another_name():
    class Wolf(Dog):
        __mapper_args__ = {"polymorphic_identity": "wolf"}  # noqa: RUF012
        __reservable_name__ = "wolves"

    with pytest.raises(ConfigurationError, match="__reservable_name__"):
        name(Wolf(id=1))


@pytest.mark.usefixtures("in_memory")
def test_a_class_that_shares_rows_cannot_keep_its_reservations_elsewhere():
    class Fox(Dog):
        __mapper_args__ = {"polymorphic_identity": "fox"}  # noqa: RUF012
        __reservable_backend__ = "memory://"

    with pytest.raises(ConfigurationError, match="__reservable_backend__: set it on Animal"):
        name(Fox(id=1))
