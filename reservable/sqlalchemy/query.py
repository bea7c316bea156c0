"""`ReservableQuery`: the finding functions as methods, for code that speaks `session.query(...)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from sqlalchemy.orm import Query

from reservable.sqlalchemy import finding

T = TypeVar("T")


class ReservableQuery(Query[T]):
    """A `Query` that can reserve what it finds: `Session(engine, query_cls=ReservableQuery)`.

    With Flask-SQLAlchemy: `SQLAlchemy(query_class=ReservableQuery)`.
    """

    @property
    def _asked(self) -> Any:
        return self.statement  # typed as whatever a Query can be: `finding` refuses what it cannot serve

    def first_reserved(self, key: Any, duration: Any = 60) -> T | None:
        """As the function `first_reserved`, of this query's rows."""
        return finding.first_reserved(self.session, self._asked, key, duration)

    def take_reserved(self, key: Any, duration: Any = 60, *, limit: int) -> list[T]:
        """As the function `take_reserved`, of this query's rows."""
        return finding.take_reserved(self.session, self._asked, key, duration, limit=limit)

    def each_reserved(self, key: Any, duration: Any = 60) -> Iterator[T]:
        """As the function `each_reserved`, of this query's rows."""
        return finding.each_reserved(self.session, self._asked, key, duration)
