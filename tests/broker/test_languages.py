"""Every word of the console is translated, and the compiled catalogue is the one that was written."""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import crowdveil.broker as broker

HOME = Path(broker.__file__).parent
CATALOGUE = HOME / "locale" / "de" / "LC_MESSAGES" / "django.po"
FIX = "in src/crowdveil/broker run django-admin makemessages -l de --no-location --no-wrap, translate, compilemessages"
Key = tuple[str | None, str]


def in_code() -> Iterator[Key]:
    """Strings handed to gettext in the broker's modules."""
    for path in HOME.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                texts = [ast.literal_eval(each) for each in node.args if isinstance(each, ast.Constant)]
                if node.func.id in ("_", "gettext") and texts:
                    yield None, texts[0]
                elif node.func.id == "pgettext":
                    yield texts[0], texts[1]


def in_templates() -> Iterator[Key]:
    """Strings of the templates as Django itself reads and looks them up."""
    from django.template.loader import get_template
    from django.templatetags.i18n import BlockTranslateNode, TranslateNode

    for path in (HOME / "console" / "templates" / "console").glob("*.html"):
        nodes = get_template(f"console/{path.name}").template.nodelist
        for node in nodes.get_nodes_by_type(TranslateNode):
            yield None, str(node.filter_expression.var.literal).replace("%", "%%")
        for node in nodes.get_nodes_by_type(BlockTranslateNode):
            assert not node.plural, f"{path.name}: plural forms are not used here"
            yield None, node.render_token_list(node.singular)[0]


def written() -> dict[Key, str]:
    """The catalogue, entry by entry."""
    entries = {}
    for block in CATALOGUE.read_text(encoding="utf-8").split("\n\n"):
        found = {
            name: "".join(ast.literal_eval(line) for line in re.findall(r'^(?:msg\w+ )?(".*")$', lines, re.M))
            for name, lines in re.findall(r'^(msgctxt|msgid|msgstr) ((?:".*"\n?)+)', block + "\n", re.M)
        }
        entries[found.get("msgctxt"), found["msgid"]] = found["msgstr"]
    return entries


@pytest.fixture(scope="module")
def used(django_here: Path) -> set[Key]:
    return set(in_code()) | set(in_templates())


def test_every_string_is_in_the_catalogue_and_no_other(used: set[Key]) -> None:
    assert len(used) > 150
    assert used == set(written()) - {(None, "")}, FIX


def test_nothing_is_untranslated_or_doubtful() -> None:
    assert [key for key, said in written().items() if not said.strip()] == []
    assert "fuzzy" not in CATALOGUE.read_text(encoding="utf-8")


def test_translations_keep_the_placeholders() -> None:
    holes = re.compile(r"%\(\w+\)[sd]|%%")
    for (_, text), said in written().items():
        assert sorted(holes.findall(text)) == sorted(holes.findall(said)), text


def test_the_compiled_catalogue_is_up_to_date() -> None:
    with CATALOGUE.with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for (context, text), said in written().items():
        if text:
            assert (compiled.pgettext(context, text) if context else compiled.gettext(text)) == said, FIX
