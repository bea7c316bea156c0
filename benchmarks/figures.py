"""What was measured, and what it is held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from benchmarks.rounds import Timing, ratio


@dataclass(frozen=True)
class Claim:
    """The contender is to be at least `target` times as fast as the peer; None: only to be seen beside it."""

    contender: str
    peer: str
    target: float | None = None


@dataclass(frozen=True)
class Figure:
    """One line of the report."""

    contender: str
    value: float
    unit: str
    quartiles: tuple[float, float] | None = None
    rounds: int | None = None
    peer: str | None = None
    ratio: float | None = None
    target: float | None = None
    at_most: bool = False
    """The value itself must not be above the target; otherwise the ratio must not be below it."""
    note: str = ""

    @property
    def reached(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        if self.at_most:
            return self.value <= self.target
        return self.ratio is not None and self.ratio >= self.target


@dataclass
class Section:
    """The figures of one comparison."""

    title: str
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def compared(
    title: str, timings: dict[str, Timing], claims: Sequence[Claim], notes: Sequence[str] = ()
) -> Section:
    """A section of all timings; a contender with several claims has a line for each."""
    section = Section(title, notes=list(notes))
    for name, timing in timings.items():
        plain = Figure(name, timing.median, "s", quartiles=timing.quartiles, rounds=len(timing.rounds))
        beside = [claim for claim in claims if claim.contender == name and claim.peer in timings]
        section.figures += [
            replace(plain, peer=claim.peer, ratio=ratio(timing, timings[claim.peer]), target=claim.target)
            for claim in beside
        ] or [plain]
    return section
