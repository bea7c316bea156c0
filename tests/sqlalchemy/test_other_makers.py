"""Model classes and sessions that other packages make: SQLModel, Flask-SQLAlchemy, dataclasses, scoped sessions."""

from __future__ import annotations

import flask
import pytest
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlmodel import Field, SQLModel, select
from sqlmodel import Session as SQLModelSession

from reservable import Reservable
from tests.sqlalchemy.models import Point, Video


class Hero(Reservable, SQLModel, table=True):
    id: int | None = Field(default=None, primary_key=True)


class Villain(SQLModel, Reservable, table=True):
    id: int | None = Field(default=None, primary_key=True)


@pytest.mark.parametrize("model", [Hero, Villain])
def test_sqlmodel_classes(database, model):
    SQLModel.metadata.create_all(database.engine)
    with SQLModelSession(database.engine) as session:
        hero = model()
        session.add(hero)
        session.commit()
        session.refresh(hero)
        assert hero.reserve("save")
        assert hero.is_reserved("save")
        session.commit()  # a new snapshot
        assert session.exec(select(model).where(model.reserved("save"))).all() == [hero]
        assert session.exec(select(model).where(model.unreserved("save"))).all() == []
        assert "reserv" not in str(hero.model_dump())
        assert hero.release("save")


def test_flask_sqlalchemys_query_and_session(database):
    app = flask.Flask("app")
    app.config["SQLALCHEMY_DATABASE_URI"] = database.url
    db = SQLAlchemy(app)

    class Clip(Reservable, db.Model):  # type: ignore[name-defined,misc]
        id = db.Column(db.Integer, primary_key=True)

    with app.app_context():
        db.create_all()
        db.session.add(Clip())
        db.session.commit()
        clip = Clip.query.first()
        assert clip.reserve("download")
        db.session.commit()  # a new snapshot
        assert Clip.query.filter(Clip.unreserved("download")).all() == []
        assert Clip.query.filter(Clip.reserved("download")).all() == [clip]
        assert clip.release("download")
        db.session.remove()
        db.engine.dispose()


def test_flask_sqlalchemys_binds(database, tmp_path):
    app = flask.Flask("app")
    app.config["SQLALCHEMY_DATABASE_URI"] = f"sqlite:///{tmp_path}/main.sqlite"
    app.config["SQLALCHEMY_BINDS"] = {"clips": database.url}
    db = SQLAlchemy(app)

    class BoundClip(Reservable, db.Model):  # type: ignore[name-defined,misc]
        __bind_key__ = "clips"
        id = db.Column(db.Integer, primary_key=True)

    with app.app_context():
        db.create_all()
        db.session.add(BoundClip())
        db.session.commit()
        clip = BoundClip.query.first()
        assert clip.reserve("download")
        db.session.commit()
        assert BoundClip.query.filter(BoundClip.reserved("download")).all() == [clip]
        db.session.remove()
        for engine in db.engines.values():
            engine.dispose()


def test_a_scoped_session(database):
    scoped = scoped_session(sessionmaker(database.engine))
    scoped.add(Video())
    scoped.commit()
    video = scoped.query(Video).first()
    assert video is not None
    assert video.reserve("scoped")
    assert video.release("scoped")
    scoped.remove()


def test_dataclasses_that_cannot_be_hashed(database):
    with Session(database.engine) as session:
        point = Point(x=3)
        session.add(point)
        session.commit()
        with pytest.raises(TypeError):
            hash(point)
        assert point.reserve("move")
        assert not point.reserve("move")
        session.commit()
        assert session.query(Point).where(Point.reserved("move")).all() == [point]
        assert "token" not in repr(point)
        assert point.release("move")
