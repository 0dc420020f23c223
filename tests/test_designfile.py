"""Registered designs: written, read back, and refused when anything was changed."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxaudit import border
from jaxaudit.design import AuditDesign
from jaxaudit.designfile import DesignFile, read_design, write_design
from jaxaudit.errors import InputError

RULES = AuditDesign(num_groups=3, num_calibration_runs=4, num_audit_runs=2, num_guesses=2)
CALIBRATION = np.array([[1, -1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, -1]])
SIGNS = np.array([[-1, 1, -1], [-1, -1, 1]])


def members(signs, order):
    """Retain records 0 and 1, then three groups of two, in the fixed order."""
    return np.array([[p for p in order if p < 2 or row[(p - 2) // 2] == 1] for row in signs])


def build(**changes):
    fields = {
        "design": RULES,
        "calibration_signs": CALIBRATION,
        "signs": SIGNS,
        "score_definition": "logit",
        "seed": 7,
    }
    return DesignFile(**(fields | changes))


ORDER = np.array([5, 0, 3, 7, 1, 2, 6, 4])
FULL = {
    "calibration_run_ids": [10, 11, 12, 13],
    "run_ids": [5, 4],
    "calibration_member_indices": members(CALIBRATION, ORDER),
    "member_indices": members(SIGNS, ORDER),
    "num_retain": 2,
    "group_size": 2,
    "order": ORDER,
}


@pytest.mark.parametrize("optional", [{}, FULL])
def test_round_trip(tmp_path, optional):
    written = build(**optional)
    write_design(tmp_path / "design.npz", written)
    found = read_design(tmp_path / "design.npz")
    assert found.sha256 == written.sha256
    for name, value in vars(written).items():
        np.testing.assert_array_equal(getattr(found, name), value)
    assert found.design == RULES


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.floats(1e-12, 0.999),
    st.floats(0, 0.999),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    st.integers(0, 2**63),
)
def test_numbers_and_text_come_back_exactly(tmp_path, significance, delta, text, seed):
    written = build(
        design=RULES.replace(significance=significance, delta=delta), score_definition=text, seed=seed
    )
    write_design(tmp_path / "design.npz", written, overwrite=True)
    found = read_design(tmp_path / "design.npz")
    assert (found.design, found.score_definition, found.seed) == (written.design, text, seed)
    assert found.sha256 == written.sha256


def test_default_run_ids_are_those_of_the_scores():
    design_file = build()
    assert design_file.calibration_run_ids.tolist() == [0, 1, 2, 3]
    assert design_file.run_ids.tolist() == [1_000_000, 1_000_001]


def test_the_hash_sees_every_field():
    others = [
        {"design": RULES.replace(significance=0.01)},
        {"signs": SIGNS[::-1]},
        {"calibration_signs": CALIBRATION[::-1]},
        {"score_definition": "loss"},
        {"seed": None},
        *({name: value} for name, value in FULL.items() if "indices" not in name),
        {"member_indices": [[0, 1], [2, 3]]},
        {"calibration_member_indices": [[0]] * 4},
        FULL,
    ]
    assert len({build(**changes).sha256 for changes in [{}, *others]}) == len(others) + 1
    assert build().sha256 == build().sha256


def test_arrays_are_read_only():
    design_file = build(**FULL)
    for name in ("signs", "run_ids", "member_indices", "order"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(design_file, name)[0] = 0
    assert ORDER.flags.writeable


def test_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "design.npz"
    write_design(path, build(**FULL))
    good = border.read_npz(path)
    header = json.loads(str(good["header"]))
    header["design"]["significance"] = 0.1
    changes = [
        {"signs": good["signs"][::-1]},
        {"run_ids": good["run_ids"] + 1},
        {"header": np.array(json.dumps(header, sort_keys=True))},
        {"sha256": np.array("0" * 64)},
        {"order": good["order"].astype(np.int32)},
    ]
    for change in changes:
        border.write_npz(path, good | change, overwrite=True)
        with pytest.raises(InputError, match=r"design\.npz was changed after it was written"):
            read_design(path)
    border.write_npz(path, {name: array for name, array in good.items() if name != "order"}, overwrite=True)
    with pytest.raises(InputError, match="was changed after it was written"):
        read_design(path)


def write_raw(path, header, **changes):
    """A file with a right hash over any content."""
    design_file = build()
    names = ("calibration_signs", "signs", "calibration_run_ids", "run_ids")
    arrays = {"header": np.array(header), **{name: getattr(design_file, name) for name in names}, **changes}
    border.write_npz(path, {**arrays, "sha256": np.array(border.content_hash(arrays))})


GOOD_HEADER = {"design": RULES.as_dict(), "score_definition": "logit", "seed": None, "schema_version": 1}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("no json", "is no design file: its header cannot be read"),
        ("[]", "is no design file: its header cannot be read"),
        ("{}", "is no design file: its header cannot be read"),
        (json.dumps(GOOD_HEADER | {"schema_version": 99}), "has schema_version 99, this version reads 1"),
        (json.dumps(GOOD_HEADER | {"what": 1}), "is no design file: .*'what'"),
        (json.dumps({k: v for k, v in GOOD_HEADER.items() if k != "design"}), "is no design file: 'design'"),
        (json.dumps(GOOD_HEADER | {"design": {"groups": 3}}), "is no design file: .*'groups'"),
        (
            json.dumps(GOOD_HEADER | {"design": RULES.as_dict() | {"delta": 2}}),
            r"delta must be in \[0, 1\), got 2",
        ),
    ],
)
def test_headers_that_cannot_be_read(tmp_path, header, message):
    write_raw(tmp_path / "design.npz", header)
    with pytest.raises(InputError, match=message):
        read_design(tmp_path / "design.npz")


def test_a_good_header_is_read(tmp_path):
    write_raw(tmp_path / "design.npz", json.dumps(GOOD_HEADER))
    assert read_design(tmp_path / "design.npz").design == RULES


def test_missing_arrays_and_existing_files(tmp_path):
    np.savez(tmp_path / "scores.npz", signs=SIGNS)
    with pytest.raises(
        InputError, match="arrays lack 'header', 'sha256', 'calibration_signs', 'calibration_run_ids'"
    ):
        read_design(tmp_path / "scores.npz")
    with pytest.raises(InputError, match="already exists"):
        write_design(tmp_path / "scores.npz", build())
    write_design(tmp_path / "scores.npz", build(), overwrite=True)
    assert read_design(tmp_path / "scores.npz").sha256 == build().sha256


def wrong_member(name):
    changed = FULL[name].copy()
    changed[1, 0] = changed[1, 1]
    return {name: changed}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"signs": SIGNS[:1]}, r"axis 0 \(runs\) of signs must have length 2, got 1"),
        (
            {"calibration_signs": np.array([[1, -1]] * 4)},
            r"axis 1 \(groups\) of calibration_signs .* 3, got 2",
        ),
        ({"signs": -SIGNS}, "signs must have exactly 1 of 3 entries"),
        ({"run_ids": [1]}, r"axis 0 \(runs\) of run_ids must have length 2, got 1"),
        ({"run_ids": [1, 1]}, "run ids must be unique, got 1 more than once"),
        ({"run_ids": [2, 7]}, "run ids must be unique, got 2 more than once"),
        ({"run_ids": [0.5, 7]}, "run_ids must be integers, got 0.5"),
        ({"member_indices": [[0, 1]]}, r"axis 0 \(runs\) of member_indices must have length 2, got 1"),
        ({"member_indices": [0, 1]}, r"member_indices must have axes \(runs, members\)"),
        ({"member_indices": [[0], [-1]]}, "member_indices must not be negative, got -1"),
        (FULL | wrong_member("member_indices"), "member_indices of run 4 disagree with its sign vector"),
        (FULL | wrong_member("calibration_member_indices"), "member_indices of run 11 disagree"),
        (FULL | {"member_indices": FULL["member_indices"][::-1]}, "member_indices of run 5 disagree"),
        (FULL | {"member_indices": FULL["member_indices"][:, :3]}, "member_indices of run 5 disagree"),
        (FULL | {"member_indices": FULL["member_indices"] + 5}, "member_indices must be at most 7, got 12"),
        (FULL | {"order": ORDER[:5]}, r"axis 0 \(pool\) of order must have length 8, got 5"),
        (FULL | {"order": np.zeros(8)}, "order must name every point of the pool once, got a repeated point"),
    ],
)
def test_refused(changes, message):
    with pytest.raises(InputError, match=message):
        build(**changes)
