"""How runs are to be carried out: options, the plan that was chosen, and where progress is saved."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from jaxtyping import PyTree

from jaxaudit.errors import InputError

DEFAULT_MEMORY_BUDGET = 2 * 2**30

Strategy = Literal["scan", "step", "sequential"]
Precision = Literal["highest", "high", "default"]


@dataclass(frozen=True)
class RunOptions:
    """How to carry runs out.

    Parameters
    ----------
    strategy
        ``"scan"``: all runs of a chunk advance in a compiled loop. ``"step"``: the host calls one compiled step of all
        runs of a chunk (a convolution inside a compiled loop is many times slower on CPU). ``"sequential"``: the host
        calls one compiled step of one run per device. ``"auto"``: ``"scan"`` if no step is heavy or
        holds a convolution, otherwise the fastest by measurement.
    chunk
        Runs that are kept in memory together; ``"auto"`` takes as many as the memory budget allows.
    memory_budget
        Bytes per device that the program of one chunk may use by the compiler's own analysis, arguments and results
        included; only ``chunk="auto"`` looks at it. What is returned for all runs is kept besides.
    num_devices
        Devices to spread the runs over; ``None`` takes all, those of all processes included.
    matmul_precision
        Of float32 matrix products and convolutions, where a model does not ask for one itself. ``"highest"`` means
        true float32 also on GPU and TPU, whose own default rounds the factors (TF32, bfloat16).

    Raises
    ------
    InputError
        If a value is not allowed.

    Examples
    --------
    >>> RunOptions(chunk=0)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: chunk must be at least 1 or 'auto', got 0
    """

    strategy: Literal["auto", "scan", "step", "sequential"] = "auto"
    chunk: int | Literal["auto"] = "auto"
    memory_budget: int = DEFAULT_MEMORY_BUDGET
    num_devices: int | None = None
    matmul_precision: Precision = "highest"

    def __post_init__(self) -> None:
        _check_choice("strategy", self.strategy, ("auto", *get_args(Strategy)))
        _check_choice("matmul_precision", self.matmul_precision, get_args(Precision))
        if self.chunk != "auto" and not _is_count(self.chunk):
            raise InputError(f"chunk must be at least 1 or 'auto', got {self.chunk}")
        if not _is_count(self.memory_budget):
            raise InputError(f"memory_budget must be at least 1 byte, got {self.memory_budget}")
        if self.num_devices is not None and not _is_count(self.num_devices):
            raise InputError(f"num_devices must be at least 1 or None, got {self.num_devices}")


@dataclass(frozen=True)
class RunPlan:
    """What was chosen. Given back to `run_loops` it is followed as it is, so that a resumed job repeats its bits.

    Examples
    --------
    >>> from dataclasses import asdict
    >>> RunPlan(**asdict(RunPlan("scan", 60)))
    RunPlan(strategy='scan', chunk=60, block=None)
    """

    strategy: Strategy
    chunk: int
    """Runs that are kept at the same step, over all devices, and saved as one part."""
    block: int | None = None
    """Runs of one call of the compiled program, over all devices; ``None``: all of the chunk, or one per device if
    sequential. On CPU small blocks are faster, because what they work on stays in the caches."""

    def __post_init__(self) -> None:
        _check_choice("strategy", self.strategy, get_args(Strategy))
        for name, value in (("chunk", self.chunk), ("block", self.block)):
            if not _is_count(value) and not (name == "block" and value is None):
                raise InputError(f"{name} must be at least 1, got {value}")


class Saver(Protocol):
    """Where `run_loops` leaves its progress, so that it can be resumed.

    Part ``p`` holds runs ``p * chunk`` to ``(p + 1) * chunk - 1`` (the last part may be shorter) whatever the number
    of devices. The carry has their leading axis. Its arrays may lie on many devices; `to_host` fetches them. They are
    overwritten after ``save`` returns, so it must copy what it keeps.
    """

    def load(self, part: int) -> tuple[int, PyTree] | None:
        """Steps done and the carry (or a list of its leaves, as JAX orders them) of a part; ``None`` if not saved."""

    def save(self, part: int, step: int, carry: PyTree, done: bool) -> None:
        """Keep the carry of a part after ``step`` steps; ``done`` if it was the last."""


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
