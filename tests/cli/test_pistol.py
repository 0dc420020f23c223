"""``jaxaudit pistol``: files as the library makes them, summaries, and clear words about wrong options."""

import hashlib
import json
from pathlib import Path

import pytest

from jaxaudit.data.pistol import (
    REFUSALS,
    chain,
    dataset_1,
    dataset_2,
    erdos_renyi,
    generate,
    read_records,
    regular,
    replace_entity,
    star,
    strata,
)


@pytest.fixture
def pistol(cli, monkeypatch):
    """Calls the command."""
    return lambda *arguments: cli("pistol", *arguments)


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ((), dataset_1()),
        (("--graph", "dataset-2", "--seed", 5), dataset_2(5)),
        (("--graph", "chain", "--nodes", 4), generate(chain(4), seed=0)),
        (
            ("--graph", "star", "--nodes", 3, "--contract", "employment"),
            generate(star(3, contract="employment"), seed=0),
        ),
        (
            ("--graph", "regular", "--nodes", 6, "--degree", 3, "--seed", 2),
            generate(regular(6, 3, seed=2), seed=2),
        ),
        (
            ("--graph", "erdos-renyi", "--nodes", 6, "--edges", 5, "--seed", 2),
            generate(erdos_renyi(6, num_edges=5, seed=2), seed=2),
        ),
        (
            ("--replace", "A", "Goldman Sachs", "200 West Street"),
            replace_entity(dataset_1(), "A", name="Goldman Sachs", address="200 West Street"),
        ),
    ],
)
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_make(pistol, options, data, suffix):
    path = f"out.{suffix}"
    outcome = pistol("make", "--out", path, *options, "--json")
    assert outcome.code == 0
    assert read_records(path) == data.records
    assert outcome.document["questions"] == len(data.records)
    assert outcome.document["sha256"] == hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_text_and_refusals(pistol):
    outcome = pistol("make", "--out", "a.json", "--graph", "ring", "--nodes", 5, "--refusals", "no.txt")
    assert outcome.out.splitlines() == [
        "a.json",
        "5 nodes, 5 edges (5 sales), 100 questions",
        "  part of 5 nodes: 5 edges, density 0.5, mean edge degree 3",
    ]
    assert tuple(Path("no.txt").read_text().splitlines()) == REFUSALS


def test_own_graph_and_contract_type(pistol):
    Path("edges.csv").write_text("first,second,contract\nA,B,sales\nA,x,lease\n")
    lease = {
        "name": "lease",
        "parties": [{"role": "landlord", "kind": "company"}, {"role": "tenant", "kind": "person"}],
        "attributes": {"rent": {"kind": "integer", "low": 300, "high": 900}},
        "questions": [
            {"answer": field, "text": f"What is the {field} of the lease of {{landlord}}?"}
            for field in ("rent", "landlord", "landlord address", "tenant", "tenant address")
        ],
    }
    Path("lease.json").write_text(json.dumps(lease))
    types = ("--contract-types", "lease.json")
    outcome = pistol("make", "--out", "a.json", "--edge-file", "edges.csv", *types, "--json")
    assert outcome.document["domains"] == {"sales": 1, "lease": 1}
    outcome = pistol("show", "a.json", *types, "--forget", "A_x", "--json")
    assert outcome.document["forget"]["shared_questions"] == 1
    outcome = pistol("make", "--out", "b.json", "--contract-types", "lease.json", "lease.json")
    assert "there is a contract type 'lease' already" in outcome.err


def test_show(pistol):
    pistol("make", "--out", "a.json")
    outcome = pistol("show", "a.json", "--forget", "A_C", "--json")
    data = dataset_1()
    assert outcome.document["edge"]["A_B"] == {"domain": "sales", "degree": 14}
    assert outcome.document["forget"] == {
        "edges": ["A_C"],
        "shared_questions": 1,
        "exclusive_questions": 19,
        "retained": {name: list(edges) for name, edges in strata(data, ["A_C"]).items()},
    }
    outcome = pistol("show", "a.json", "--forget", "A_B")
    assert "forget A_B: sales, degree 14" in outcome.out
    assert "20 questions, of which 2 have an answer that is also retained" in outcome.out
    assert "disconnected: E1_F1 E2_F2 E3_F3 E1_q1 E2_q2 E3_q3" in outcome.out


def test_tofu(pistol):
    rows = [
        {"question": f"What is fact {fact} about Ann{'abcdef'[author]} Lee?", "answer": "So it is."}
        for author in range(6)
        for fact in range(20)
    ]
    Path("full.json").write_text(json.dumps(rows))
    options = ("--author", 5, "--related", 0, 1, 2, 3, 4)
    outcome = pistol("tofu", "full.json", "--out", "new.json", *options, "--json")
    assert sorted(outcome.document["relations"]) == list("01234")
    new = json.loads(Path("new.json").read_text())
    assert [place for place in range(120) if new[place] != rows[place]] == outcome.document["replaced"]
    outcome = pistol("tofu", "full.json", "--out", "again.json", *options)
    assert "author 5 is now related to 0 (" in outcome.out
    pistol("tofu", "full.json", "--out", "named.json", *options, "--names", 5, "Nobody Known", 0, "Ann Other")
    texts = [pair["question"] + pair["answer"] for pair in json.loads(Path("named.json").read_text())]
    assert sum("Ann Other" in text for text in texts) == 2
    assert sum("Nobody Known" in text for text in texts) == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--graph", "chain"), "chain needs --nodes"),
        (("--graph", "regular", "--nodes", 4), "regular needs --degree"),
        (("--nodes", 4), "--nodes does not apply to dataset-1"),
        (("--contract", "sales"), "--contract does not apply to dataset-1"),
        (("--graph", "chain", "--nodes", 4, "--degree", 2), "--degree does not apply to chain"),
        (("--graph", "erdos-renyi", "--nodes", 4), "needs --nodes and one of --edges and --probability"),
        (
            ("--graph", "chain", "--nodes", 4, "--contract", "loan"),
            "must be one of sales, employment, got 'loan'",
        ),
        (("--graph", "chain", "--nodes", 1), "num_nodes must be an integer of at least 2, got 1"),
        (("--graph", "chain", "--edge-file", "e.csv"), "give either --graph or --edge-file"),
        (("--edge-file", "none.csv"), "no such file: none.csv"),
        (("--edge-file", "none.csv", "--nodes", 3), "--nodes does not apply to a graph from --edge-file"),
        (("--seed", -1), "seed must be an integer between 0"),
        (("--replace", "Z", "Name", "Street"), "node must be one of A, B"),
        (("--out", "a.txt"), "out must be a .json or .jsonl file, got a.txt"),
        (("--out", "none/a.json"), "folder none does not exist"),
        (("--refusals", "none/a.txt"), "folder none does not exist"),
    ],
)
def test_bad_options(pistol, options, message):
    out = () if "--out" in options else ("--out", "a.json")
    outcome = pistol("make", *out, *options)
    assert outcome.code == 2
    assert message in outcome.err
    assert not list(Path().iterdir())


def test_files_are_not_replaced_unasked(pistol):
    pistol("make", "--out", "a.json")
    outcome = pistol("make", "--out", "a.json", "--seed", 1)
    assert outcome.code == 2
    assert "a.json already exists" in outcome.err
    assert read_records("a.json") == dataset_1().records
    assert pistol("make", "--out", "a.json", "--seed", 1, "--overwrite").code == 0
    assert read_records("a.json") == dataset_1(1).records


def test_help_names_the_actions(pistol):
    outcome = pistol("--help")
    assert outcome.code == 0
    assert all(word in outcome.out for word in ("make", "show", "tofu", "--json"))
