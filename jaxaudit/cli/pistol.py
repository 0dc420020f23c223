"""``jaxaudit pistol``: make data about contracts between entities, look into such a file, extend TOFU."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import networkx as nx
import tyro

from jaxaudit.cli.common import OK, show
from jaxaudit.cli.pistol_run import Run
from jaxaudit.data.pistol import graphs
from jaxaudit.data.pistol.contracts import ContractType
from jaxaudit.data.pistol.dataset import PistolData, replace_entity
from jaxaudit.data.pistol.generator import generate
from jaxaudit.data.pistol.parsing import check_values, parse
from jaxaudit.data.pistol.records import check_out_file, read_records, write_lines, write_records, write_rows
from jaxaudit.data.pistol.structure import edge_degrees, edge_domains, shared_questions, strata, summary
from jaxaudit.data.pistol.templates import CONTRACT_TYPES
from jaxaudit.data.pistol.tofu import read_tofu, structured_tofu
from jaxaudit.data.pistol.typefile import read_contract_type
from jaxaudit.data.pistol.words import REFUSALS
from jaxaudit.errors import InputError

Graph = Literal[
    "dataset-1",
    "dataset-2",
    "chain",
    "ring",
    "star",
    "complete",
    "regular",
    "erdos-renyi",
    "barabasi-albert",
]

# The function of each graph, and the options that are its sizes.
_GRAPHS: Mapping[Graph, tuple[Callable[..., nx.Graph], tuple[str, ...]]] = {
    "dataset-1": (graphs.dataset_1_graph, ()),
    "dataset-2": (graphs.dataset_2_graph, ()),
    "chain": (graphs.chain, ("nodes",)),
    "ring": (graphs.ring, ("nodes",)),
    "star": (graphs.star, ("nodes",)),
    "complete": (graphs.complete, ("nodes",)),
    "regular": (graphs.regular, ("nodes", "degree")),
    "erdos-renyi": (graphs.erdos_renyi, ("nodes", "edges", "probability")),
    "barabasi-albert": (graphs.barabasi_albert, ("nodes", "links")),
}
_RANDOM = ("regular", "erdos-renyi", "barabasi-albert")
_ARGUMENTS = {
    "nodes": "num_nodes",
    "edges": "num_edges",
    "degree": "degree",
    "links": "num_links",
    "probability": "probability",
}


@dataclass(frozen=True)
class Make:
    """Make questions and answers about contracts, for a data set of the paper or for another graph."""

    out: Path
    """The file to write, .json (as published) or .jsonl."""
    graph: Graph = "dataset-1"
    """Graph of the contracts."""
    edge_file: Path | None = None
    """Instead of --graph: a CSV file with columns first, second, contract."""
    nodes: int | None = None
    """Number of nodes, for all but the data sets."""
    edges: int | None = None
    """erdos-renyi: number of edges; or else --probability."""
    probability: float | None = None
    """erdos-renyi: probability of each edge."""
    degree: int | None = None
    """regular: contracts of each node."""
    links: int | None = None
    """barabasi-albert: contracts that each new node signs."""
    contract: str | None = None
    """Contract type of all edges, for all but the data sets; default sales."""
    contract_types: tuple[Path, ...] = ()
    """JSON files that describe further contract types."""
    replace: tuple[str, str, str] | None = None
    """Give a node another name and address: NODE NAME ADDRESS."""
    refusals: Path | None = None
    """Also write 100 ways to say "I don't know" to this file, one per line."""
    seed: int = 0
    """Seed of all names and values, and of random graphs."""
    overwrite: bool = False
    """Replace files that exist."""
    json: bool = False
    """Print one JSON object instead of the text."""

    def execute(self) -> int:
        """Carry out the command; returns the exit code."""
        check_out_file(self.out, self.overwrite)
        if self.refusals is not None:
            check_out_file(self.refusals, self.overwrite, suffixes=None)
        types = _contract_types(self.contract_types)
        data = generate(self._graph(types), seed=self.seed, contract_types=types)
        if self.replace is not None:
            node, name, address = self.replace
            data = replace_entity(data, node, name=name, address=address)
        write_records(self.out, data.records, overwrite=self.overwrite)
        if self.refusals is not None:
            write_lines(self.refusals, REFUSALS, overwrite=self.overwrite)
        document = {"file": str(self.out), "sha256": _sha256(self.out), "seed": self.seed, **summary(data)}
        show(f"{self.out}\n{_summary_text(data)}", document, self.json)
        return OK

    def _graph(self, types: Mapping[str, ContractType]) -> nx.Graph:
        given = {name: getattr(self, name) for name in _ARGUMENTS if getattr(self, name) is not None}
        if self.edge_file is not None:
            if self.graph != "dataset-1":
                raise InputError(f"give either --graph or --edge-file, got {self.graph} and {self.edge_file}")
            self._refuse("a graph from --edge-file", given, ())
            return graphs.read_graph(self.edge_file, types)
        function, sizes = _GRAPHS[self.graph]
        self._refuse(self.graph, given, sizes)
        for name in sizes:
            if name not in given and self.graph != "erdos-renyi":
                raise InputError(f"{self.graph} needs --{name}")
        if self.graph == "erdos-renyi" and ("nodes" not in given or len(given) != 2):
            raise InputError("erdos-renyi needs --nodes and one of --edges and --probability")
        arguments = {_ARGUMENTS[name]: value for name, value in given.items()}
        if self.graph in _RANDOM:
            arguments["seed"] = self.seed
        if sizes:
            arguments |= {"contract": self.contract or "sales", "contract_types": types}
        return function(**arguments)

    def _refuse(self, graph: str, given: Mapping[str, Any], sizes: tuple[str, ...]) -> None:
        """Raise if an option is given that this graph does not have."""
        wrong = [name for name in given if name not in sizes]
        wrong += ["contract"] if self.contract is not None and not sizes else []
        if wrong:
            raise InputError(f"--{wrong[0]} does not apply to {graph}")


@dataclass(frozen=True)
class Show:
    """Check a file of PISTOL data and show its structure; with --forget, what forgetting these edges means."""

    file: tyro.conf.Positional[Path]
    """A .json or .jsonl file of questions, answers and edges."""
    forget: tuple[str, ...] = ()
    """Edges to be forgotten, such as A_B."""
    contract_types: tuple[Path, ...] = ()
    """JSON files that describe further contract types."""
    json: bool = False
    """Print one JSON object instead of the text."""

    def execute(self) -> int:
        """Carry out the command; returns the exit code."""
        data = parse(read_records(self.file), _contract_types(self.contract_types))
        check_values(data)
        degrees, domains = edge_degrees(data), edge_domains(data)
        edges = {edge: {"domain": domains[edge], "degree": degrees[edge]} for edge in data.edges}
        document: dict[str, Any] = {"file": str(self.file), **summary(data), "edge": edges}
        lines = [f"{self.file}", _summary_text(data)]
        if self.forget:
            shared = shared_questions(data, self.forget)
            classes = strata(data, self.forget)
            document["forget"] = {
                "edges": list(self.forget),
                "shared_questions": sum(shared),
                "exclusive_questions": len(shared) - sum(shared),
                "retained": {name: list(members) for name, members in classes.items()},
            }
            lines += [
                *(f"forget {edge}: {domains[edge]}, degree {degrees[edge]}" for edge in self.forget),
                f"  {len(shared)} questions, of which {sum(shared)} have an answer that is also retained",
                *(f"  {name}: {' '.join(members)}" for name, members in classes.items()),
            ]
        show("\n".join(lines), document, self.json)
        return OK


@dataclass(frozen=True)
class Tofu:
    """Add relations with five other authors to one author of a file in TOFU's format (Structured TOFU)."""

    file: tyro.conf.Positional[Path]
    """A .json or .jsonl file of questions and answers, 20 per author."""
    out: Path
    """The file to write, .json or .jsonl."""
    author: int
    """The author to be forgotten, counted from 0."""
    related: tuple[int, ...]
    """At least five other authors; of more, five are drawn."""
    names: dict[int, str] = field(default_factory=dict)
    """Names of authors, as NUMBER NAME ..., where they are not found in the pairs."""
    seed: int = 0
    """Seed of the choice of authors, relations, years and of the pairs that go."""
    overwrite: bool = False
    """Replace the file if it exists."""
    json: bool = False
    """Print one JSON object instead of the text."""

    def execute(self) -> int:
        """Carry out the command; returns the exit code."""
        check_out_file(self.out, self.overwrite)
        pairs = read_tofu(self.file)
        result = structured_tofu(pairs, self.author, self.related, seed=self.seed, names=self.names)
        write_rows(self.out, [asdict(pair) for pair in result.pairs], overwrite=self.overwrite)
        document = {
            "file": str(self.out),
            "author": self.author,
            "replaced": list(result.replaced),
            "relations": {str(number): kind for number, kind in result.relations.items()},
        }
        relations = ", ".join(f"{number} ({kind})" for number, kind in result.relations.items())
        text = f"{self.out}: author {self.author} is now related to {relations}"
        show(text, document, self.json)
        return OK


_Action = (
    Annotated[Make, tyro.conf.subcommand("make", prefix_name=False)]
    | Annotated[Show, tyro.conf.subcommand("show", prefix_name=False)]
    | Annotated[Tofu, tyro.conf.subcommand("tofu", prefix_name=False)]
    | Annotated[Run, tyro.conf.subcommand("run", prefix_name=False)]
)


@dataclass(frozen=True)
class Pistol:
    """Make and inspect PISTOL data, and forget edges of it. Each action has its own --help, and takes --json."""

    action: Annotated[_Action, tyro.conf.arg(name="")]
    """What to do."""

    def execute(self) -> int:
        """Carry out the command; returns the exit code."""
        return self.action.execute()


def _contract_types(paths: tuple[Path, ...]) -> dict[str, ContractType]:
    types = dict(CONTRACT_TYPES)
    for path in paths:
        contract_type = read_contract_type(path)
        if contract_type.name in types:
            raise InputError(f"{path}: there is a contract type {contract_type.name!r} already")
        types[contract_type.name] = contract_type
    return types


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _summary_text(data: PistolData) -> str:
    facts = summary(data)
    domains = ", ".join(f"{number} {name}" for name, number in facts["domains"].items())
    parts = [
        f"  part of {part['nodes']} nodes: {part['edges']} edges, density {part['density']:g}, "
        f"mean edge degree {part['mean_edge_degree']:g}"
        for part in facts["parts"]
    ]
    sizes = f"{facts['nodes']} nodes, {facts['edges']} edges ({domains}), {facts['questions']} questions"
    return "\n".join([sizes, *parts])
