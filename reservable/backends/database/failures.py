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


def explained(error: Exception, dialect: Dialect, url: URL) -> Exception:
    """What to raise for an error that came through SQLAlchemy, one of `core_errors`."""
    if not isinstance(error, SQLAlchemyError):
        return translated(trouble(dialect, error, None, None), error, url)
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


def driver_errors(dialect: Dialect) -> tuple[type[Exception], ...]:
    """What a failing database raises through this dialect's driver."""
    return (dialect.dbapi.Error, *_loop_errors(dialect))  # type: ignore[union-attr]


def core_errors(dialect: Dialect) -> tuple[type[Exception], ...]:
    """What a failing database raises through SQLAlchemy's connections."""
    return (SQLAlchemyError, *_loop_errors(dialect))


def _loop_errors(dialect: Dialect) -> tuple[type[Exception], ...]:
    """What the event loop raises and asyncio drivers let through, asyncpg's `command_timeout` among it."""
    return (OSError, EOFError) if dialect.is_async else ()
