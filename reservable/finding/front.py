"""The statement itself leaves out what is reserved: every look begins at the front."""

from __future__ import annotations

from reservable.finding.asking import Asking
from reservable.finding.search import FIRST_BATCH, GROWTH, LAST_BATCH, Found, Key, give_back


class FromTheFront(Asking):
    """The first keys that looked free go to the store; where others were quicker for all of them, more are read."""

    def restart(self) -> None:
        """Nothing to do: every look is a new one."""

    def reserve(self, limit: int) -> list[Found]:
        size = min(max(FIRST_BATCH, limit), LAST_BATCH)
        while True:
            wanted = size + len(self._skipped)
            rows = self._source.rows(0, wanted)
            found = self._try(rows, limit)
            if found or len(rows) < wanted:
                return found
            size *= GROWTH

    def _try(self, rows: list[Key], limit: int) -> list[Found]:
        keys = self._named(rows, self._skipped)
        names, found = list(keys), list[Found]()
        try:
            while names and len(found) < limit:
                one = self._first_of(keys, names)
                if one is None:
                    break
                found.append(one)
                names = names[names.index(one.grant.name) + 1 :]
        except BaseException:
            give_back(self._backend, found)
            raise
        return found
