"""Whether the app of the table of reservations is installed: the table is Django's only then."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, Tags, register

from reservable.config import fixed_store
from reservable.errors import ConfigurationError, ReservableError

APP = "reservable.django"

ADVICE = (
    f"Add {APP!r} to it and run manage.py migrate; or say where reservations live, by reservable.configure() in the "
    "ready() of an app or by RESERVABLE_URL in the environment."
)


def must_be_installed() -> None:
    """Raises `ConfigurationError` where the app is not installed."""
    if not apps.is_installed(APP):
        raise ConfigurationError(
            f"{APP!r} is not in INSTALLED_APPS, so there is no table for reservations. {ADVICE}"
        )


def check_installed(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E004: reservations of a model need the table, and the app of the table is not installed."""
    if apps.is_installed(APP):
        return []
    return [
        Error(
            f"{APP!r} is not in INSTALLED_APPS, so there is no table for the reservations of this model.",
            hint=ADVICE,
            obj=model,
            id="reservable.E004",
        )
        for model in apps.get_models()
        if _needs_the_table(model)
    ]


def check_templates(model_admin: Any) -> list[CheckMessage]:
    """E005: a page of the admin needs the templates of the app, and it is not installed."""
    if apps.is_installed(APP):
        return []
    hint = f"Add {APP!r} to it."
    told = f"{APP!r} is not in INSTALLED_APPS, so there are no templates for QueuedAdmin."
    return [Error(told, hint=hint, obj=type(model_admin), id="reservable.E005")]


def _needs_the_table(model: Any) -> bool:
    from reservable.django.mixin import Reservable

    if not issubclass(model, Reservable):
        return False
    try:
        return fixed_store(model) is None
    except ReservableError:
        return False  # a store was named, and whoever reserves is told what is wrong with it


register(check_installed, Tags.models)  # here, for the app that would do it is what may be missing
