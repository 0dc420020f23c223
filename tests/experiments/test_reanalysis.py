"""The re-analysis recovers the overlaps, gives the closed form where there is one, and says on what condition."""

import importlib
import json
from dataclasses import replace
from math import comb, log
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FOLDER = TESTS.parent / "experiments"
KEPT = FOLDER / "results" / "reanalysis"


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.fixture
def script():
    return importlib.import_module("reanalysis")


def cell(script, **wanted):
    (found,) = [
        each
        for each in script.printed_cells()
        if all(getattr(each, name) == value for name, value in wanted.items())
    ]
    return found


def known_overlaps():
    """Printed number and design -> overlap, found independently (by a scan over all means and medians)."""
    document = json.loads((TESTS / "bound" / "paper_tables.json").read_text())
    cells = [dict(zip(document["columns"], values)) for values in document["cells"]]
    return {
        (c["table"], c["num_groups"], c["num_guesses"], c["statistic"], c["printed"]): c["overlap"]
        for c in cells
    }


def test_every_cell_is_here(script):
    cells = script.printed_cells()
    assert [sum(each.table == table for each in cells) for table in "345"] == [80, 80, 26]
    assert len({(c.series, c.num_guesses) for c in cells}) == len(cells)
    printed = {(c.table, c.num_groups, c.num_guesses, c.statistic, c.printed) for c in cells if c.printed}
    assert printed == set(known_overlaps())


@pytest.mark.parametrize("table", ["4", "5"])
def test_recovered_overlaps(table, script):
    known = known_overlaps()
    # Of the large designs, which are slow, every fifth.
    cells = [c for c in script.printed_cells() if c.table == table and c.printed]
    for each in [c for i, c in enumerate(cells) if c.num_groups < 4500 or i % 5 == 0]:
        total, number = script.recover(each)
        overlap = known[each.table, each.num_groups, each.num_guesses, each.statistic, each.printed]
        # A median of x.5 counts as its next whole number.
        assert total / 10 == (overlap if each.statistic == "mean" else int(overlap + 0.5))
        assert number == 1


def test_the_examples_of_the_docstring(script):
    ascent = cell(
        script, table="3", method="ascent", split="uniform", score="logit", num_guesses=2000, statistic="mean"
    )
    row = script.analyse(ascent, num_looks=5)
    assert (row.overlap, ascent.printed) == (1418.4, 90.1105)
    assert row.direct == pytest.approx(182.7, abs=0.05)
    assert row.direct_at_delta == pytest.approx(182.7, abs=0.05)
    interleaved = cell(
        script, table="3", method="IDA, q = 1", split="adversarial", score="logit", num_guesses=1000
    )
    row = script.analyse(interleaved, num_looks=5)
    assert row.theorem == pytest.approx(0.41, abs=0.005)
    assert row.direct == pytest.approx(1.41, abs=0.005)
    assert row.direct_all_looks < row.direct


def test_perfect_overlaps_have_a_closed_form(script):
    """10 runs without a mistake: zeta = (e^epsilon P0)^10, and P0 by counting sign vectors."""
    perfect = [c for c in script.printed_cells() if c.table == "5" and c.num_groups == 45]
    assert len(perfect) == 6
    for each in perfect:
        row = script.analyse(each, num_looks=6)
        m, r = each.num_groups, each.num_guesses
        assert row.overlap == r
        log_chance = log(comb(m - r, (m - r) // 2)) - log(comb(m, m // 2))
        assert row.direct == pytest.approx(log(0.05) / 10 - log_chance, rel=1e-9)
        assert row.direct_all_looks == pytest.approx(log(0.05 / 6) / 10 - log_chance, rel=1e-9)


def test_a_printed_zero_is_only_bounded(script):
    zero = cell(script, table="5", num_groups=9, printed=0.0)
    row = script.analyse(zero, num_looks=4)
    design = (9, zero.num_guesses)
    total = round(10 * row.overlap)
    assert script.bound("theorem-4.2", "mean", design, total) <= 0.005
    assert script.bound("theorem-4.2", "mean", design, total + 1) > 0.005
    assert row.num_overlaps == total + 1
    assert row.direct == script.bound("direct", "mean", design, total)


def test_numbers_that_no_overlaps_print(script):
    impossible = replace(cell(script, table="5", num_groups=9, num_guesses=4), printed=9.99)
    with pytest.raises(ValueError, match=r"no overlaps print 9.99 at m = 9, r = 4"):
        script.recover(impossible)


def test_smoke(script, tmp_path, capsys):
    assert script.main(["--preset", "smoke", "--quiet"]) == 0
    assert "written" not in capsys.readouterr().out
    assert script.main(["--preset", "smoke", "--quiet", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "Table 5, by batch size B" in printed.out
    assert printed.err == ""
    result = json.loads((tmp_path / "reanalysis.json").read_text())
    assert len(result["rows"]) == 18
    page = (tmp_path / "reanalysis.md").read_text()
    for row in result["rows"]:
        assert row["theorem"] <= row["direct"]
        assert row["direct_at_delta"] <= row["direct"]
        assert f"{row['cell']['printed']:.2f} → " in page
    assert "only if the runs behind them met the conditions" in page
    assert "Each cell is one look" in page
    assert (tmp_path / "reanalysis.png").read_bytes().startswith(b"\x89PNG")


def test_wrong_arguments(script, capsys):
    assert script.main(["--preset", "smoke", "--quiet", "--out", f"{FOLDER}/README.md"]) == 2
    assert "README.md" in capsys.readouterr().err


def test_the_kept_results(script):
    kept = json.loads((KEPT / "reanalysis.json").read_text())
    assert [row["cell"] for row in kept["rows"]] == [vars(each) for each in script.printed_cells()]
    known = known_overlaps()
    for row in kept["rows"]:
        c = row["cell"]
        assert row["direct_all_looks"] <= row["direct"]
        assert row["direct_at_delta"] <= row["direct"]
        assert row["theorem"] <= row["direct"]
        if c["printed"]:
            overlap = known[c["table"], c["num_groups"], c["num_guesses"], c["statistic"], c["printed"]]
            assert row["overlap"] == (overlap if c["statistic"] == "mean" else int(overlap + 0.5))
            assert abs(row["theorem"] - c["printed"]) <= c["resolution"] / 2
            assert row["num_overlaps"] == 1
    # A few of them computed again.
    for position in (3, 44, 101, 165, 180):
        each = script.printed_cells()[position]
        fresh = script.analyse(each, sum(other.series == each.series for other in script.printed_cells()))
        assert fresh.direct == pytest.approx(kept["rows"][position]["direct"], rel=1e-6)
        assert fresh.direct_all_looks == pytest.approx(kept["rows"][position]["direct_all_looks"], rel=1e-6)
    rows = [script.Row(**{**row, "cell": script.Cell(**row["cell"])}) for row in kept["rows"]]
    page = importlib.import_module("reanalysis_page").page(rows, "paper", script.DELTA)
    assert (KEPT / "reanalysis.md").read_text() == page
