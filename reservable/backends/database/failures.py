"""What a driver or SQLAlchemy raised, as an error or a signal of ours, without the password."""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import SQLAlchemyError

from reservable.backends.database.dialects import Trouble, trouble
from reservable.errors import BackendError
from reservable.retrying import Contended, LostReply


class NoTable(BackendError):
    """The table of reservations is not there (yet)."""


def explained(error: SQLAlchemyError, dialect: Dialect, url: URL) -> Exception:
    """What to raise for an error that came through SQLAlchemy."""
    original = getattr(error, "orig", None)
    if original is None:
        return BackendError(f"the database {shown(url)} failed: {error}")
    if getattr(error, "connection_invalidated", False):
        return translated(Trouble.LOST, original, url)
    return translated(trouble(dialect, original, None, None), original, url)


def translated(found: Trouble, error: Any, url: URL) -> Exception:
    """The signal or the error for one kind of trouble, with the driver's error as its cause."""
    said = f"the database {shown(url)} failed: {error}"
    if found is Trouble.CONTENDED and url.get_backend_name() == "sqlite":
        said = f"{said} (does this process itself hold an uncommitted write, or an unfinished read, of the file?)"
    failure = (NoTable if found is Trouble.NO_TABLE else BackendError)(said)
    failure.__cause__ = error
    signals = {Trouble.CONTENDED: Contended, Trouble.LOST: LostReply}
    return signals[found](failure) if found in signals else failure


def shown(url: URL) -> str:
    """The database's URL without its password, and without its query, where there may be another."""
    return url.set(query={}).render_as_string(hide_password=True)


def driver_error(dialect: Dialect) -> type[Exception]:
    """The root of the errors that this dialect's driver raises."""
    return dialect.dbapi.Error  # type: ignore[union-attr]
