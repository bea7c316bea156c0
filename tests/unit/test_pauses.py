from __future__ import annotations

from itertools import islice

from reservable.plans import pauses


def test_pauses_grow_to_the_ceiling_and_no_two_workers_keep_step() -> None:
    several = [[*islice(pauses(0.01, 1), 50)] for _ in range(20)]
    assert len({tuple(one) for one in several}) == 20
    for number in range(50):
        steps = [one[number] for one in several]
        assert max(steps) <= min(0.01 * 2**number, 1)
        assert min(steps) >= 0.005
    late = [one[number] for one in several for number in range(10, 50)]
    assert min(late) < 0.1 < 0.9 < max(late)
