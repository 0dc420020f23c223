"""The methods that can be audited by name: the built-in ones, and those of other packages.

A package adds methods by an entry point of the group ``jaxaudit.methods`` that names a `MethodEntry`.
"""

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from jaxaudit.errors import InputError
from jaxaudit.unlearn.base import Recipe
from jaxaudit.unlearn.entry import SUITES, MethodEntry, Problem, Suite
from jaxaudit.unlearn.methods import BUILT_IN

METHODS: Mapping[str, MethodEntry] = MappingProxyType({entry.name: entry for entry in BUILT_IN})
"""The built-in methods."""
_GROUP = "jaxaudit.methods"


@lru_cache(maxsize=1)
def available_methods() -> Mapping[str, MethodEntry]:
    """Built-in methods and those of installed packages, by name.

    Raises
    ------
    InputError
        If an installed package names something else than a `MethodEntry`, cannot be imported, or takes a name that is
        taken.

    Examples
    --------
    >>> available_methods()["retrain"].title
    'exact retraining'
    """
    found = dict(METHODS)
    for point in entry_points(group=_GROUP):
        entry = _load(point)
        if entry.name in found:
            raise InputError(
                f"entry point {_GROUP}: {point.value} takes the name {entry.name!r}, which is taken"
            )
        found[entry.name] = entry
    return MappingProxyType(found)


def _load(point: EntryPoint) -> MethodEntry:
    try:
        entry = point.load()
    except Exception as error:  # whatever the other package raises
        raise InputError(f"entry point {_GROUP}: {point.value} cannot be loaded: {error}") from error
    if not isinstance(entry, MethodEntry):
        raise InputError(
            f"entry point {_GROUP}: {point.value} must be a MethodEntry, got {type(entry).__name__}"
        )
    return entry


def select_methods(names: tuple[str, ...]) -> tuple[MethodEntry, ...]:
    """Entries by name, in the given order; ``("all",)`` means every one.

    Examples
    --------
    >>> [entry.title for entry in select_methods(("none", "retrain"))]
    ['no unlearning', 'exact retraining']
    >>> select_methods(("forget",))
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: methods must be all, or some of none, ...; got forget
    """
    methods = available_methods()
    if "all" in names and len(names) > 1:
        raise InputError(f"methods must be all alone, or names of methods; got {', '.join(names)}")
    names = tuple(methods) if names == ("all",) else names
    unknown = [name for name in names if name not in methods]
    if unknown or not names:
        raise InputError(
            f"methods must be all, or some of {', '.join(methods)}; got {', '.join(unknown) or 'no name'}"
        )
    if len(set(names)) < len(names):
        raise InputError(f"methods must not repeat, got {', '.join(names)}")
    return tuple(methods[name] for name in names)


def by_suite(entries: tuple[MethodEntry, ...]) -> dict[Suite, tuple[MethodEntry, ...]]:
    """The audits that these methods need, and who is part of each.

    A method that fits several suites is part of all that are needed for the others.

    Examples
    --------
    >>> by_suite(select_methods(("none", "ascent"))).keys()
    dict_keys(['heuristic'])
    """
    needed = {entry.suites[0] for entry in entries if len(entry.suites) == 1}
    for entry in entries:
        if needed.isdisjoint(entry.suites):
            needed.add(entry.suites[0])
    return {
        suite: tuple(entry for entry in entries if suite in entry.suites)
        for suite in SUITES
        if suite in needed
    }


def build_methods(entries: tuple[MethodEntry, ...], problem: Problem) -> dict[str, Recipe]:
    """The methods for a problem, by name."""
    return {
        entry.name: entry.build(problem)._replace(title=entry.title, description=entry.description)
        for entry in entries
    }
