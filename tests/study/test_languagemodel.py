"""The pretrained model: what it learns has nothing to do with the data, and what it must know beforehand is there."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from jaxaudit.data.pistol import (
    GOLDMAN_SACHS,
    REFUSALS,
    WILLIAM_SHAKESPEARE,
    chain,
    dataset_1,
    generate,
)
from jaxaudit.errors import InputError
from jaxaudit.llm import AdamWSpec
from jaxaudit.study import make_background, small_model
from jaxaudit.study.languagemodel import make_tokenizer


@pytest.mark.parametrize("seed", [0, 1, 17])
def test_the_background_shares_no_name_with_the_data(seed):
    data = dataset_1(seed)
    background = make_background(data, seed=seed)
    names = {text for entity in data.entities.values() for text in (entity.name, entity.address)}
    for record in background.records:
        assert not any(name in record.question + record.answer for name in names)
    assert {contract.contract_type.name for contract in background.answered.contracts} == {
        "sales",
        "employment",
    }


def test_a_fifth_is_refused_and_refused_entities_are_unknown():
    background = make_background(dataset_1(), seed=0, num_contracts=30)
    assert len(background.records) == 30 * 20
    refused = [record for record in background.records if record.answer in REFUSALS]
    answered = background.answered.records
    assert len(answered) + len(refused) == len(background.records)
    assert len(refused) == 6 * 20
    names = {entity.name for entity in background.answered.entities.values()}
    assert not any(name in record.question for record in refused for name in names)


def test_known_entities_have_as_many_contracts_as_said():
    known = {GOLDMAN_SACHS: 7, WILLIAM_SHAKESPEARE: 2}
    background = make_background(dataset_1(), seed=0, known=known)
    contracts = background.answered.contracts
    entities = background.answered.entities
    for entity, number in known.items():
        own = [
            contract
            for contract in contracts
            if entity.name in {entities[node].name for node in contract.nodes}
        ]
        assert len(own) == number


def test_the_tokenizer_knows_words_of_refusals_and_spells_names():
    data = dataset_1()
    tokenizer = make_tokenizer(data, make_background(data, seed=0))
    refusal = REFUSALS[0]
    assert len(tokenizer.encode(refusal)) < 3 * len(refusal.split())
    name = data.entities["A"].name.split()[0]
    assert len(tokenizer.encode(name)) == len(name)
    assert tokenizer.decode(tokenizer.encode(data.records[0].question)) == data.records[0].question


def test_a_pretrained_model_is_kept_and_found_again(tmp_path, monkeypatch):
    data = generate(chain(3), seed=0)
    options = {"pretraining": AdamWSpec(epochs=1, learning_rate=1e-3, batch_size=100), "num_contracts": 5}
    made = small_model(data, store=tmp_path, **options)
    monkeypatch.setattr("jaxaudit.study.languagemodel._pretrain", lambda *args: pytest.fail("made again"))
    found = small_model(data, store=tmp_path, **options)
    assert made.fingerprint == found.fingerprint
    with pytest.raises(pytest.fail.Exception, match="made again"):
        small_model(data, store=tmp_path, seed=1, **options)


def test_the_fingerprint_follows_the_parameters(micro):
    moved = jax.tree.map(lambda leaf: leaf + np.float32(1e-3), micro.model.params)
    assert replace(micro.model, params=moved).fingerprint != micro.model.fingerprint
    assert replace(micro.model, name="other").fingerprint == micro.model.fingerprint


def test_bad_arguments_are_named():
    with pytest.raises(InputError, match="num_contracts must be an integer of at least 5, got 4"):
        make_background(dataset_1(), seed=0, num_contracts=4)
    with pytest.raises(InputError, match="size must be one of small, tiny, got 'huge'"):
        small_model(dataset_1(), size="huge")


def test_known_entities_need_contracts_between_companies():
    data = dataset_1()
    jobs = replace(data, contracts=[one for one in data.contracts if one.contract_type.name == "employment"])
    assert len(make_background(jobs, seed=0, num_contracts=5).records) == 100
    with pytest.raises(
        InputError, match="known must be empty unless the data have a contract between companies"
    ):
        make_background(jobs, seed=0, known={GOLDMAN_SACHS: 2})
