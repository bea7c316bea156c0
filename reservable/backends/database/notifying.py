"""PostgreSQL's NOTIFY for one name: its channel, and where there is none."""

from __future__ import annotations

from hashlib import sha256

from sqlalchemy.engine import Dialect

from reservable.backends.database.dialects import kind
from reservable.backends.database.listening import ears
from reservable.errors import ConfigurationError


def channel_of(table: str, stored: str) -> str:
    """The channel on which the end of a stored name's reservation is told; `table` is the table's full name.

    A digest, for PostgreSQL's names of channels have 63 bytes.
    """
    return f"reservable_{sha256(f'{table}:{stored}'.encode()).hexdigest()[:32]}"


def check_notify(dialect: Dialect) -> None:
    """Refuse `notify` where the server or the driver cannot: `ConfigurationError`."""
    if dialect.name != "postgresql":
        raise ConfigurationError(
            f"notify=True needs PostgreSQL's LISTEN and NOTIFY, and this database is {kind(dialect)}: leave it out"
        )
    drivers = ears(dialect.is_async)
    if dialect.driver not in drivers:
        raise ConfigurationError(
            f"notify=True cannot listen with the driver {dialect.driver!r}: use {' or '.join(drivers)}, or leave it out"
        )
