"""What the tests of the commands share: calling one in this process, and files of evidence."""

import json
from typing import NamedTuple

import numpy as np
import pytest

from jaxaudit.cli import main

GROUPS, CALIBRATION, AUDITED = 12, 20, 6


class Outcome(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def document(self):
        """The one JSON object on stdout."""
        return json.loads(self.out)


@pytest.fixture
def cli(capsys, monkeypatch, tmp_path):
    """Calls a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return call


def make_scores(strength=2.0, seed=3):
    """Arrays of a score file: scores are ``strength`` times the sign plus unit noise."""
    rng = np.random.default_rng(seed)
    signs = rng.permuted(np.tile([1, -1], (CALIBRATION + AUDITED, GROUPS // 2)), axis=1)
    scores = strength * signs + rng.normal(size=signs.shape)
    return {
        "calibration_signs": signs[:CALIBRATION],
        "calibration_scores": scores[:CALIBRATION],
        "signs": signs[CALIBRATION:],
        "scores": scores[CALIBRATION:],
    }


@pytest.fixture
def score_arrays():
    """Arrays of a leaky method, fresh for every test."""
    return make_scores()
