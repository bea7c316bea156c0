"""One Django project for all tests here, on an SQLite file and on the servers that are there."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import reservable
from tests.django.project import CONTRIB, Databases, Router, configure, database, migrate, pointed
from tests.servers import ServerMissing
from tests.stores import Stores

HURRY = "PRAGMA synchronous = OFF"
"""The waiting for the disk is left out."""

Twice = Callable[..., None]
"""`twice(base, kind, body, **attributes)`: see the fixture."""

ALIASES = {"sqlite": "default", "postgresql": "postgresql", "mariadb": "mariadb"}


@pytest.fixture(scope="session")
def databases(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """DATABASES: `default` and `other` are SQLite files, `memory` is in memory, the others are servers."""
    folder = tmp_path_factory.mktemp("django")
    found = {
        "default": database(f"sqlite:///{folder / 'default.sqlite'}", init_command=HURRY),
        "other": database(f"sqlite:///{folder / 'other.sqlite'}", init_command=HURRY),
        "memory": database("sqlite:///:memory:"),
    }
    with ExitStack() as stack:
        for kind in ("postgresql", "mariadb"):
            try:
                found[kind] = database(stack.enter_context(stores.fresh(kind)))
            except ServerMissing:
                continue
        yield found


@pytest.fixture(scope="session")
def project(databases: Databases) -> Iterator[Databases]:
    """The project, set up and migrated."""
    configure(databases)
    for alias in databases:
        migrate(alias)
    from reservable import config

    config._fallbacks.clear()  # other tests of this process have no framework: `framework` puts it back for ours
    yield databases
    close_everything()


@pytest.fixture(autouse=True)
def framework(project: Databases, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names without a model live in Django's database, as in any process that has set Django up."""
    from reservable import config
    from reservable.django import homes

    monkeypatch.setattr(config, "_fallbacks", [homes.default_store])


def close_everything() -> None:
    from django.db import connections

    from reservable.django.companions import close_all

    close_all()
    connections.close_all()


@pytest.fixture
def closed(project: Databases) -> Iterator[None]:
    """No connection is left open."""
    yield
    close_everything()


@pytest.fixture
def clean(project: Databases) -> Iterator[None]:
    """Nothing configured, no rows, and no connection left from before."""
    from django.apps import apps
    from django.db import connections

    reservable.configure(None)
    yield
    opened = {one.alias for one in connections.all(initialized_only=True) if one.connection is not None}
    for alias in opened | Router.used & {*project}:
        for model in reversed([*apps.get_models()]):
            if model._meta.app_label not in CONTRIB:
                model._base_manager.using(alias)._raw_delete(alias)
    Router.used.clear()
    reservable.configure(None)
    close_everything()


@pytest.fixture(params=ALIASES)
def alias(request: pytest.FixtureRequest, clean: None, project: Databases) -> Iterator[str]:
    """Each kind of database in turn, to which everything goes."""
    if ALIASES[request.param] not in project:
        request.getfixturevalue(f"{request.param}_url")  # skips, and says which server is missing
    with pointed(writes=ALIASES[request.param]):
        yield ALIASES[request.param]


@pytest.fixture
def sqlite(clean: None) -> Iterator[str]:
    """SQLite alone, for what is the same everywhere."""
    with pointed(writes="default"):
        yield "default"


@pytest.fixture
def videos(alias: str) -> Callable[[int], list[Any]]:
    """Make so many rows."""
    from tests.django.shop.models import Video

    def make(count: int) -> list[Any]:
        return [Video.objects.create(place=place) for place in range(count)]

    return make


@pytest.fixture
def twice(project: Databases, request: pytest.FixtureRequest) -> Twice:
    """Have two tests of one of Django's classes do the same on a database, so that the second sees what the first left."""

    def perform(base: str, kind: str, body: Callable[[Any], None], **attributes: Any) -> None:
        import django.test

        if kind not in project:
            request.getfixturevalue(f"{kind}_url")  # skips, and says which server is missing
        own = {"databases": {kind}, "test_one": body, "test_two": body, **attributes}
        case = type("Case", (getattr(django.test, base),), own)
        outcome = unittest.TestResult()
        with pointed(writes=kind):
            unittest.defaultTestLoader.loadTestsFromTestCase(case).run(outcome)
        assert outcome.testsRun == 2
        assert not outcome.errors + outcome.failures, [text for _, text in outcome.errors + outcome.failures]

    return perform
