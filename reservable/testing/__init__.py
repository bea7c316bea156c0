"""The suite that a store of reservations must pass, for pytest.

    from reservable.testing import BackendContract

    class TestMyStore(BackendContract):
        @pytest.fixture
        def backend(self):
            backend = MyBackend(...)      # on an empty store
            yield backend
            backend.close()

A backend for asyncio passes the same tests through an adapter:

            backend = blocking(MyAsyncBackend(...))

The docstrings of `reservable.testing.store.StoreFixtures` say which fixtures there are and which an heir must
override. Needs nothing but pytest.
"""

import pytest

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{module}"
        for module in ("store", "granting", "ending", "looking", "racing", "telling", "contract")
    )
)

from reservable.testing.colours import blocking  # noqa: E402 - as the next
from reservable.testing.contract import BackendContract  # noqa: E402 - asserts are rewritten on import
from reservable.testing.store import every_verb  # noqa: E402

__all__ = ["BackendContract", "blocking", "every_verb"]
