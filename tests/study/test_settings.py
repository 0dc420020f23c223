"""Settings: presets, ranges, and what the results of one model depend on."""

import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import PRESETS, DecoderSpec
from jaxaudit.study import StudySpec, study_spec
from jaxaudit.study.settings import SHORT_NAMES, run_options


def test_the_paper_preset_is_what_the_paper_states():
    spec = study_spec("paper")
    assert (spec.fine_tuning.epochs, spec.fine_tuning.batch_size) == (20, 16)
    assert spec.fine_tuning.warmup_share * spec.fine_tuning.epochs == 1
    assert (spec.epochs, spec.batch_size) == (20, 4)
    assert (min(spec.rates), max(spec.rates)) == (1e-6, 5e-5)
    assert spec.fine_tuning_lora is not None


def test_a_big_model_trains_adapters_one_model_at_a_time():
    spec = study_spec("smollm2")
    assert spec.fine_tuning_lora == spec.lora
    assert (spec.lora.rank, spec.lora.alpha, spec.lora.dropout, len(spec.lora.targets)) == (8, 32.0, 0.0, 7)
    assert (spec.fine_tuning.epochs, spec.fine_tuning.learning_rate, spec.chunk) == (20, 1e-3, 1)
    big = DecoderSpec(49152, width=576, num_layers=30, num_heads=9, hidden=1536, num_kv_heads=3)
    assert (run_options(big).strategy, run_options(big).chunk) == ("sequential", 1)
    assert run_options(PRESETS["small"](420)).strategy == "scan"


def test_methods_are_those_of_the_reading_and_have_short_names():
    for reading, names in (("pistol_paper", "GA GD UKL DPO NPO"), ("pistol_code", "GA GD UKL DPO")):
        spec = StudySpec(reading=reading)
        assert " ".join(SHORT_NAMES[method] for method in spec.methods) == names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rates": ()}, "rates must be different and at least one"),
        ({"rates": (1e-3, 1e-3)}, "rates must be different"),
        ({"rates": (0.0,)}, "rates must be positive, got 0.0"),
        ({"min_utility": 1.5}, "min_utility must be in \\[0, 1\\], got 1.5"),
        ({"seeds": (0, 1)}, "seeds must differ from each other and from tuning_seed"),
        ({"seeds": ()}, "seeds must differ"),
        ({"chunk": 0}, "chunk must be an integer of at least 1, got 0"),
        ({"reading": "mine"}, "reading must be one of pistol_paper, pistol_code"),
        ({"epochs": 0}, "epochs must be an integer of at least 1"),
    ],
)
def test_bad_values_are_named(change, message):
    with pytest.raises(InputError, match=message):
        StudySpec(**change)


def test_results_do_not_depend_on_which_rates_and_seeds_are_asked_for():
    same = StudySpec().identity()
    assert study_spec("cpu", seeds=(7,), rates=(1e-2,), min_utility=0.5, chunk=1).identity() == same
    assert study_spec("cpu", epochs=3).identity() != same


def test_an_unknown_preset_is_named():
    with pytest.raises(InputError, match="preset must be one of paper, cpu, smollm2, smoke, got 'gpu'"):
        study_spec("gpu")
