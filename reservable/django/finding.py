"""One call of a finding method of a queryset: search, look again, hand over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from reservable.django.backend import DjangoBackend
from reservable.django.blocking import must_be_blocking
from reservable.django.candidates import Candidates
from reservable.django.expressions import is_reserved, without
from reservable.django.homes import store_of
from reservable.django.mixin import account_of
from reservable.finding.batches import InBatches
from reservable.finding.front import FromTheFront
from reservable.finding.search import Found, Key, purpose
from reservable.finding.taking import Taking
from reservable.handles import Handle, Reservation


class Finding(Taking):
    """One call: the queryset, the purpose, and the search that suits the store."""

    def __init__(self, queryset: Any, key: Any, duration: Any) -> None:
        must_be_blocking()
        self.purpose = purpose(key, duration)
        self.candidates = Candidates(queryset)
        self.store = store_of(queryset.model)
        self.backend = self.store.blocking
        if (
            isinstance(self.backend, DjangoBackend)
            and self.backend.alias == self.candidates.alias
            and self.candidates.identity.in_sql
            and not self.candidates.bounded
        ):
            self.candidates.narrow(is_reserved(queryset, self.purpose.key))
            self.search = FromTheFront(self.backend, self.candidates, self.purpose)
        else:
            self.search = InBatches(self.backend, self.candidates, self.purpose)

    def read_again(self, found: Sequence[Found]) -> Iterable[tuple[Key, Any]]:
        with without(self.candidates.identity, self.purpose.key, [one.grant.fence for one in found]):
            return self.candidates.again([one.key for one in found])

    def handle(self, instance: Any, name: str) -> Handle:
        handle = self.purpose.handle(Reservation, self.backend, name, account_of(instance))
        handle.store = self.store
        return handle
