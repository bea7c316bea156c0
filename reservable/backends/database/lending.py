"""What the statements ask of whoever has connections to the database."""

# The methods of a protocol are their docstrings.
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from sqlalchemy import URL
from sqlalchemy.engine import Dialect

T = TypeVar("T")


class Lender(Protocol):
    """Lends driver's connections in autocommit."""

    @property
    def dialect(self) -> Dialect:
        """The server's SQL; it knows the server's version once something was lent."""

    @property
    def url(self) -> URL:
        """Where the server is, for people."""

    def lend(self, work: Callable[[Any], T]) -> T:
        """What the work does with a driver's connection; a broken one is thrown away.

        Raises `BackendError`, or a signal where asking again can help.
        """

    def apart(self) -> Any:
        """A driver's connection that the taker closes, for as long as he likes; raises the driver's errors."""

    def pause(self, seconds: float) -> None:
        """Do nothing for a while."""

    def close(self) -> None:
        """Close what is idle."""
