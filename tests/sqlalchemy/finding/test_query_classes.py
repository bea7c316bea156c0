"""The finding functions as methods of a query, and in the sessions of other libraries."""

from __future__ import annotations

from typing import Any

import flask
import pytest
import sqlmodel
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import text
from sqlalchemy.orm import Session, joinedload

from reservable import NotSupported, Reservable, ReservableQuery, first_reserved
from tests.sqlalchemy.finding.models import Author, Video
from tests.sqlalchemy.finding.worlds import KEY, World, close_own_connections, statements


def query(world: World) -> Any:
    session: Session = world.session(query_cls=ReservableQuery)
    return session.query(Video)


def test_first_reserved_is_a_method_of_the_query(world: World):
    world.add_videos(3)
    found = (
        query(world).filter(Video.path.is_(None)).order_by(Video.id.desc()).first_reserved(KEY, "+6 hours")
    )
    assert found.id == 3
    assert 6 * 3600 - 60 < found.reservation(KEY).remaining <= 6 * 3600
    assert query(world).filter_by(title="nothing").first_reserved(KEY) is None


def test_take_and_each_are_methods_of_the_query(world: World):
    world.add_videos(5)
    ordered = query(world).order_by(Video.id)
    assert [video.id for video in ordered.take_reserved(KEY, limit=2)] == [1, 2]
    assert [video.id for video in ordered.each_reserved(KEY, "1 hour")] == [3, 4, 5]


def test_what_a_query_can_say_holds(world: World):
    world.add(Author(id=1, name="Ann", videos=[Video(id=1), Video(id=2)]), Video(id=3))
    asked = query(world).join(Video.author).filter(text("authors.name = :name")).params(name="Ann")
    assert asked.order_by(Video.id.desc()).first_reserved(KEY).id == 2
    assert query(world).order_by(Video.id).limit(1).offset(2).first_reserved(KEY).id == 3
    assert query(world).order_by(Video.id).distinct().first_reserved(KEY).id == 1


def test_eager_loading_of_a_query_holds(apart: World):
    apart.add(Author(id=1, name="Ann", videos=[Video(id=1)]))
    found = query(apart).options(joinedload(Video.author)).first_reserved(KEY)
    with statements() as after:
        assert found.author.name == "Ann"
    assert after == []


def test_queries_that_cannot_be_served_are_refused(memory: World):
    with pytest.raises(NotSupported, match="GROUP BY"):
        query(memory).group_by(Video.id).first_reserved(KEY)
    with pytest.raises(NotSupported, match="FromStatement"):
        query(memory).from_statement(text("SELECT * FROM videos")).first_reserved(KEY)
    session = memory.session(query_cls=ReservableQuery)
    with pytest.raises(NotSupported, match="bare columns"):
        session.query(Video.id).first_reserved(KEY)  # type: ignore[attr-defined]


def test_flask_sqlalchemy_models_have_it_on_their_query(world: World):
    app = flask.Flask(__name__)
    url = world.engine.url.render_as_string(hide_password=False)
    app.config["SQLALCHEMY_DATABASE_URI"] = url
    db = SQLAlchemy(app, query_class=ReservableQuery)  # type: ignore[arg-type]

    class Clip(Reservable, db.Model):  # type: ignore[name-defined,misc]
        __tablename__ = "flask_clips"
        id = db.Column(db.Integer, primary_key=True)
        path = db.Column(db.String(50))

    with app.app_context():
        try:
            db.create_all()
            db.session.add_all([Clip(id=1), Clip(id=2)])
            db.session.commit()
            free = Clip.query.filter(Clip.path.is_(None)).order_by(Clip.id)
            first = free.first_reserved(KEY, "1 hour")
            assert first.id == 1
            assert first in db.session
            second: Any = first_reserved(db.session, db.select(Clip).order_by(Clip.id), KEY)
            assert second.id == 2
            assert free.first_reserved(KEY) is None
            assert first.release(KEY)
        finally:
            db.session.remove()
            db.drop_all()
            close_own_connections(db.engine)
            db.engine.dispose()


def test_sqlmodel_sessions_and_classes_will_do(world: World):
    registry: Any = sqlmodel.main.default_registry.__class__()

    class Base(sqlmodel.SQLModel, registry=registry):
        pass

    class Clip(Reservable, Base, table=True):
        __tablename__ = "sqlmodel_clips"
        id: int | None = sqlmodel.Field(default=None, primary_key=True)
        path: str | None = sqlmodel.Field(default=None, max_length=50)

    Clip.__table__.create(world.engine)  # type: ignore[attr-defined]
    try:
        with sqlmodel.Session(world.engine) as session:
            session.add_all([Clip(id=1), Clip(id=2, path="/x")])
            session.commit()
            statement = sqlmodel.select(Clip).where(sqlmodel.col(Clip.path).is_(None))
            found = first_reserved(session, statement, KEY)
            assert found is not None
            assert found.id == 1
            assert first_reserved(session, statement, KEY) is None
            assert found.release(KEY)
    finally:
        Clip.__table__.drop(world.engine)  # type: ignore[attr-defined]
