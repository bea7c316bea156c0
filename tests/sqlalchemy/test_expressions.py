"""reserved() and unreserved(): SQL that knows every row's name exactly as Python does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Select, delete, func, insert, select
from sqlalchemy.orm import Session, aliased

from reservable import InvalidKey, NotSupported, configure
from reservable.backends.database.naming import name_in_sql
from reservable.sqlalchemy.expressions import reserved, unreserved
from reservable.sqlalchemy.identity import identity_of
from tests.sqlalchemy.conftest import Place, Places
from tests.sqlalchemy.models import (
    Account,
    Chunk,
    Code,
    Day,
    Doc,
    Dog,
    Engineer,
    Film,
    Paint,
    Parcel,
    Seat,
    Ticket,
    Video,
)
from tests.waiting import eventually

Sessions = Callable[..., Session]
ODD = [
    "a",
    "A",
    "a ",
    " a",
    "ä",
    "a\u0308",
    "%41",
    "a%20",
    "a:b",
    "a,b",
    "\\1",
    "\\",
    "'",
    '"',
    "\n",
    "a\n",
    "🎬",
    "ß",
]
ODD += ["_", "~", "-.", "{x}", "%%", "%s", ":name", "\t", "\x7f", "\u2028", "İ", "ﬃ", "", "x" * 85]


@pytest.fixture
def session(database: Place, sessions: Sessions) -> Session:
    return sessions(database.engine)


def stored(session: Session, rows: Iterable[Any]) -> list[Any]:
    """The rows, of one class, as the only ones in their table."""
    rows = list(rows)
    session.execute(delete(type(rows[0])))
    session.add_all(rows)
    session.commit()
    return rows


def found(session: Session, statement: Select[Any]) -> set[int]:
    session.rollback()  # a new snapshot
    return {id(row) for row in session.scalars(statement)}


@pytest.mark.parametrize(
    "make",
    [
        lambda: [Video() for _ in range(4)],
        lambda: [Doc(path=path) for path in ODD],
        lambda: [Account(id=uuid4()) for _ in range(4)],
        lambda: [Account(id=UUID(int=0)), Account(id=UUID("ABCDEFAB-CDEF-4BCD-8FAB-CDEFABCDEFAB"))],
        lambda: [Parcel(id=uuid4()) for _ in range(4)],
        lambda: [Seat(hall=hall, number=number) for hall in ODD[:12] for number in (-1, 23)],
        lambda: [Film() for _ in range(4)],
        lambda: [Dog() for _ in range(4)],
        lambda: [Engineer() for _ in range(4)],
    ],
    ids=[
        "integer",
        "text",
        "uuid",
        "uuid bounds",
        "uuid as text",
        "composite",
        "renamed",
        "single",
        "joined",
    ],
)
def test_exactly_the_reserved_rows_are_found(session, make):
    rows = make()
    model = type(rows[0])
    for old in session.scalars(select(model)):
        session.delete(old)
    session.commit()
    session.add_all(rows)
    session.commit()
    taken = rows[::2]
    for row in taken:
        assert row.reserve("a b/ü")
    assert found(session, select(model).where(model.reserved("a b/ü"))) == set(map(id, taken))
    assert found(session, select(model).where(model.unreserved("a b/ü"))) == set(map(id, rows[1::2]))
    assert found(session, select(model).where(model.reserved("a b/u"))) == set()
    for row in taken:
        assert row.release("a b/ü")
    assert found(session, select(model).where(model.reserved("a b/ü"))) == set()


def test_a_reservation_that_is_over_is_unreserved(session):
    (video,) = stored(session, [Video()])
    assert video.reserve("over", 0.4)
    eventually(lambda: found(session, select(Video).where(Video.unreserved("over"))) == {id(video)})
    assert video.release("over") is False


def test_an_alias_is_asked_about_by_itself(session):
    one, other = stored(session, [Video(title="one"), Video(title="other")])
    assert one.reserve("alias")
    clip = aliased(Video)
    assert found(session, select(clip).where(reserved(clip, "alias"))) == {id(one)}
    assert found(session, select(clip).where(clip.unreserved("alias"))) == {id(other)}
    session.rollback()
    pairs = session.execute(
        select(Video.title, clip.title)
        .join(clip, Video.id != clip.id)
        .where(Video.reserved("alias"), unreserved(clip, "alias"))
    ).all()
    assert [tuple(pair) for pair in pairs] == [("one", "other")]
    assert one.release("alias")


def test_several_keys_in_one_statement_and_in_a_column_list(session):
    one, other = stored(session, [Video(title="one"), Video(title="other")])
    assert one.reserve("first")
    assert one.reserve("second")
    assert other.reserve("first")
    both = select(Video).where(Video.reserved("first"), Video.unreserved("second"))
    assert found(session, both) == {id(other)}
    session.rollback()
    told = session.execute(select(Video.title, Video.reserved("second")).order_by(Video.title)).all()
    assert [(title, bool(is_reserved)) for title, is_reserved in told] == [("one", True), ("other", False)]
    assert session.scalar(select(func.count()).select_from(Video).where(Video.reserved("first"))) == 2
    assert session.query(Video).filter(Video.reserved("second")).all() == [one]
    assert one.release("first")
    assert one.release("second")
    assert other.release("first")


def test_a_prefix_and_a_table_of_its_own_are_looked_into(database, session):
    (video,) = stored(session, [Video()])
    assert video.reserve("elsewhere")
    configure(prefix="shop:", table="bookings")
    assert video.reserve("elsewhere")
    configure(prefix="shop:", table="bookings")
    assert found(session, select(Video).where(Video.reserved("elsewhere"))) == {id(video)}
    configure(prefix="other:", table="bookings")
    assert found(session, select(Video).where(Video.reserved("elsewhere"))) == set()
    backend = configure(database.url, prefix="shop:", table="bookings")
    assert backend is not None
    assert found(session, select(Video).where(Video.reserved("elsewhere"))) == {id(video)}
    assert backend.break_(video.reservation("elsewhere").name)
    configure()
    assert video.release("elsewhere") is False or not video.is_reserved("elsewhere")


def test_they_are_not_supported_while_reservations_are_in_no_database(place):
    if place.where is None:
        configure("memory://")
    for expression in (Video.reserved, Video.unreserved):
        with pytest.raises(NotSupported, match="first_reserved"):
            expression("download")


@pytest.mark.parametrize("model", [Day, Chunk, Paint, Code, Ticket])
def test_they_are_not_supported_for_keys_whose_text_sql_cannot_write(model):
    for expression in (model.reserved, model.unreserved):
        with pytest.raises(NotSupported, match=model.__name__):
            expression("download")


def test_a_bad_key_is_refused_when_they_are_built():
    with pytest.raises(InvalidKey):
        Video.reserved(date(2024, 1, 1))
    with pytest.raises(InvalidKey):
        Video.unreserved("")


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def texts_of(request: pytest.FixtureRequest, places: Places) -> Place:
    if request.param != "sqlite":
        request.getfixturevalue(f"{request.param}_url")
    return places(request.param)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    paths=st.sets(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12), min_size=8
    )
)
def test_sql_and_python_write_the_same_name_for_any_text(texts_of, paths):
    names_agree(texts_of, paths)


@pytest.mark.parametrize("path", ["\x00", "a\x00", "a\x00b", "\x00ä", "a"])
def test_sql_and_python_write_the_same_name_for_text_with_a_nul(texts_of, path):
    """PostgreSQL takes none."""
    if texts_of.kind != "postgresql":
        names_agree(texts_of, {path})


def names_agree(place: Place, paths: set[str]) -> None:
    identity = identity_of(Doc.__mapper__)
    column: Any = Doc.path
    with place.engine.connect() as connection:
        connection.execute(delete(Doc))
        connection.execute(insert(Doc), [{"path": path} for path in paths])
        rows = connection.execute(select(Doc.path, name_in_sql(identity, [column], "key", "shop:"))).all()
        connection.rollback()
    assert len(rows) == len(paths)
    for path, name in rows:
        assert name == f"shop:{identity.name([path], 'key')}"


@pytest.mark.parametrize("model", [Video, Parcel, Seat])
def test_statements_can_be_printed_without_a_database(model: Any, sessions: Sessions):
    assert "NOT (EXISTS" in str(select(model).where(unreserved(model, "k")))
