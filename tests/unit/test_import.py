"""`import reservable` is light: names are loaded when first used, and no driver and no ORM before that."""

from __future__ import annotations

import subprocess
import sys

import pytest

import reservable

HEAVY = {"sqlalchemy", "redis", "psycopg", "pymysql", "django", "sqlite3", "asyncio"}

PROMISED = {
    "Reservable",
    "ReservableQuery",
    "Queued",
    "QueueOptions",
    "Backoff",
    "Snooze",
    "Retry",
    "Cancel",
    "Status",
    "Lease",
    "AsyncLease",
    "LeaseLost",
    "NotClaimable",
    "configure",
    "reservation",
    "first_reserved",
    "take_reserved",
    "each_reserved",
    "first_reserved_of",
    "areservation",
    "afirst_reserved",
    "atake_reserved",
    "aeach_reserved",
    "afirst_reserved_of",
    "reserving",
    "SKIPPED",
    "Backend",
    "AsyncBackend",
    "Reservation",
    "AsyncReservation",
    "Holder",
    "ReservableError",
    "InvalidDuration",
    "InvalidKey",
    "InvalidHandle",
    "UnidentifiedInstance",
    "AlreadyReserved",
    "ReservationLost",
    "BackendError",
    "NotSupported",
    "ConfigurationError",
}


def loaded_by(code: str) -> set[str]:
    """Return the top-level packages that a fresh interpreter has loaded after running the code."""
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in run.stdout.split()}


def test_import_loads_no_driver_and_no_orm() -> None:
    assert not loaded_by("import reservable") & HEAVY


def test_an_error_is_loaded_without_an_orm() -> None:
    assert not loaded_by("from reservable import AlreadyReserved, ReservableError") & HEAVY


@pytest.mark.parametrize("mixin", ["Reservable", "Queued"])
def test_a_model_needs_no_driver(mixin: str) -> None:
    assert not loaded_by(f"from reservable import {mixin}") & {"redis", "psycopg", "pymysql", "django"}


def test_every_promised_name_is_public() -> None:
    assert set(reservable.__all__) >= PROMISED


@pytest.mark.parametrize("name", reservable.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(reservable, name) is not None
    assert name in dir(reservable)


@pytest.mark.parametrize(
    "name", [name for name in reservable.__all__ if not name.startswith(("Invalid", "Not"))]
)
def test_every_public_name_resolves_first(name: str) -> None:
    # In an interpreter of its own: no name may lean on another that was loaded before it.
    loaded_by(f"from reservable import {name}")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = reservable.nonsense


def test_importing_everything_brings_what_is_listed() -> None:
    names: dict[str, object] = {}
    exec("from reservable import *", names)
    assert set(names) >= set(reservable.__all__)


def test_blocking_code_needs_no_greenlet():
    code = """
import sys
sys.modules["greenlet"] = None
import reservable
for name in reservable.__all__:
    getattr(reservable, name)
from sqlalchemy import create_engine
assert reservable.configure(create_engine("sqlite:///x.sqlite")).capabilities.durable
try:
    reservable.areservation("nightly")
except reservable.ConfigurationError as error:
    assert "greenlet" in str(error), error
else:
    raise AssertionError("awaits without greenlet")
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
