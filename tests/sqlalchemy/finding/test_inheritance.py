"""Classes that share rows share their reservations, however their tables are laid out."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import aliased, selectin_polymorphic, with_polymorphic

from reservable import first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Animal, Cat, Render, Task
from tests.sqlalchemy.finding.worlds import KEY, World, statements


def some_tasks(world: World) -> None:
    world.add(
        Task(id=1, due=3),
        Render(id=2, due=2, codec="av1"),
        Task(id=3, due=1),
        Render(id=4, due=4, codec=None),
    )


def test_a_subclass_with_a_table_of_its_own_is_found(dialect: World):
    some_tasks(dialect)
    session = dialect.session()
    statement = select(Render).order_by(Render.due)
    found = first_reserved(session, statement, KEY)
    assert isinstance(found, Render)
    assert (found.id, found.due, found.codec) == (2, 2, "av1")
    assert take_reserved(session, statement, KEY, limit=5)[0].id == 4
    assert first_reserved(session, statement, KEY) is None
    assert found.release(KEY)


def test_a_filter_on_the_subclass_holds(dialect: World):
    some_tasks(dialect)
    statement = select(Render).where(Render.codec.is_(None), Render.due > 1)
    assert first_reserved(dialect.session(), statement, KEY).id == 4  # type: ignore[union-attr]


def test_the_base_finds_objects_of_every_class(dialect: World):
    some_tasks(dialect)
    found = take_reserved(dialect.session(), select(Task).order_by(Task.due), KEY, limit=9)
    assert [(type(task).__name__, task.id) for task in found] == [
        ("Task", 3),
        ("Render", 2),
        ("Task", 1),
        ("Render", 4),
    ]
    assert found[1].codec == "av1"  # type: ignore[attr-defined]


def test_what_was_reserved_by_the_base_is_reserved_for_the_subclass(dialect: World):
    some_tasks(dialect)
    dialect.reserve(2, model=Task)
    assert first_reserved(dialect.session(), select(Render).order_by(Render.due), KEY).id == 4  # type: ignore[union-attr]
    assert [task.id for task in take_reserved(dialect.session(), select(Task), KEY, limit=9)] == [1, 3]


def test_columns_of_subclasses_can_be_loaded_with_the_base(apart: World):
    some_tasks(apart)
    every = with_polymorphic(Task, "*")
    found = first_reserved(apart.session(), select(every).where(every.Render.codec == "av1"), KEY)
    assert isinstance(found, Render)
    with statements() as after:
        assert found.codec == "av1"
    assert after == []
    statement = select(Task).where(Task.id == 4).options(selectin_polymorphic(Task, [Render]))
    found = first_reserved(apart.session(), statement, KEY)
    assert isinstance(found, Render)
    with statements() as after:
        assert found.codec is None
    assert after == []


def test_an_alias_of_a_subclass_is_found(dialect: World):
    some_tasks(dialect)
    render = aliased(Render)
    statement = select(render).where(render.codec == "av1", render.due == 2)
    assert first_reserved(dialect.session(), statement, KEY).id == 2  # type: ignore[union-attr]


def test_a_known_object_of_a_subclass_is_brought_up_to_date(some: World):
    some_tasks(some)
    session = some.session(expire_on_commit=False)
    known = session.get_one(Render, 2)
    session.commit()
    some.run("UPDATE renders SET codec = 'new' WHERE id = 2")
    some.run("UPDATE tasks SET due = 0 WHERE id = 2")
    assert first_reserved(session, select(Render).order_by(Render.due), KEY) is known
    assert (known.codec, known.due) == ("new", 0)


def test_classes_in_one_table_are_found_by_their_own_rows(dialect: World):
    dialect.add(Animal(id=1), Cat(id=2), Animal(id=3), Cat(id=4))
    session = dialect.session()
    assert [cat.id for cat in take_reserved(session, select(Cat).order_by(Cat.id), KEY, limit=1)] == [2]
    found = take_reserved(session, select(Animal).order_by(Animal.id), KEY, limit=9)
    assert [(type(animal).__name__, animal.id) for animal in found] == [
        ("Animal", 1),
        ("Animal", 3),
        ("Cat", 4),
    ]
    assert first_reserved(session, select(Cat), KEY) is None
