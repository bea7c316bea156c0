"""What a caller's statement asks for: which entity, which rows in which order, and what cannot be served."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, inspect, or_
from sqlalchemy.orm import Mapper, ORMExecuteState, Session
from sqlalchemy.sql.util import unwrap_order_by

from reservable.errors import NotSupported
from reservable.sqlalchemy.identity import Identity, identity_of
from reservable.sqlalchemy.mixin import must_be_reservable

_AT_ONCE = {"stream_results": False, "yield_per": None}
"""Results come whole: one that is fetched in pieces needs a transaction, and the connection until its end."""


_EXTENSIONS = ("post_select", "pre_columns", "post_criteria", "post_body")


class _Reached(Exception):
    """Carries a statement out of the session that was about to execute it."""

    def __init__(self, statement: Any) -> None:
        super().__init__()
        self.statement = statement


def as_executed(session: Session, statement: Any) -> Any:
    """The statement with what the session's `do_orm_execute` listeners add to it: tenants, soft deletion."""
    if not isinstance(statement, Select) or not session.dispatch.do_orm_execute:
        return statement

    def stop(state: ORMExecuteState) -> None:
        raise _Reached(state.statement)

    try:
        Session.execute(session, statement, _add_event=stop)  # behind all others; nothing is executed
    except _Reached as reached:
        return reached.statement
    return statement  # a listener that answers by itself, from a cache


class Candidates:
    """A select of one mapped entity, taken apart.

    Raises `NotSupported`, naming the clause, for statements whose rows are not rows of one table.
    """

    def __init__(self, statement: Any) -> None:
        if not isinstance(statement, Select):
            raise NotSupported(f"give select(Model)…, not {type(statement).__name__}")
        described = statement.column_descriptions
        if (
            len(described) != 1
            or not described[0].get("entity")  # which bare SQL has not
            or described[0]["expr"] is not described[0]["entity"]
        ):
            raise NotSupported(
                "the statement must select one mapped entity and nothing else, as select(Video): several entities, "
                "bare columns and aggregates are not rows that can be reserved"
            )
        for clause, present in (
            ("GROUP BY", bool(statement._group_by_clauses)),
            ("HAVING", bool(statement._having_criteria)),
            ("FOR UPDATE", statement._for_update_arg is not None),
        ):
            if present:
                raise NotSupported(f"a statement with {clause} cannot be reserved from: leave {clause} out")
        self.bounded = _is_bounded(statement)
        """Whether a row belongs to the statement for the sake of the rows beside it: it is asked for as it is."""
        statement = statement.execution_options(**_AT_ONCE)
        self.statement: Select[Any] = statement if self.bounded else _repeating(statement)
        self.entity: Any = described[0]["entity"]
        inspected: Any = inspect(self.entity)
        self.mapper: Mapper[Any] = inspected.mapper
        must_be_reservable(self.mapper.class_)
        self.identity: Identity = identity_of(self.mapper)
        self.attributes = [getattr(self.entity, key) for key in self.identity.attributes]

    @cached_property
    def joined(self) -> bool:
        """Whether the statement reads other tables too, which may repeat a row."""
        statement: Any = self.statement
        return bool(statement._setup_joins or statement._from_obj) or len(self.keys().get_final_froms()) > 1

    @cached_property
    def cache_key(self) -> Any:
        """What SQLAlchemy's cache of compiled statements knows the statement by; None for one it cannot keep."""
        return self.statement._generate_cache_key()

    @property
    def alone(self) -> bool:
        """Whether the statement must be one of its own: inside another, SQLAlchemy forgets `with_loader_criteria`."""
        return self.bounded or _has_criteria(self.statement)

    def key(self, name: str) -> tuple[Any, ...]:
        """The primary key in a name that SQL has computed, as the columns' types have it in Python."""
        parts = zip(self.identity.columns, self.identity.values(name), strict=True)
        return tuple(str(value) if column.type.python_type is str else value for column, value in parts)

    def keys(self) -> Any:
        """The primary keys of the statement's rows, in its order."""
        return self.statement.with_only_columns(*self.attributes)

    def ordered_keys(self) -> Any:
        """As `keys`, with more columns behind them where the order may only name what is selected (DISTINCT)."""
        order = self.statement._order_by_clauses if self.statement._distinct else ()
        columns = [column for clause in order for column in unwrap_order_by(clause)]
        return self.statement.with_only_columns(*self.attributes, *columns)

    def again(self, keys: Sequence[tuple[Any, ...]]) -> Select[Any]:
        """The statement for these rows alone, to be read once more; what bounded it has done its work."""
        return _repeating(self.statement.limit(None).offset(None).where(self._among(keys)))

    def without(self, statement: Select[Any], keys: Sequence[tuple[Any, ...]]) -> Select[Any]:
        """The statement less these rows."""
        return statement.where(~self._among(keys)) if keys else statement

    def _among(self, keys: Sequence[tuple[Any, ...]]) -> ColumnElement[bool]:
        if len(self.attributes) == 1 and len(keys) > 1:
            return self.attributes[0].in_([key[0] for key in keys])  # type: ignore[no-any-return]
        # Part by part: a tuple's values would be sent as their Python types say, not as the columns' types do.
        return or_(
            *(
                and_(*(part == value for part, value in zip(self.attributes, key, strict=True)))
                for key in keys
            )
        )


def _has_criteria(statement: Any) -> bool:
    places = (statement, *statement._memoized_select_entities)
    return any(option._is_criteria_option for place in places for option in place._with_options)


def _is_bounded(statement: Any) -> bool:
    return (
        statement._limit_clause is not None or statement._offset_clause is not None or _is_extended(statement)
    )


def _is_extended(statement: Any) -> bool:
    """Whether it has PostgreSQL's DISTINCT ON, or what else SQLAlchemy 2.1 lets others add to its syntax."""
    return bool(statement._distinct_on) or any(
        getattr(statement, f"_{place}_clause", None) is not None for place in _EXTENSIONS
    )


def _repeating(statement: Select[Any]) -> Select[Any]:
    """The statement without DISTINCT, which cannot compare every type: a row that comes twice is one object."""
    if not statement._distinct or _is_extended(statement):
        return statement
    repeating = statement.where()
    repeating._distinct = False
    return repeating
