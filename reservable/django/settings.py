"""The setting RESERVABLE of a project: where its reservations live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from reservable.backends.asynchronous import AsyncBackend
from reservable.backends.base import Backend
from reservable.config import configure
from reservable.errors import ConfigurationError
from reservable.names import check_prefix

NAME = "RESERVABLE"

KEYS = ("URL", "BACKEND", "PREFIX", "OWNER", "NOTIFY")
"""URL: what `configure` takes. BACKEND: a Backend, a redis client, a function that returns one, or its dotted path.
PREFIX, OWNER, NOTIFY: `configure`'s options of these names."""

_problems: list[ConfigurationError] = []
"""What is wrong with the setting, and then nothing works until it is mended: never another store in silence."""


def apply() -> None:
    """Configure what the setting says; what is wrong with it is kept for the checks and for whoever reserves."""
    _problems.clear()
    if not hasattr(settings, NAME):
        return
    try:
        arguments = read(getattr(settings, NAME))
        try:
            configure(**arguments)
        except ConfigurationError as error:
            raise ConfigurationError(f"{_blamed(getattr(settings, NAME))}{error}") from error
    except ConfigurationError as error:
        _problems.append(error)


def _blamed(value: Mapping[str, Any]) -> str:
    """The key that named the store; nothing where the environment did, which the error tells by itself."""
    key = next((key for key in ("URL", "BACKEND") if value.get(key) is not None), None)
    return f"{NAME}[{key!r}]: " if key is not None else ""


def problems() -> list[ConfigurationError]:
    """What is wrong with the setting."""
    return [*_problems]


def must_be_sound() -> None:
    """Raises `ConfigurationError` while something is wrong with the setting."""
    for problem in _problems:
        raise ConfigurationError(str(problem)) from problem


def read(value: Any) -> dict[str, Any]:
    """The arguments of `configure`. Raises `ConfigurationError` that names the key in the setting."""
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{NAME} is {type(value).__name__}: give a dict with some of {_listed()}")
    for key in value:
        if key not in KEYS:
            raise ConfigurationError(f"{NAME}[{key!r}] is unknown: the keys are {_listed()}")
    if value.get("URL") is not None and value.get("BACKEND") is not None:
        raise ConfigurationError(f"{NAME} has both 'URL' and 'BACKEND': give one of them")
    prefix, owner, notify = value.get("PREFIX", ""), value.get("OWNER"), value.get("NOTIFY", False)
    try:
        check_prefix(prefix)
    except ConfigurationError as error:
        raise ConfigurationError(f"{NAME}['PREFIX']: {error}") from error
    if owner is not None and not (isinstance(owner, str) and owner):
        raise ConfigurationError(f"{NAME}['OWNER'] is {owner!r}: give text that is not empty")
    if not isinstance(notify, bool):
        raise ConfigurationError(f"{NAME}['NOTIFY'] is {notify!r}: give True or False")
    return {"where": _where(value), "prefix": prefix, "owner": owner, "notify": notify}


def _where(value: Mapping[str, Any]) -> Any:
    url = value.get("URL")
    if url is not None and not (isinstance(url, str) and url):
        raise ConfigurationError(
            f"{NAME}['URL'] is {type(url).__name__}: give text, as 'redis://localhost:6379/0'"
        )
    return url if url is not None else _backend(value.get("BACKEND"))


def _backend(said: Any) -> Any:
    """What BACKEND means. Raises `ConfigurationError` for whatever goes wrong in the project's own code, too."""
    if said is None:
        return None
    where = said
    if isinstance(where, str):
        try:
            where = import_string(where)
        except Exception as error:
            raise ConfigurationError(f"{NAME}['BACKEND'] cannot be imported: {_told(error)}") from error
    if callable(where) and not isinstance(where, Backend | AsyncBackend):
        try:
            where = where()
        except Exception as error:
            raise ConfigurationError(f"{NAME}['BACKEND'] cannot be called: {_told(error)}") from error
    if where is None:
        raise ConfigurationError(f"{NAME}['BACKEND'] gave None: give a Backend or a redis client")
    return where


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _listed() -> str:
    return ", ".join(map(repr, KEYS))


def _changed(setting: str, **_: Any) -> None:
    """`override_settings` and its like."""
    if setting != NAME:
        return
    _problems.clear()
    try:
        configure(None)
    except ConfigurationError as error:  # of the environment
        _problems.append(error)
    else:
        apply()


setting_changed.connect(_changed)
