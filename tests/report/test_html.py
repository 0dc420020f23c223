"""report.html: one file, no script, no network, nothing of a user's string is markup."""

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from jaxaudit.report.figures import draw_figures
from jaxaudit.report.html import render_html

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>&amp;'
VOID = {"meta", "img"}


class Page(HTMLParser):
    """Collects tags and text, and checks that tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.words = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


@pytest.fixture(scope="module")
def figures(report):
    return draw_figures(report)


def test_page_is_well_formed_and_self_contained(report, figures):
    text = render_html(report, figures)
    page = Page(text)
    assert page.open == []
    assert "<script" not in text
    assert "http" not in text
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "link", "iframe", "object", "form"}
    assert not any(
        name.startswith("on") or name == "href" for _, attributes in page.tags for name in attributes
    )
    assert "url(" not in text
    assert "@import" not in text


def test_images_are_part_of_the_page(report, figures):
    sources = [
        attributes["src"] for tag, attributes in Page(render_html(report, figures)).tags if tag == "img"
    ]
    prefix = "data:image/png;base64,"
    assert all(source.startswith(prefix) for source in sources)
    assert {base64.b64decode(source.removeprefix(prefix)) for source in sources} == set(figures.values())


def test_user_strings_are_no_markup(report):
    method = replace(report.methods[0], title=EVIL, description=EVIL)
    evil = replace(
        report,
        methods=(method,),
        spec={EVIL: EVIL},
        data={"name": EVIL},
        provenance={EVIL: EVIL},
        record_ids=((EVIL,),) * report.design.num_groups,
        timings={EVIL: 1.0},
    )
    text = render_html(evil, {})
    page = Page(text)
    assert "<script" not in text
    assert not any(tag in ("img", "script") for tag, _ in page.tags)
    assert page.words.count(EVIL) > 10


def test_verdicts_stand_out(report):
    styles = [attributes.get("class") for tag, attributes in Page(render_html(report, {})).tags if tag == "p"]
    assert styles[:2] == ["banner alarm", "banner"]


def test_every_number_of_the_table_is_shown(report, figures):
    words = re.sub(r"\s+", " ", Page(render_html(report, figures)).words)
    for title in (
        "eps direct*",
        "eps soft",
        "Thm 4.2",
        "ceiling",
        "FALSIFIED",
        "not falsified",
        "100.0/75.0/50.0",
    ):
        assert title in words
