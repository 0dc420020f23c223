"""Generated data: consistent within entities and contracts, unique, and moved by the seed alone."""

from collections import Counter

import networkx as nx
import pytest

from jaxaudit.data.pistol import (
    chain,
    check_values,
    complete,
    dataset_1,
    dataset_2,
    generate,
    make_graph,
    parse,
    star,
)
from jaxaudit.data.pistol import generator as module
from jaxaudit.data.pistol.contracts import ContractType, Party, Question
from jaxaudit.data.pistol.values import Address
from jaxaudit.data.pistol.words import GOODS
from jaxaudit.errors import InputError


@pytest.mark.parametrize("make", [dataset_1, dataset_2])
def test_data_sets_pass_the_structural_checks(make):
    data = make(7)
    check_values(data)
    assert parse(data.records) == data
    assert set(Counter(record.edge for record in data.records).values()) == {20}
    assert all(record.answer.endswith(".") and record.question.endswith("?") for record in data.records)


def test_values_are_consistent_within_a_contract_and_an_entity():
    data = dataset_1(5)
    by_edge = {edge: [r.answer[:-1] for r in data.records if r.edge == edge] for edge in data.edges}
    for contract in data.contracts:
        answers = by_edge[contract.edge]
        if contract.contract_type.name == "sales":
            assert int(answers[6]) * int(answers[7]) == int(answers[8])
    addresses = {}
    for edge, answers in by_edge.items():
        sales = edge in data.edges[:10]
        places = ((1, 2), (3, 4)) if sales else ((0, 1), (2, 3))
        for name, address in places:
            addresses.setdefault(answers[name], set()).add(answers[address])
    assert len(addresses) == 24
    assert all(len(found) == 1 for found in addresses.values())


def test_names_addresses_and_goods_are_unique():
    data = dataset_2(1)
    addresses = [entity.address for entity in data.entities.values()]
    addresses += [contract.values["delivery address"] for contract in data.contracts]
    assert len(set(addresses)) == 30 + 75
    assert len({entity.name.split()[0] for entity in data.entities.values()}) == 30
    assert len({contract.values["good"] for contract in data.contracts}) == 75


def test_jobs_are_unique():
    assert len({c.values["job"] for c in dataset_1().contracts if "job" in c.values}) == 10


def test_an_entity_follows_from_its_label():
    one, other = (generate(make_graph([pair]), seed=0) for pair in (("A", "B", "sales"), ("B", "A", "sales")))
    assert one.entities == other.entities
    assert one.contracts[0].values != other.contracts[0].values


def test_a_name_that_is_taken_is_drawn_again(monkeypatch):
    drawn = iter(["Aaaaaa", "Aaaaaa", "Bbbbbb"])
    monkeypatch.setattr(module, "draw_word", lambda rng, length: next(drawn))
    data = generate(chain(2), seed=0)
    assert [entity.name.split()[0] for entity in data.entities.values()] == ["Aaaaaa", "Bbbbbb"]
    assert next(drawn, None) is None


def test_an_address_that_is_taken_is_drawn_again(monkeypatch):
    drawn = iter(["1 A", "1 A", "2 B", "1 A", "3 C"])
    monkeypatch.setattr(module, "draw_address", lambda rng: next(drawn))
    data = generate(chain(2), seed=0)
    assert [entity.address for entity in data.entities.values()] == ["1 A", "2 B"]
    assert data.contracts[0].values["delivery address"] == "3 C"


def test_goods_start_again_when_the_list_is_used_up():
    data = generate(star(104), seed=0)
    goods = [contract.values["good"] for contract in data.contracts]
    assert sorted(goods[:100]) == sorted(GOODS)
    assert goods[100:] == goods[:3]
    assert goods[:100] != list(GOODS)


def test_the_seed_decides_everything():
    assert dataset_1(3) == dataset_1(3)
    assert dataset_1(3).records == dataset_1(3).records
    one, other = dataset_1(3), dataset_1(4)
    assert not {e.name for e in one.entities.values()} & {e.name for e in other.entities.values()}
    assert all(a.values != b.values for a, b in zip(one.contracts, other.contracts, strict=True))


def test_graphs_share_what_they_have_in_common():
    """A sweep over graphs changes the graph alone."""
    sparse, dense = generate(chain(6), seed=2), generate(complete(6), seed=2)
    assert sparse.entities == dense.entities
    found = {contract.edge: contract for contract in dense.contracts}
    for contract in sparse.contracts:
        same = found[contract.edge]
        assert contract.parties == same.parties
        assert {k: v for k, v in contract.values.items() if k != "good"} == {
            k: v for k, v in same.values.items() if k != "good"
        }


def test_a_fair_coin_chooses_the_seller_and_the_company_employs():
    data = dataset_2(0)
    first = sum(contract.parties == contract.nodes for contract in data.contracts)
    # 75 fair coins: mean 37.5, standard deviation 4.3.
    assert abs(first - 37.5) < 4 * 4.33
    graph = nx.Graph()
    graph.add_node("x", kind="person")
    graph.add_edge("x", "Y", contract="employment")
    contract = generate(graph, seed=0).contracts[0]
    assert contract.edge == "x_Y"
    assert contract.parties == ("Y", "x")


def test_a_new_contract_type_is_data():
    parties = (Party("landlord", "person"), Party("tenant", "person"))
    questions = (
        Question("flat", "What does {landlord} let to {tenant}?"),
        Question("landlord", "Who lets {flat}?"),
        Question("landlord address", "Where is {landlord}?"),
        Question("tenant", "Who rents {flat}?"),
        Question("tenant address", "Where is {tenant}?"),
    )
    types = {"lease": ContractType("lease", parties, {"flat": Address()}, questions)}
    data = generate(make_graph([("u", "v", "lease")], types), seed=0, contract_types=types)
    assert len(data.records) == 5
    assert {entity.kind for entity in data.entities.values()} == {"person"}
    assert parse(data.records, types).records == data.records


@pytest.mark.parametrize(
    ("attributes", "kind", "message"),
    [
        (
            {"contract": "employment"},
            "company",
            r"edge 0_1 \(employment\) needs a company and a person, got a com",
        ),
        ({"contract": "sales"}, "person", r"edge 0_1 \(sales\) needs a company and a company, got a person"),
        ({"contract": "sales"}, "robot", "kind of node 0 must be one of company, person, got 'robot'"),
        ({}, "company", "contract of edge 0_1 must be one of sales, employment, got None"),
    ],
)
def test_bad_graphs(attributes, kind, message):
    graph = nx.Graph()
    graph.add_node(0, kind=kind)
    graph.add_edge(0, 1, **attributes)
    with pytest.raises(InputError, match=message):
        generate(graph, seed=0)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, True])
def test_bad_seeds(seed):
    with pytest.raises(InputError, match="seed must be an integer between 0 and"):
        dataset_1(seed)
