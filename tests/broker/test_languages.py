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
                if node.func.id in ("_", "gettext", "gettext_noop", "ngettext") and texts:
                    yield None, texts[0]
                elif node.func.id in ("pgettext", "npgettext"):
                    yield texts[0], texts[1]


def in_templates() -> Iterator[Key]:
    """Strings of the templates as Django itself reads and looks them up."""
    from django.template.loader import get_template
    from django.templatetags.i18n import BlockTranslateNode, TranslateNode

    for path in (HOME / "console" / "templates" / "console").glob("*.html"):
        nodes = get_template(f"console/{path.name}").template.nodelist
        for node in nodes.get_nodes_by_type(TranslateNode):
            context = node.message_context and str(node.message_context.var)
            yield context, str(node.filter_expression.var.literal).replace("%", "%%")
        for node in nodes.get_nodes_by_type(BlockTranslateNode):
            context = node.message_context and str(node.message_context.var)
            yield context, node.render_token_list(node.singular)[0]


def entries() -> Iterator[dict[str, str]]:
    """The catalogue as it stands in its file: msgctxt, msgid, msgid_plural, msgstr, msgstr[0] … of each entry."""
    for block in CATALOGUE.read_text(encoding="utf-8").split("\n\n"):
        yield {
            name: "".join(ast.literal_eval(line) for line in re.findall(r'^(?:msg\S+ )?(".*")$', lines, re.M))
            for name, lines in re.findall(r'^(msg\S+) ((?:".*"\n?)+)', block + "\n", re.M)
        }


def written() -> dict[Key, tuple[str, ...]]:
    """The translation of each text, or one for each number."""
    return {
        (entry.get("msgctxt"), entry["msgid"]): tuple(entry[name] for name in entry if name.startswith("msgstr"))
        for entry in entries()
    }


@pytest.fixture(scope="module")
def used(django_here: Path) -> set[Key]:
    return set(in_code()) | set(in_templates())


def test_every_string_is_in_the_catalogue_and_no_other(used: set[Key]) -> None:
    assert len(used) > 150
    assert used == set(written()) - {(None, "")}, FIX


def test_nothing_is_untranslated_or_doubtful() -> None:
    assert [key for key, said in written().items() if not all(text.strip() for text in said)] == []
    assert "fuzzy" not in CATALOGUE.read_text(encoding="utf-8")


def test_translations_keep_the_placeholders() -> None:
    holes = re.compile(r"%\(\w+\)[sd]|%%")
    for (_, text), said in written().items():
        for translated in said:
            assert sorted(holes.findall(text)) == sorted(holes.findall(translated)), text


def test_the_compiled_catalogue_is_up_to_date() -> None:
    with CATALOGUE.with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for (context, text), said in written().items():
        if text and len(said) == 1:
            assert (compiled.pgettext(context, text) if context else compiled.gettext(text)) == said[0], FIX
        elif text:
            for n, form in zip((1, 2), said, strict=True):
                number = compiled.npgettext(context, text, "", n) if context else compiled.ngettext(text, "", n)
                assert number == form, FIX


# Where sentences are made that the console may show; those for workers' devices are translated by the app.
SPEAKERS = (
    "broker/console/**/*.py",
    "broker/identity/*.py",
    "broker/results/*.py",
    "broker/studies/*.py",
    "broker/keys.py",
    "domain.py",
    "mechanisms/_integer_rounding.py",
    "mechanisms/optimal_scale.py",
    "mechanisms/piecewise.py",
    "mechanisms/discrete_gaussian.py",
    "plan/design.py",
)


def said_by_the_library() -> Iterator[str]:
    """Every sentence of an error or refusal in those files, its holes filled in with 7, and what to do about it."""
    for pattern in SPEAKERS:
        for path in HOME.parent.glob(pattern):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                    yield from _spelled(node)


def _spelled(call: ast.Call) -> Iterator[str]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name == "Refusal" and len(call.args) > 1:
        yield from _filled(call.args[1])
    elif name.endswith("Error"):
        yield from _filled(call.args[0])
        yield from (text for each in call.keywords if each.arg == "fix" for text in _filled(each.value))


def _filled(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in node.values)


def test_what_the_library_says_to_requesters_and_operators_can_be_translated(django_here: Path) -> None:
    from crowdveil.broker.console.i18n.translate import recognised

    sentences = set(said_by_the_library())
    assert len(sentences) > 70
    unknown = sorted(sentence for sentence in sentences if not recognised(sentence))
    assert unknown == [], f"add them to console/i18n/messages.py; then {FIX}"


def said_by_estimates() -> Iterator[str]:
    """Every warning, reason and floor that an estimate may carry: what its code returns, assigns or collects."""
    # The console shows no cross-tabulations, agreement or bounds of poisoning.
    others = {"crosstab.py", "agreement.py", "joint_distribution.py", "poisoning.py"}
    methods = [path for path in HOME.parent.glob("inference/**/*.py") if path.name not in others]
    for path in [*methods, HOME.parent / "bounds" / "information.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "objective":
                yield from filter(None, _filled(node.value) if node.value else ())
            elif isinstance(node, ast.Assign | ast.AugAssign | ast.Return) and "meaning" not in ast.unparse(node):
                yield from _texts(node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
                yield from (text for each in node.args for text in _texts(each))


def _texts(node: ast.expr | None) -> Iterator[str]:
    """Texts of a few words; facts of the provenance and what skills mean are not shown."""
    match node:
        case ast.Constant() | ast.JoinedStr():
            yield from (text for text in _filled(node) if len(text.split()) > 3)
        case ast.Tuple(elts=parts):
            yield from (text for part in parts for text in _texts(part))


def test_what_estimates_warn_of_can_be_translated(django_here: Path) -> None:
    from django.utils import translation

    from crowdveil.broker.console.i18n.translate import translate

    sentences = set(said_by_estimates())
    assert len(sentences) >= 15
    with translation.override("de"):
        # Some stand behind the number they are about.
        told = {text: translate(text) or translate(f"7: {text.removeprefix(': ')}") for text in sentences}
    unknown = sorted(text for text, said in told.items() if said is None or said == text)
    assert unknown == [], f"add them to console/i18n/messages.py; then {FIX}"


def test_sentences_are_filled_in_and_unknown_ones_are_marked(django_here: Path) -> None:
    from django.utils import translation

    from crowdveil.broker.console.i18n.translate import render_sentence
    from crowdveil.guarantee import Guarantee

    promise = str(Guarantee("value", 1.5, 1.0))
    with translation.override("de"):
        assert (
            render_sentence(promise)
            == "ε ≤ 1,5 für den Wert einer beantworteten Frage; ob eine Frage beantwortet wurde, ist sichtbar"
        )
        told = render_sentence("auto chose channel-em: a scale, whose channels are known")
        assert told == "gewählt wurde channel-em: eine Skala, deren Kanäle bekannt sind"
        assert render_sentence("a <new> sentence") == '<span lang="en">a &lt;new&gt; sentence</span>'
    with translation.override("en"):
        assert render_sentence(promise) == promise
