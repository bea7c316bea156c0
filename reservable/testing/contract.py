"""The contract of `Backend` as one class of tests, to be inherited once for every store."""

from __future__ import annotations

import time

import pytest

from reservable.backends.base import Backend
from reservable.errors import BackendError
from reservable.grants import Released
from reservable.testing.ending import Ending
from reservable.testing.granting import Granting
from reservable.testing.looking import Looking
from reservable.testing.racing import Racing
from reservable.testing.store import MINUTE, NAME, OWNER, every_verb, taken, token
from reservable.testing.telling import Telling


class BackendContract(Granting, Ending, Looking, Telling, Racing):
    """Whatever a user may rely on, whichever store it is.

    The tests use the `Backend` protocol and nothing else, so that a store with another way of being called
    can pass them through an adapter.
    """

    def test_it_is_a_backend(self, backend: Backend) -> None:
        assert isinstance(backend, Backend)
        assert backend.prefix == ""
        flags = backend.capabilities
        assert {type(flags.shared), type(flags.durable), type(flags.joinable), type(flags.tells)} == {bool}

    def test_granted_refused_over_and_taken_are_told_apart(self, backend: Backend, second: Backend) -> None:
        mine, theirs = token(), token()
        assert backend.release(NAME, mine) is Released.NOT_HELD
        assert backend.extend(NAME, mine, MINUTE) is None
        assert backend.acquire(NAME, mine, OWNER, MINUTE) is not None
        assert second.acquire(NAME, theirs, OWNER, MINUTE) is None
        assert second.release(NAME, theirs) is Released.BY_ANOTHER
        assert second.extend(NAME, theirs, MINUTE) is None
        assert backend.release(NAME, mine) is Released.YES
        assert backend.release(NAME, mine) is Released.NOT_HELD

    def test_a_store_that_is_not_there_is_an_error_and_no_answer(
        self, backend: Backend, request: pytest.FixtureRequest
    ) -> None:
        if not backend.capabilities.shared:
            return  # nothing between us and our own memory
        unreachable: Backend = request.getfixturevalue("unreachable")
        for verb, call in every_verb(unreachable).items():
            asked = time.monotonic()
            with pytest.raises(BackendError) as caught:
                call()
            assert caught.value.__cause__ is not None, verb
            assert time.monotonic() - asked < 7, verb

    def test_closing_ends_no_reservation(self, backend: Backend, second: Backend) -> None:
        grant = taken(backend)
        backend.close()
        held = second.holder(NAME)
        assert held is not None
        assert held.fence == grant.fence
