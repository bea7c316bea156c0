"""`run` in a thread of its own, for tests that look on."""

from __future__ import annotations

import threading
from typing import Any


class Running:
    """What it raised comes out in the end."""

    def __init__(self, model: type[Any], *arguments: Any, **options: Any) -> None:
        self.raised: BaseException | None = None

        def run() -> None:
            try:
                model.run(*arguments, **options)
            except BaseException as error:
                self.raised = error

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def end(self) -> None:
        """Wait until it has returned."""
        self._thread.join(20)
        assert not self._thread.is_alive()
        if self.raised is not None:
            raise self.raised
