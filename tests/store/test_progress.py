"""Progress of one audit: plans, parts and results by name."""

import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.runs import RunOptions, RunPlan
from jaxaudit.store import Progress

OPTIONS = RunOptions()


def progress(store, key="3f"):
    return Progress(store, key, pytest.fail)


def test_a_plan_is_chosen_once_and_again_for_other_options(tmp_path):
    first, second = RunPlan("scan", 4), RunPlan("step", 2)
    assert progress(tmp_path).plan("train", OPTIONS, lambda: first) == first
    assert progress(tmp_path).plan("train", OPTIONS, lambda: second) == first
    assert progress(tmp_path, "4e").plan("train", OPTIONS, lambda: second) == second
    progress(tmp_path).keep("train/part-0-3", [np.ones(1)])
    assert progress(tmp_path).plan("train", RunOptions(chunk=2), lambda: second) == second
    assert progress(tmp_path).load("train/part-0-3") is None  # of another size now


def test_of_every_part_the_newest_state_is_kept(tmp_path):
    saver = progress(tmp_path).saver("train", 0, 10)
    for part, step in ((0, 2), (0, 5), (1, 4)):
        saver.save(part, step, {"x": np.array([10.0 * part + step])}, done=False)
    assert progress(tmp_path).steps("train", 0) == [5]
    again = progress(tmp_path).saver("train", 0, 10)
    assert [again.load(part) for part in (0, 1, 2)] == [(5, [5.0]), (4, [14.0]), None]


@pytest.mark.parametrize(("least", "stop", "found"), [(0, 5, 5), (5, 9, 5), (6, 9, None), (0, 4, None)])
def test_states_outside_the_steps_of_a_loop_are_not_read(tmp_path, least, stop, found):
    progress(tmp_path).saver("train", 0, 10).save(0, 5, [np.ones(1)], done=False)
    loaded = progress(tmp_path).saver("train", least, stop).load(0)
    assert (loaded is None) if found is None else (loaded[0] == found)


def test_killed_between_the_new_state_and_the_removal_of_the_old_one(tmp_path):
    for step in (2, 5):
        progress(tmp_path).keep(f"train/part-0-{step}", [np.array([1.0 * step])])
    said = []
    assert progress(tmp_path).saver("train", 0, 9).load(0) == (5, [5.0])
    (tmp_path / "audits/3f/train/part-0-5/piece.json").write_text("{")
    assert Progress(tmp_path, "3f", said.append).saver("train", 0, 9).load(0) == (2, [2.0])
    assert "damaged" in said[0]


def test_a_finished_audit_leaves_its_results_and_touches_no_other(tmp_path):
    one, other = progress(tmp_path), progress(tmp_path, "4e")
    for each in (one, other):
        each.keep("a/b", [np.ones(1)])
        each.keep("a/c", [np.ones(1)])
    one.tidy("a", keep="c")
    assert one.load("a/b") is None
    assert one.load("a/c") is not None
    one.keep("a/stage/plan", ())
    one.keep("b/part-0-3", [np.ones(1)])
    one.keep("rows", [np.ones(1)])
    one.finish("c")
    assert sorted(path.parent.name for path in (tmp_path / "audits/3f").rglob("piece.json")) == ["c"]
    assert [path.name for path in (tmp_path / "audits/3f").iterdir()] == ["a"]  # nor an empty folder
    assert one.load("a/c") is not None
    assert other.load("a/b") is not None
    one.finish("nothing of that name")
    assert list((tmp_path / "audits/3f").iterdir()) == []
    assert other.load("a/c") is not None


def test_a_store_that_cannot_be_written_is_found_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"store .*file cannot be written"):
        progress(tmp_path / "file")
