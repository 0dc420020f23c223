"""PISTOL: questions about contracts between entities of a graph, to study what forgetting an edge does.

Reference: X. Qiu et al., "How Data Inter-connectivity Shapes LLMs Unlearning: A Structural Unlearning
Perspective", arXiv 2406.16810v2 (2025).
"""

from jaxaudit.data.pistol.authors import AuthorData, author_label, relate_authors
from jaxaudit.data.pistol.contracts import Contract, ContractType, Entity, Party, Question
from jaxaudit.data.pistol.dataset import (
    GOLDMAN_SACHS,
    WILLIAM_SHAKESPEARE,
    GroupedRecords,
    PistolData,
    Record,
    replace_entity,
)
from jaxaudit.data.pistol.generator import dataset_1, dataset_2, generate
from jaxaudit.data.pistol.graphs import (
    barabasi_albert,
    chain,
    combine,
    complete,
    dataset_1_graph,
    dataset_2_graph,
    erdos_renyi,
    make_graph,
    read_graph,
    regular,
    ring,
    semi_dense,
    star,
)
from jaxaudit.data.pistol.parsing import check_values, parse
from jaxaudit.data.pistol.records import read_records, write_records
from jaxaudit.data.pistol.structure import (
    address_questions,
    edge_degrees,
    edge_distances,
    edge_domains,
    guessing_floor,
    shared_questions,
    split_records,
    strata,
    summary,
)
from jaxaudit.data.pistol.templates import CONTRACT_TYPES, EMPLOYMENT, SALES
from jaxaudit.data.pistol.tofu import Pair, StructuredTofu, read_tofu, structured_tofu
from jaxaudit.data.pistol.typefile import read_contract_type
from jaxaudit.data.pistol.words import REFUSALS

__all__ = [
    "CONTRACT_TYPES",
    "EMPLOYMENT",
    "GOLDMAN_SACHS",
    "REFUSALS",
    "SALES",
    "WILLIAM_SHAKESPEARE",
    "AuthorData",
    "Contract",
    "ContractType",
    "Entity",
    "GroupedRecords",
    "Pair",
    "Party",
    "PistolData",
    "Question",
    "Record",
    "StructuredTofu",
    "address_questions",
    "author_label",
    "barabasi_albert",
    "chain",
    "check_values",
    "combine",
    "complete",
    "dataset_1",
    "dataset_1_graph",
    "dataset_2",
    "dataset_2_graph",
    "edge_degrees",
    "edge_distances",
    "edge_domains",
    "erdos_renyi",
    "generate",
    "guessing_floor",
    "make_graph",
    "parse",
    "read_contract_type",
    "read_graph",
    "read_records",
    "read_tofu",
    "regular",
    "relate_authors",
    "replace_entity",
    "ring",
    "semi_dense",
    "shared_questions",
    "split_records",
    "star",
    "strata",
    "structured_tofu",
    "summary",
    "write_records",
]
