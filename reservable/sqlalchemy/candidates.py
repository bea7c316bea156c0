"""What a caller's statement asks for: which entity, which rows in which order, and what cannot be served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, inspect, or_, tuple_
from sqlalchemy.orm import Mapper

from reservable.errors import NotSupported
from reservable.sqlalchemy.identity import Identity, identity_of


class Candidates:
    """A select of one mapped entity, taken apart.

    Raises `NotSupported`, naming the clause, for statements whose rows are not rows of one table.
    """

    def __init__(self, statement: Any) -> None:
        if not isinstance(statement, Select):
            raise NotSupported(f"give select(Model)…, not {type(statement).__name__}")
        described = statement.column_descriptions
        if len(described) != 1 or described[0]["expr"] is not described[0]["entity"] or not described[0]["entity"]:
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
        self.statement: Select[Any] = statement
        self.entity: Any = described[0]["entity"]
        inspected: Any = inspect(self.entity)
        self.mapper: Mapper[Any] = inspected.mapper
        self.identity: Identity = identity_of(self.mapper)
        self.attributes = [getattr(self.entity, key) for key in self.identity.attributes]
        self.bounded = statement._limit_clause is not None or statement._offset_clause is not None
        self.distinct = bool(statement._distinct)
        self.joined = bool(statement._setup_joins or statement._from_obj) or len(self.keys().get_final_froms()) > 1

    def keys(self) -> Select[Any]:
        """The primary keys of the statement's rows, in its order."""
        keys = self.statement.with_only_columns(*self.attributes)
        # Loading options speak of an entity that is not selected here; criteria still filter.
        keys._with_options = tuple(option for option in keys._with_options if option._is_criteria_option)
        return keys

    def ordered_keys(self) -> Select[Any]:
        """As `keys`, for a statement whose order may only name what it selects (DISTINCT)."""
        if not self.distinct:
            return self.keys()
        inner = self.statement.with_only_columns(*self.attributes, *self.statement._order_by_clauses)
        inner._with_options = tuple(option for option in inner._with_options if option._is_criteria_option)
        return inner

    def again(self, keys: Sequence[tuple[Any, ...]]) -> Select[Any]:
        """The statement for these rows alone, to be read once more; what bounded it has done its work."""
        return self.statement.limit(None).offset(None).where(self._among(keys))

    def without(self, statement: Select[Any], keys: Sequence[tuple[Any, ...]]) -> Select[Any]:
        """The statement less these rows."""
        return statement.where(~self._among(keys)) if keys else statement

    def _among(self, keys: Sequence[tuple[Any, ...]]) -> ColumnElement[bool]:
        if len(self.attributes) == 1:
            column = self.attributes[0]
            if len(keys) == 1:
                return column == keys[0][0]  # type: ignore[no-any-return]
            return column.in_([key[0] for key in keys])  # type: ignore[no-any-return]
        if len(keys) == 1:
            return tuple_(*self.attributes) == tuple_(*keys[0])
        return or_(*(tuple_(*self.attributes) == tuple_(*key) for key in keys))
