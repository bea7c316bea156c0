"""Rows are found by their keys, however these are said, typed or ordered, and each once."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import pytest
from sqlalchemy import Engine, ForeignKey, String, event, func, select
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    ORMExecuteState,
    Session,
    mapped_column,
    relationship,
    with_loader_criteria,
)

from reservable import ConfigurationError, InvalidKey, NotClaimable, NotSupported, Queued, QueueOptions


class Base(DeclarativeBase):
    pass


class Kind(Enum):
    A = "a"
    B = "b"


class Piece(Queued, Base):
    """A key without an order among its values."""

    __tablename__ = "pieces"
    kind: Mapped[Kind] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class Swapped(Queued, Base):
    """The mapper has its key in another order than the table."""

    __tablename__ = "swapped"
    first: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    second: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    __mapper_args__ = {"primary_key": [second, first]}  # noqa: RUF012


class Video(Queued, Base):
    __tablename__ = "tagged_videos"
    __queue__ = QueueOptions(extra=("lease expired",))
    name: Mapped[str] = mapped_column(String(20), primary_key=True)
    tags: Mapped[list[Tag]] = relationship()


class Tag(Base):
    __tablename__ = "video_tags"
    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(String(20))
    video: Mapped[str] = mapped_column(ForeignKey("tagged_videos.name"))


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    Base.metadata.create_all(engine)
    with Session(engine, expire_on_commit=False) as session:
        yield session
    Base.metadata.drop_all(engine)


def test_keys_without_an_order_can_be_claimed(session: Session) -> None:
    session.add_all(Piece(kind=kind, number=1) for kind in Kind)
    session.commit()
    at = func.max(Piece.retry_at).select()
    session.execute(Piece.__table__.update().values(retry_at=at.scalar_subquery()))  # type: ignore[attr-defined]
    session.commit()
    assert {lease.row.kind for lease in Piece.claim(session, 2)} == {*Kind}


def test_a_mapper_may_order_the_key_as_it_likes(session: Session) -> None:
    session.add(Swapped(first=1, second=2))
    session.commit()
    [lease] = Swapped.claim(session)
    assert lease.pk == (2, 1)
    lease.release()
    with Swapped.start(session, (2, 1)) as lease:
        assert lease.row.first == 1


def test_a_key_that_is_equal_to_the_database_starts_the_row(session: Session) -> None:
    session.add(Video(name="abc"))
    session.commit()
    said = "ABC" if session.get_bind().dialect.name == "mariadb" else "abc"  # where case is no difference
    with Video.start(session, said) as lease:
        assert lease.pk == ("abc",)


def test_a_column_is_no_key(session: Session) -> None:
    with pytest.raises(InvalidKey), Video.start(session, Video.name):
        pass


def test_a_status_of_ones_own_may_have_any_name(session: Session) -> None:
    session.add(Video(name="a", status="lease expired"))
    session.commit()
    with pytest.raises(NotClaimable) as refused, Video.start(session, "a"):
        pass
    assert refused.value.reason == "lease expired"


def test_a_row_is_claimed_once_whatever_its_partners(session: Session) -> None:
    session.add_all([Video(name="a", tags=[Tag(text="new"), Tag(text="new")]), Video(name="b")])
    session.commit()
    with pytest.raises(NotSupported, match="another table"):
        Video.claim(session, 2, where=Tag.video == Video.name)
    leases = Video.claim(session, 2, where=Video.tags.any(Tag.text == "new"))
    assert [lease.pk for lease in leases] == [("a",)]
    named = select(Tag.video).where(Tag.text == "old").scalar_subquery()
    assert [lease.pk for lease in Video.claim(session, 2, where=Video.name.not_in(named))] == [("b",)]


@pytest.mark.parametrize("where", ["id > 2", 5, {"id": 1}])
def test_what_is_no_sql_is_refused(session: Session, where: Any) -> None:
    with pytest.raises(ConfigurationError, match="give SQL about the row"):
        Video.claim(session, where=where)


def test_more_rows_than_a_statement_can_name_are_refused(session: Session) -> None:
    with pytest.raises(ConfigurationError, match="at most 1000"):
        Video.claim(session, 1001)


def test_rows_that_the_users_own_criteria_hide_are_given_back(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    session.add(Video(name="a"))
    session.commit()

    def only_others(state: ORMExecuteState) -> None:
        state.statement = state.statement.options(with_loader_criteria(Video, Video.name != "a"))

    event.listen(Session, "do_orm_execute", only_others)
    try:
        assert Video.claim(session) == []
    finally:
        event.remove(Session, "do_orm_execute", only_others)
    assert "cannot be loaded" in caplog.text
    assert session.execute(select(Video.status, Video.attempts)).one() == ("pending", 0)
