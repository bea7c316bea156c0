"""The table of a queue is the same on either side, and migrations know all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, String, inspect
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reservable import Backoff, Queued, QueueOptions


class Base(DeclarativeBase):
    pass


class Job(Queued, Base):
    """`shop.Job`, as SQLAlchemy has it."""

    __tablename__ = "shop_job"
    __queue__ = QueueOptions(max_attempts=2, backoff=Backoff(base="1 hour", factor=1, jitter=0))

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(50))
    channel_id: Mapped[int | None]


def layout(engine: Engine) -> Any:
    """Names, types and NULL of the queue's columns."""
    kept = [name for name in Job.__table__.columns.keys() if name not in ("id", "title", "channel_id")]  # noqa: SIM118 - of columns
    found = {column["name"]: column for column in inspect(engine).get_columns("shop_job")}
    return {name: (_kind(found[name]["type"]), found[name]["nullable"]) for name in kept}


def _kind(type_: Any) -> str:
    kind = str(type_.as_generic()).upper()
    return kind.replace("SMALLINT", "INTEGER")


def test_the_columns_and_the_index_are_the_same(
    alias: str, project: Any, make_engine: Callable[..., Engine], fresh_database: Callable[[str], str]
) -> None:
    ours = make_engine(_url(project, alias))
    theirs = make_engine(fresh_database({"default": "sqlite"}.get(alias, alias)))
    Base.metadata.create_all(theirs)
    assert layout(ours) == layout(theirs)
    order = ["status", "priority", "retry_at", "id"]
    for engine in (ours, theirs):
        assert order in [index["column_names"] for index in inspect(engine).get_indexes("shop_job")]


def test_one_table_serves_workers_of_both(
    alias: str, project: Any, make_engine: Callable[..., Engine]
) -> None:
    from tests.django.shop.models import Job as ModelJob

    ModelJob.objects.create(title="made by Django")
    with Session(make_engine(_url(project, alias))) as session:
        session.add(Job(title="made by SQLAlchemy"))
        session.commit()
        [first] = Job.claim(session)
        [second] = ModelJob.objects.claim()
        assert ModelJob.objects.claim() == Job.claim(session) == []
        first.fail(ZeroDivisionError("no"))
        second.complete(title="done")
        session.rollback()
        assert ModelJob.objects.get(pk=first.pk[0]).last_error["type"] == "ZeroDivisionError"
        assert session.get_one(Job, second.pk[0]).title == "done"
        session.rollback()
        assert ModelJob.objects.get(pk=first.pk[0]).cancel()
        assert session.get_one(Job, first.pk[0]).retry(session)
        session.commit()
    assert ModelJob.objects.get(pk=first.pk[0]).status == "pending"


def _url(project: Any, alias: str) -> str:
    settings = project[alias]
    if alias == "default":
        return f"sqlite:///{settings['NAME']}"
    driver = {"postgresql": "postgresql+psycopg", "mariadb": "mariadb+pymysql"}[alias]
    password = f":{settings['PASSWORD']}" if settings["PASSWORD"] else ""
    place = f"{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"
    return f"{driver}://{settings['USER']}{password}@{place}"


@pytest.mark.parametrize("name", ["Job", "Kept", "Stage"])
def test_a_migration_makes_the_model_as_it_is(name: str, sqlite: str) -> None:
    from django.db.migrations.state import ModelState
    from django.db.migrations.writer import MigrationWriter

    from tests.django.shop import models

    model = getattr(models, name)
    state = ModelState.from_model(model)
    assert all("Queued" not in str(base) for base in state.bases)
    assert [[*index.fields] for index in state.options["indexes"]] == [
        ["status", "priority", "retry_at", "id"]
    ]
    for field in model._meta.local_fields:
        text, imports = MigrationWriter.serialize(field)
        namespace: dict[str, Any] = {}
        exec("\n".join([*imports, "from django.db import models", f"made = {text}"]), namespace)
        assert namespace["made"].deconstruct()[1:] == field.deconstruct()[1:]


def test_a_table_that_has_rows_becomes_a_queue(alias: str) -> None:
    from django.db import connections
    from django.db import models as django_models
    from django.db.migrations import AddField, AddIndex, CreateModel, DeleteModel
    from django.db.migrations.state import ProjectState

    from tests.django.shop.models import Job as ModelJob

    connection, state = connections[alias], ProjectState()

    def apply(operation: Any) -> None:
        nonlocal state
        after = state.clone()
        operation.state_forwards("shop", after)
        with connection.schema_editor() as editor:
            operation.database_forwards("shop", editor, state, after)
        state = after

    fields = [("id", django_models.BigAutoField(primary_key=True)), ("title", django_models.TextField())]
    apply(CreateModel("Old", fields))
    old = state.apps.get_model("shop", "Old").objects.using(alias)
    old.bulk_create([old.model(title=title) for title in "ab"])
    for field in ModelJob._meta.local_fields:
        if field.name not in ("id", "title", "channel"):
            apply(AddField("old", field.name, field.clone()))
    [index] = ModelJob._meta.indexes
    named = index.clone()
    named.name = "shop_old_queue"
    apply(AddIndex("old", named))
    try:
        found = state.apps.get_model("shop", "Old").objects.using(alias)
        rows = [(row.status, row.lease_token, row.attempts, row.errors) for row in found.all()]
        assert rows == [("pending", 0, 0, [])] * 2
        assert found.filter(retry_at=None).count() == 0
    finally:
        apply(DeleteModel("Old"))
