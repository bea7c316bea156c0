"""The statements of the table of reservations, one builder for every dialect.

A row whose `until` is past is over: it stays, so that the fence of its name never goes back, and is taken over
in place or pruned. Every verb is one atomic statement in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Executable,
    FromClause,
    Insert,
    String,
    Table,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    select,
    true,
    update,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite

from reservable.backends.database.clock import clock
from reservable.retrying import PATIENCE

COLUMNS = ("name", "token", "owner", "fence", "since", "until")

_FREED: dict[str, ColumnElement[Any]] = {"until": literal_column("0"), "token": literal_column("''")}

VERBS = (
    *("acquire", "standing", "extend", "extend_many", "extended", "release", "break_", "holder"),
    *("held", "by_token", "page", "over", "prune"),
)
"""The statements, by the attributes of `Statements`."""

READ_AFTER = {
    ("mysql", "acquire"): "standing",
    ("mysql", "extend_many"): "extended",
    ("mariadb", "extend_many"): "extended",
}
"""What is read after a statement by whose dialect it cannot return its rows; both take the same values."""

PAGE = 500
"""Rows that `list` and `prune` look at in one statement."""


def _text(name: str) -> Any:
    return bindparam(name, type_=String())


def _number(name: str) -> Any:
    return bindparam(name, type_=BigInteger())


class Statements:
    """Every statement of one table in one dialect, as SQLAlchemy Core with bind parameters.

    `name`, `token` and `owner` are text, `lifetime` is microseconds. With `notify`, what ends a reservation also
    tells PostgreSQL's `channel`.
    """

    def __init__(self, table: Table, dialect: str, *, notify: bool = False) -> None:
        self.table = table
        self.dialect = dialect
        self._notify = notify
        t = table.c
        live = t.until > clock()
        named = (t.name == _text("name")) & self._patient()
        mine = named & (t.token == _text("token")) & live
        self.acquire = self._acquire()
        self.extend = self._extend(mine)
        self.release = self._release(mine)
        self.break_ = self._freed(named & live)
        self.standing = select(*(t[c] for c in COLUMNS)).where(t.name == _text("name"))
        held = select(t.name, t.owner, t.fence, t.since, t.until, clock().label("now")).where(live)
        self.holder = held.where(t.name == _text("name"))
        self.page = held.where(t.name > _text("after"), t.name >= _text("low"), t.name < _text("high"))
        self.page = self.page.order_by(t.name).limit(PAGE)
        # A fence that lies ahead of the clock must not be forgotten, or the next one would be smaller.
        over = (t.until <= clock()) & (t.fence < clock())
        span = (t.name > _text("after")) & (t.name >= _text("low")) & (t.name < _text("high"))
        self.over = select(t.name).where(span, over).order_by(t.name).limit(PAGE)
        names = bindparam("names", expanding=True, type_=String())
        # Pairs as one text, which every dialect can look up in a list: no name has a space.
        pairs = bindparam("pairs", expanding=True, type_=String())
        ours = t.name.in_(names) & (t.name + literal_column("' '", String()) + t.token).in_(pairs) & live
        self.extended = select(t.name, t.until).where(ours)
        self.extend_many = self._extend_many(ours & self._patient())
        self.prune = delete(table).where(t.name.in_(names), over)
        tokens = bindparam("tokens", expanding=True, type_=String())
        self.by_token = select(*(t[c] for c in COLUMNS)).where(t.token.in_(tokens), live)
        self.held = select(*(t[c] for c in COLUMNS)).where(t.name.in_(names), live)

    def granting(self, rows: Any) -> Insert:
        """Insert the rows (in the order of COLUMNS), taking over what is over; returns what then stands.

        A name that somebody else holds stays as it is, and comes back with their token: so one statement
        both decides and says who won. Asked again with the token that holds, it changes nothing.
        """
        return self._upsert(self._insert().from_select(list(COLUMNS), rows))

    def _insert(self) -> Any:
        makers: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
        return makers.get(self.dialect, mysql.insert)(self.table)

    def _acquire(self) -> Insert:
        name, token, owner, lifetime = _text("name"), _text("token"), _text("owner"), _number("lifetime")
        if self.dialect == "postgresql":
            # Look before writing: a refusal then costs no write. The clock is read once, in a subquery of
            # its own, since clock_timestamp() moves while the statement runs.
            t = self.table.c
            now = self.now()
            theirs = exists().where(t.name == name, t.until > now.c.now, t.token != token)
            rows = select(name, token, owner, now.c.now, now.c.now, now.c.now + lifetime).where(~theirs)
            return self.granting(rows)
        values = {"name": name, "token": token, "owner": owner, "fence": clock(), "since": clock()}
        return self._upsert(self._insert().values(**values, until=clock() + lifetime))

    def now(self) -> FromClause:
        """A one-row table with the clock in its column `now`, read once a statement."""
        columns: list[Any] = [clock().label("now")]
        if self.dialect == "postgresql":
            columns.append(self._patient().label("patient"))
        return select(*columns).subquery("clock")

    def _patient(self) -> ColumnElement[bool]:
        """True, and on PostgreSQL no lock is waited for longer than our patience.

        In the statement, and to the end of its transaction only: what a session is told once would stay in a
        pooler's connection, for others to find.
        """
        return self._with_setting("lock_timeout", f"{PATIENCE:.0f}s")

    def _with_setting(self, name: str, value: str) -> ColumnElement[bool]:
        if self.dialect != "postgresql":
            return true()
        quoted: Iterator[Any] = (literal_column(f"'{text}'") for text in (name, value))
        return func.set_config(*quoted, literal_column("true")).is_not(None)

    def _upsert(self, statement: Any) -> Insert:
        t = self.table.c
        new = statement.inserted if self.dialect in ("mysql", "mariadb") else statement.excluded
        over = t.until <= new.since
        changes: dict[str, ColumnElement[Any]] = {
            "token": case((over, new.token), else_=t.token),
            "owner": case((over, new.owner), else_=t.owner),
            "since": case((over, new.since), else_=t.since),
            "fence": case((over, self._greatest(new.fence, t.fence + literal_column("1"))), else_=t.fence),
            # Last: MySQL evaluates from left to right, and all of the above ask for the old `until`.
            "until": case((over, new.until), else_=t.until),
        }
        if self.dialect in ("mysql", "mariadb"):
            statement = statement.on_duplicate_key_update(list(changes.items()))
        else:
            statement = statement.on_conflict_do_update(index_elements=["name"], set_=changes)
        if self.dialect == "mysql":
            return statement  # type: ignore[no-any-return]  # MySQL cannot return rows: `standing` is read after it
        return statement.returning(*(t[c] for c in COLUMNS))  # type: ignore[no-any-return]

    def _greatest(self, one: Any, other: Any) -> ColumnElement[Any]:
        return func.max(one, other) if self.dialect == "sqlite" else func.greatest(one, other)

    def _extend(self, mine: ColumnElement[bool]) -> Executable:
        until = clock() + _number("lifetime")
        if self.dialect in ("mysql", "mariadb"):
            # No UPDATE ... RETURNING: LAST_INSERT_ID(n) sends n back with the row count (MySQL manual,
            # "LAST_INSERT_ID([expr])"), as the cursor's lastrowid.
            return update(self.table).where(mine).values(until=func.last_insert_id(until))
        return update(self.table).where(mine).values(until=until).returning(self.table.c.until)

    def _extend_many(self, ours: ColumnElement[bool]) -> Executable:
        statement = update(self.table).where(ours).values(until=clock() + _number("lifetime"))
        if (self.dialect, "extend_many") in READ_AFTER:
            return statement
        return statement.returning(self.table.c.name, self.table.c.until)

    def _release(self, mine: ColumnElement[bool]) -> Executable:
        # Losing a release in a crash only means that its lifetime runs out, so it does not wait for the disk.
        return self._freed(mine & self._with_setting("synchronous_commit", "off"))

    def _freed(self, rows: ColumnElement[bool]) -> Executable:
        freed = update(self.table).where(rows).values(_FREED)
        if not self._notify:
            return freed
        # Computed for rows that were updated, and sent when they are committed: no waiter hears of it too soon.
        return freed.returning(func.pg_notify(_text("channel"), literal_column("''")))
