"""The published files, where they are: this package reads them, finds their structure, and writes them back."""

import json
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from jaxaudit.data import pistol

FOLDER = Path(os.environ.get("JAXAUDIT_DATA", "")) / "pistol"
published = pytest.mark.skipif(
    not (FOLDER / "sample_data_1.json").is_file(), reason="JAXAUDIT_DATA has no pistol/sample_data_1.json"
)
GRAPHS = {1: pistol.dataset_1_graph, 2: pistol.dataset_2_graph}


def load(number):
    return pistol.parse(pistol.read_records(FOLDER / f"sample_data_{number}.json"))


def rouge_1(truth, guess):
    """ROUGE-1 recall; without stems, which here are equal exactly where the words are."""
    words, others = (Counter(re.findall("[a-z0-9]+", text.lower())) for text in (truth, guess))
    return (words & others).total() / max(words.total(), 1)


def test_all_names_exist():
    assert all(hasattr(pistol, name) for name in pistol.__all__)
    assert len(set(pistol.__all__)) == len(pistol.__all__)


@published
@pytest.mark.parametrize("number", [1, 2])
def test_published_files_are_read_and_written_back(number, tmp_path):
    source = FOLDER / f"sample_data_{number}.json"
    data = load(number)
    pistol.check_values(data)
    pistol.write_records(tmp_path / "again.json", data.records)
    assert (tmp_path / "again.json").read_bytes() == source.read_bytes()


@published
@pytest.mark.parametrize("number", [1, 2])
def test_published_graphs_are_those_made_here(number):
    data, graph = load(number), GRAPHS[number]()
    edges = [f"{u}_{v}" for u, v, _ in pistol.graphs.edges_in_order(graph)]
    assert list(data.edges) == edges
    assert {str(node): kind for node, kind in graph.nodes(data="kind")} == dict(data.graph.nodes(data="kind"))
    assert pistol.edge_domains(data) == dict(
        zip(edges, [c for _, _, c in pistol.graphs.edges_in_order(graph)], strict=True)
    )


@published
def test_published_shared_facts():
    shared = {edge: sum(pistol.shared_questions(load(1), [edge])) for edge in load(1).edges}
    assert shared.pop("A_B") == 2
    assert set(shared.values()) == {1}
    data = load(2)
    shared = {edge: sum(pistol.shared_questions(data, [edge])) for edge in data.edges}
    assert [edge for edge, number in shared.items() if number == 1] == ["0_1", "8_9"]
    assert Counter(shared.values()) == {1: 2, 2: 73}


@published
@pytest.mark.parametrize(("edge", "floor"), [("A_B", 0.317), ("A_C", 0.263), ("A_n", 0.280)])
def test_published_guessing_floor(edge, floor):
    """Values measured on the published file by an independent script."""
    assert np.mean(pistol.guessing_floor(load(1), [edge], rouge_1)) == pytest.approx(floor, abs=5e-4)


@published
def test_word_lists_are_not_the_published_ones():
    answers = {record["answer"] for record in json.loads((FOLDER / "sample_data_2.json").read_text())}
    own = {f"{word}." for word in pistol.words.GOODS}
    assert len(own & answers) < 5
    lines = (FOLDER / "idontknow.jsonl").read_text().splitlines()
    assert not set(pistol.REFUSALS) & {line.strip() for line in lines}
