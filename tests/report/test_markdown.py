"""report.md."""

import re
from dataclasses import replace

import pytest

from jaxaudit.report.figures import FIGURE_NAMES
from jaxaudit.report.markdown import escape, render_markdown


def test_structure(report):
    text = render_markdown(report, FIGURE_NAMES)
    assert text.startswith("# Audit of machine unlearning\n\n## In short\n")
    assert "### method leaky" in text
    assert {f"]({name})" in text for name in FIGURE_NAMES} == {True}
    assert "    jaxaudit verify DIR" in text


def test_verdicts_stand_out(report):
    leaky, blind = render_markdown(report, ()).split("\n\n")[2:4]
    assert leaky.startswith("> **method leaky**\n>\n> **Falsified at level 0.05")
    assert leaky.endswith("**")
    assert blind.startswith("> **method blind**\n>\n> Not falsified: ")
    assert not blind.endswith("**")


def test_tables_are_rectangular(report):
    cells = [line.count(" | ") for line in render_markdown(report, ()).splitlines() if line.startswith("| ")]
    headers = [
        index
        for index, line in enumerate(render_markdown(report, ()).splitlines())
        if line.startswith("| ---")
    ]
    assert len(headers) >= 8
    assert min(cells) >= 1
    blocks = re.findall(r"(?:^\| .*\n)+", render_markdown(report, ()), flags=re.M)
    for block in blocks:
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(counts) == 1, block


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a_b _c_", r"a_b \_c\_"),
        ("<script>", "&lt;script>"),
        ("a | b", r"a \| b"),
        ("[x](y) `z` *w*", r"\[x\](y) \`z\` \*w\*"),
        ("two\n\n# lines", r"two \# lines"),
        ("&lt;", "&amp;lt;"),
    ],
)
def test_escape(text, escaped):
    assert escape(text) == escaped


def test_user_strings_are_no_markup(report):
    evil = "<script>|**x**\n# head"
    method = replace(report.methods[0], title=evil, description=evil)
    text = render_markdown(
        replace(report, methods=(method,), data={"name": evil}, provenance={evil: evil}), ()
    )
    assert "<script>" not in text
    assert "**x**" not in text
    assert not re.search(r"^# head", text, flags=re.M)
