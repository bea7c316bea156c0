"""A Django project on the servers of the tests: settings, a router that can be pointed, and the tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import django
import pymysql
from django.conf import settings
from django.core.management import call_command
from sqlalchemy import make_url

ENGINES = {"sqlite": "sqlite3", "postgresql": "postgresql", "mariadb": "mysql"}

CONTRIB = ("admin", "auth", "contenttypes", "sessions")
"""Django's own apps with tables: for the tests of the admin."""

WEBSITE: dict[str, Any] = {
    "MIDDLEWARE": [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    "TEMPLATES": [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    "STATIC_URL": "static/",
}
"""What the admin needs beside its apps."""

Databases = dict[str, dict[str, Any]]


class Router:
    """Sends everything where the test says."""

    writes: ClassVar[str | None] = None
    reads: ClassVar[str | None] = None
    reservations: ClassVar[str | None] = None
    used: ClassVar[set[str]] = set()
    """Where something was written since this was emptied."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return self.reads or self.db_for_write(model, **hints)

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        own = self.reservations if model._meta.app_label == "reservable" else None
        alias = own or self.writes
        self.used.add(alias or "default")
        return alias

    def allow_migrate(self, db: str, app_label: str, **_: Any) -> bool | None:
        """The tables of Django's own apps are in one database, to save the time."""
        return db == "default" if app_label in CONTRIB else None

    def allow_relation(self, *_: Any, **__: Any) -> bool:
        return True


@contextmanager
def pointed(**aliases: str | None) -> Iterator[None]:
    """Point the router somewhere else for a while."""
    before = {name: getattr(Router, name) for name in aliases}
    for name, alias in aliases.items():
        setattr(Router, name, alias)
    try:
        yield
    finally:
        for name, alias in before.items():
            setattr(Router, name, alias)


def database(url: str, **options: Any) -> dict[str, Any]:
    """The entry of DATABASES for a URL as the other tests have it."""
    parsed = make_url(url)
    kind = parsed.get_backend_name()
    found: dict[str, Any] = {
        "ENGINE": f"django.db.backends.{ENGINES[kind]}",
        "NAME": parsed.database,
        "USER": parsed.username or "",
        "PASSWORD": parsed.password or "",
        "HOST": parsed.host or "",
        "PORT": str(parsed.port or ""),
        "OPTIONS": dict(options),
    }
    return found


def configure(databases: Databases, **more: Any) -> None:
    """Set Django up, once in a process."""
    if settings.configured:
        return
    pymysql.install_as_MySQLdb()
    pymysql.version_info = (2, 2, 7, "final", 0)  # as Django wants mysqlclient's
    values: dict[str, Any] = {
        "DATABASES": databases,
        "DATABASE_ROUTERS": ["tests.django.project.Router"],
        "INSTALLED_APPS": [
            *(f"django.contrib.{app}" for app in (*CONTRIB, "messages", "staticfiles")),
            "reservable.django",
            "tests.django.shop",
        ],
        "DEFAULT_AUTO_FIELD": "django.db.models.BigAutoField",
        "SECRET_KEY": "none",
        "USE_TZ": True,
        "ROOT_URLCONF": "tests.django.urls",
        "ALLOWED_HOSTS": ["*"],
        **WEBSITE,
    }
    settings.configure(**{**values, **more})
    django.setup()


def migrate(alias: str) -> None:
    """Make the tables."""
    with pointed(writes=alias):
        call_command("migrate", database=alias, run_syncdb=True, verbosity=0, skip_checks=True)
