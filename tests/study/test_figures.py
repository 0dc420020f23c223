"""Where the nodes of a drawn graph are."""

import networkx as nx
import numpy as np

from jaxaudit.study.figures import _layout


def salted(salt):
    """Names with other hashes, as in another process, so that sets of them have another order."""

    class Salted(str):
        def __hash__(self):
            return hash((salt, str(self)))

    return Salted


def test_places_do_not_depend_on_the_order_of_sets():
    edges = ["AB", "AC", "BD", "EF", "FG", "HK"]
    found = []
    for salt in range(8):
        name = salted(salt)
        places = _layout(nx.Graph([(name(first), name(second)) for first, second in edges]))
        found.append([places[name(node)] for node in "ABCDEFGHK"])
    np.testing.assert_array_equal(found, found[:1] * 8)


def test_parts_stand_side_by_side():
    places = _layout(nx.Graph([("A", "B"), ("B", "C"), ("D", "E")]))
    assert max(places[node][0] for node in "ABC") < min(places[node][0] for node in "DE")
