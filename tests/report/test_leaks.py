"""The page of leaks: every owner and group where the leakage puts it, and nothing of a text is markup."""

import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.report.leaks import GroupOrigin, leak_sections, leaks_by_owner, write_leaks
from tests.report.conftest import GROUPS

EVIL = "<script>alert(1)</script> | *a*"


def origins_of(owners):
    return [GroupOrigin(owner, f"text of group {group}") for group, owner in enumerate(owners)]


ORIGINS = origins_of(["ANN"] * 4 + ["BOB"] * 7 + ["CAT"])


def test_owners_are_added_up_over_their_groups(clear):
    (method,) = clear.methods
    leakage = method.analysis.leakage
    log_odds = (method.audited.signs * method.analysis.log_ratios).sum(axis=0)  # from the definition
    recognised = {
        record.group for record in leakage.records if record.q_value <= leakage.false_discovery_rate
    }
    assert recognised
    owners = leaks_by_owner(method, ORIGINS)
    assert {one.owner for one in owners} == {"ANN", "BOB", "CAT"}
    for one in owners:
        mine = [group for group in range(GROUPS) if ORIGINS[group].owner == one.owner]
        assert one.num_groups == len(mine)
        assert one.num_recognised == len(recognised & set(mine))
        assert one.mean_log_odds == pytest.approx(np.mean(log_odds[mine]))
    means = [one.mean_log_odds for one in owners]
    assert means == sorted(means, reverse=True)


def test_groups_are_listed_in_the_order_of_the_leakage(clear):
    (opening, section) = leak_sections(clear, ORIGINS, num_groups=3, num_owners=2)
    assert "Keep it as safe" in opening.blocks[0].text
    owners, more, groups = section.blocks
    assert len(owners.rows) == 2
    assert more.text.startswith("1 more owner")
    records = clear.methods[0].analysis.leakage.records[:3]
    assert [row[-1] for row in groups.rows] == [f"text of group {record.group}" for record in records]
    assert groups.rows[0][0].startswith(f"r{records[0].group}a")


def test_a_silent_method_shows_nothing(silent):
    assert "nothing is recognised" in leak_sections(silent, ORIGINS)[1].blocks[0].text


def test_one_origin_per_group(clear):
    with pytest.raises(InputError, match="origins must have one entry per group, 12, got 11"):
        leak_sections(clear, ORIGINS[:-1])


def test_pages_hold_the_texts_and_no_foreign_markup(clear, tmp_path):
    origins = [GroupOrigin(EVIL, EVIL)] * GROUPS
    paths = write_leaks(tmp_path, clear, origins)
    assert [path.name for path in paths] == ["leaks.md", "leaks.html"]
    for path in paths:
        text = path.read_text()
        assert "alert(1)" in text
        assert "<script>" not in text
    assert "\\*a\\*" in paths[0].read_text()
