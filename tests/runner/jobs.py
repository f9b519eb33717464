"""Jobs, and the plan of a run."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

# The number of jobs that run at once. It exceeds the processors, because some jobs mostly wait.
PLACES = (os.cpu_count() or 1) + 2
# A job that takes longer than this hangs. It is then interrupted, and killed if it does not end.
LIMIT_S = 1800
FAREWELL_S = 60


@dataclass(frozen=True)
class Job:
    """A command, and what must have ended before it starts."""

    title: str
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    """Titles of other jobs of the plan. Titles that the plan does not hold count as done."""
    env: Mapping[str, str] = field(default_factory=dict)
    pattern: str = ""
    """The pattern K of a run that must select at least one test."""
    holds_lock: bool = True
    """False if other runs may use the checkout while the job runs."""


@dataclass(frozen=True)
class Plan:
    """The jobs of a run, in the order in which they start."""

    jobs: tuple[Job, ...]
    live: bool = False
    """True if one job runs after the other, with its output shown at once."""
    notes: tuple[str, ...] = ()
    """Sentences that are printed first."""
    memory: bool = False
    """True if the tests' servers keep their data in memory, where there is enough of it."""
    places: int = PLACES
    limit_s: float | None = LIMIT_S
    farewell_s: float = FAREWELL_S
