"""What a handle on one reservation decides, as plans for both colours: one name, one token, one lifetime."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from secrets import token_hex
from typing import Any, NamedTuple

from reservable import durations, names
from reservable.errors import (
    AlreadyReserved,
    BackendError,
    ConfigurationError,
    InvalidDuration,
    ReservationLost,
)
from reservable.grants import MICROSECOND, Released, utc
from reservable.handles.blocks import Block, Blocks
from reservable.handles.dumped import dump
from reservable.handles.options import within
from reservable.handles.standing import Ledger, Standing, seconds_of
from reservable.handles.tenure import Outcome, Tenure
from reservable.plans import Pause, Plan
from reservable.waiting import Waiting

log = logging.getLogger("reservable")

ON_ERROR = ("release", "keep")

OWN: Any = object()
"""The argument that was left out: the handle's own `wait`."""


class Ask(NamedTuple):
    """The step that asks the backend for one of its verbs.

    `insist`: it is to be done although whoever asks is cancelled meanwhile.
    """

    verb: str
    arguments: tuple[Any, ...]
    insist: bool = False


class Listen(NamedTuple):
    """The step that pauses until the backend tells that the name was released, or for so many seconds."""

    seconds: float


class Handle(Standing):
    """The plans of a reservation; `Reservation` and `AsyncReservation` perform them."""

    def __init__(
        self,
        backend: Any,
        name: str,
        duration: Any = 60,
        *,
        key: str | None = None,
        owner: str = "",
        wait: Any = None,
        renew: bool = False,
        on_error: str = "release",
        on_lost: Callable[[Any], Any] | None = None,
        at_least: Any = None,
        ledger: Ledger | None = None,
    ) -> None:
        if on_error not in ON_ERROR:
            raise ConfigurationError(f"on_error is {on_error!r}: use one of {', '.join(map(repr, ON_ERROR))}")
        if not isinstance(renew, bool):
            raise ConfigurationError(
                f"renew is {renew!r}: give True or False; how long each time is the duration"
            )
        if on_lost is not None and not callable(on_lost):
            raise ConfigurationError(
                f"on_lost is {on_lost!r}: give a function, which is called with the reservation"
            )
        self.lifetime = durations.lifetime(duration)
        self._moving = duration if durations.moves(duration) else None
        super().__init__(
            ledger=ledger,
            renew=renew,
            on_lost=on_lost,
            at_least=None if at_least is None else within(at_least, self.lifetime),
        )
        if self._moving is not None:
            self._until = durations.until(duration)
        if backend is not None:
            self.backend = backend
        self.name = name
        self.key = names.decode(name.rpartition(":")[2]) if key is None else key
        self.store: Any = None
        """Where it lives, for the other colour to reach it; whoever keeps account of the handle says so."""
        self.owner = owner
        self._wait = durations.wait(wait)
        self._on_error = on_error
        self._blocks = Blocks()

    def acquiring(self, wait: float) -> Plan[bool]:
        """Try until granted or the wait is over. While held: False, and undisturbed."""
        if self._ledger is not None:
            self._ledger.tried(self)
        if self.held:
            return False
        lifetime = self._from_now()
        if not wait:
            return (yield from self._try(lifetime))
        if self._until is not None:
            wait = min(wait, lifetime.total_seconds())
        waiting = Waiting(wait)  # from before the first try
        granted = yield from self._try(lifetime)
        while not granted and not waiting.over:
            yield from self._pausing(waiting)
            try:
                lifetime = self._from_now()
            except InvalidDuration:
                return False  # the instant until which it was wanted has come
            granted = yield from self._try(lifetime)
        return granted

    def _from_now(self) -> timedelta:
        """The lifetime of a grant that is asked for at this moment; raises `InvalidDuration` for an instant that is over."""
        if self._moving is not None:
            self.lifetime = durations.lifetime(self._moving)
        return self.lifetime

    def _pausing(self, waiting: Waiting) -> Plan[None]:
        """Until it is worth another try: where the backend tells of releases, until it does."""
        if self.backend.capabilities.tells:
            yield Listen(waiting.left)
            return
        if waiting.curious:
            holder = yield Ask("holder", (self.name,))
            if holder is not None:
                waiting.learned(holder.remaining)
        yield Pause(waiting.pause())

    def _try(self, lifetime: timedelta) -> Plan[bool]:
        token = token_hex(16)
        sent = time.monotonic()
        deadline = sent + lifetime.total_seconds()
        grant = yield Ask("acquire", (self.name, token, self.owner, lifetime))
        if grant is None:
            self._tell("refused", None)
            return False
        if time.monotonic() >= deadline:
            # The answer took longer than the lifetime: over before anybody could use it.
            yield Ask("release", (self.name, token))
            self._tell("refused", None)
            return False
        self.adopt(grant, deadline)
        return True

    def extending(self, duration: Any) -> Plan[bool]:
        """Set what is left to `duration`; False, and lost, when it is over or taken."""
        lifetime = durations.lifetime(duration)
        tenure = self._tenure
        if tenure is None or not tenure.mine:
            return False
        sent = time.monotonic()
        until = yield Ask("extend", (self.name, tenure.grant.token, lifetime))
        deadline = sent + lifetime.total_seconds()
        if until is None or time.monotonic() >= deadline:  # refused, or over before the answer came
            self._lose(tenure)
            return False
        if tenure.over:
            # Ended meanwhile, by another thread or by its time: what was extended is nobody's.
            yield Ask("release", (self.name, tenure.grant.token))
            return False
        self._moved(tenure.grant, until, deadline, sent)
        return True

    def releasing(self) -> Plan[bool]:
        """Give back our own grant and nothing else; the token is kept until the store has confirmed."""
        tenure = self._tenure
        if tenure is None or not tenure.mine:
            return False
        return (yield from self._giving_back(tenure))

    def _giving_back(self, tenure: Tenure) -> Plan[bool]:
        name, token = self.name, tenure.grant.token
        rest = tenure.free_at - time.monotonic()
        early = rest >= durations.SHORTEST.total_seconds()
        self._let_all_go(tenure, tenure.free_at if early else None)
        tenure.asked()
        try:
            if early:  # `at_least`: it is too early to be free again
                until = yield Ask("extend", (name, token, timedelta(seconds=rest)), insist=True)
                answer = Released.YES if until is not None else Released.NOT_HELD
            else:
                answer = yield Ask("release", (name, token), insist=True)
        except BaseException as error:
            tenure.unanswered(error)
            raise
        outcome = tenure.answered(answer)
        if outcome is Outcome.UNKNOWN:
            raise BackendError(
                f"the release of {name} was asked twice and its time is over: whether it was released "
                "or ran out cannot be known"
            )
        if outcome is Outcome.LOST:
            self._tell_all(tenure)
        elif outcome is Outcome.DONE:
            self._tell("released", tenure.grant)
        return outcome is Outcome.DONE

    def checking(self) -> Plan[None]:
        """Ask the store; raises `ReservationLost` when the name is not ours (any more)."""
        tenure = self._tenure
        if tenure is not None and tenure.mine:
            sent = time.monotonic()
            holder = yield Ask("holder", (self.name,))
            # The fence grows with every grant, so equal fences are the same grant.
            if holder is not None and holder.fence == tenure.grant.fence:
                # It may have been extended by another process that it was handed to.
                until = (holder.until - utc(0)) // MICROSECOND
                self._moved(tenure.grant, until, sent + holder.remaining, sent)
                return
            self._lose(tenure)
        raise ReservationLost(f"the reservation {self.name} is over or was taken by somebody else")

    def entering(self) -> Plan[Block]:
        """Acquire for a `with` block; raises `AlreadyReserved` with the holder when refused."""
        granted = yield from self.acquiring(self._wait)
        if not granted:
            raise AlreadyReserved(self.name, (yield Ask("holder", (self.name,))))
        return self._blocks.entered(self._tenure)

    def exiting(self, block: Block, error: BaseException | None) -> Plan[None]:
        """Release after a `with` block, so that the body's own exception always comes out.

        What the block was entered with, and not what the handle may have reserved since. A lost reservation under
        a body that ended well raises `ReservationLost`.
        """
        tenure = block.tenure
        if tenure is None or not tenure.here:
            return  # a forked child leaving its parent's block
        if isinstance(error, Exception) and self._on_error == "keep":
            self._let_all_go(tenure, tenure.deadline)  # what a renewal on its way adds is taken off again
            return
        if tenure.over:
            if error is None and tenure.lost:
                raise ReservationLost(f"the reservation {self.name} was lost while its block was running")
            return
        try:
            released = yield from self._giving_back(tenure)
        except Exception as trouble:  # whatever it is, the body's own error is what comes out
            if error is None:
                raise
            log.warning("the release of %s failed: %s", self.name, trouble)
            return
        if not released and error is None:
            raise ReservationLost(f"the reservation {self.name} was over before its block had ended")

    def _leaving(self) -> Block:
        return self._blocks.left() or Block(self._tenure)

    def take_over(self, said: Handle) -> None:
        """Honour what is said of a grant that stands already, by the options of another handle."""
        tenure = self._tenure
        if said._at_least is not None and tenure is not None:
            free_at = tenure.since + seconds_of(said._at_least)
            if not (self.renewing or said.renewing) and free_at > max(
                tenure.deadline, tenure.since + self.lifetime.total_seconds()
            ):
                raise InvalidDuration(
                    f"at_least is {said._at_least!r}, longer than the reservation that stands: extend it first"
                )
            self._at_least = said._at_least
            tenure.free_at = max(tenure.free_at, free_at)
        if said._on_error != "release":
            self._on_error = said._on_error
        if said._wait:
            self._wait = said._wait
        if said._on_lost is not None:
            self.tell_of_loss(said._on_lost)

    def dumps(self) -> str:
        """The grant as text for another process. Whoever has the text can release: keep it out of logs.

        Raises `ReservationLost` outside a grant.
        """
        tenure = self._tenure
        if tenure is None or not tenure.mine:
            raise ReservationLost(f"{self.name} is not held by this handle, so there is nothing to hand over")
        return dump(self.backend.prefix, tenure, self.owner)

    def __reduce__(self) -> Any:
        raise TypeError("a reservation is not pickled by accident: hand it over with dumps() and loads()")

    def __repr__(self) -> str:
        state = f"held, {self.remaining:.3f} s left" if self.held else "not held"
        return f"<{type(self).__name__} {self.name} ({state})>"
