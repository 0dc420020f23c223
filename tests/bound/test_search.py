import math

import pytest

from jaxaudit.bound.search import largest_rejected


@pytest.mark.parametrize("root", [1e-9, 0.3, 1.0, 7.5, 3e5, 1e12])
def test_root_of_a_decreasing_function_far_or_near(root):
    assert largest_rejected(lambda epsilon: root - epsilon) == pytest.approx(root, rel=1e-13, abs=1e-12)
    if root > 1:
        assert largest_rejected(lambda epsilon: root - epsilon, least=1.0) == pytest.approx(root, rel=1e-13)


def test_nothing_is_searched_where_the_start_is_not_rejected():
    def excess(epsilon):
        asked.append(epsilon)
        return 2.0 - epsilon

    asked = []
    assert largest_rejected(excess, least=2.0) == 2.0
    assert asked == [2.0]
    assert largest_rejected(lambda _: -math.inf) == 0.0
