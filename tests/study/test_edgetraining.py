"""Fine-tuned models are trained once, in whatever company."""

import numpy as np

from jaxaudit.study import EdgeAudit


def test_only_what_is_missing_is_trained(candidates, spec, edge_fakes):
    audit = EdgeAudit(candidates, spec)
    first = np.asarray(audit.fine_tuned([3, 1]))
    assert edge_fakes.trained == ["run-4", "run-2"]
    again = np.asarray(audit.fine_tuned([0, 1, 2, 3]))
    assert edge_fakes.trained == ["run-4", "run-2", "run-1", "run-3"]
    np.testing.assert_array_equal(again[[3, 1]], first)
    learnt = audit.signs[:4] == 1
    np.testing.assert_array_equal(again[:, candidates.rows].all(axis=2), learnt)


def test_seconds_are_known_of_what_was_trained(candidates, spec, edge_fakes):
    audit = EdgeAudit(candidates, spec)
    assert audit._fine_tuned.seconds(["run-1"]) == 0
    audit.fine_tuned([0, 1])
    one, two = (audit._fine_tuned.seconds([name]) for name in ("run-1", "run-2"))
    assert one == two > 0
    assert audit._fine_tuned.seconds(["run-1", "run-2"]) == 2 * one
