"""The options that were seen in a table: which texts are missing answers, and which are one option spelled twice.

Nothing is guessed. A cell that is null, NaN, empty or blank is a question that was not answered. A text such as "NA"
may be a missing answer or an option, and spellings that differ only in white space, case or Unicode form may be one
option or two; both are refused by name unless the domain lists them, or the caller asks for spellings to be joined.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import combinations

from crowdveil.domain import Choices, Label, spell_label
from crowdveil.errors import DomainError
from crowdveil.exact import decimal_text

MISSING_TEXTS = frozenset({"na", "n/a", "#n/a", "nan", "-nan", "none", "null", "nat", "<na>"})
"""What programs write for a value that is missing, in small letters."""
MAX_TEXT_OPTIONS = 1_000
"""More different texts than that are free text; a domain that is named may have any number."""
# A number of ordinary size has one canonical spelling; 1e999999 would have a million digits.
_MAX_EXPONENT = 30
# Characters without width that split() does not take for white space.
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u2060\ufeff\u00ad"))


def clean_text(text: str) -> str:
    """The text in composed Unicode form (NFC), without invisible characters, with single spaces and none at the ends.

    >>> clean_text("  New\u00a0 York ")
    'New York'
    """
    return " ".join(unicodedata.normalize("NFC", text).translate(_INVISIBLE).split())


def comparison_key(text: str) -> str:
    """Equal for texts that differ only in white space, case, Unicode form or the way a number is written.

    >>> comparison_key(" YES"), comparison_key("1.0"), comparison_key("Straße")
    ('yes', '1', 'strasse')
    """
    folded = clean_text(unicodedata.normalize("NFKC", text).casefold())
    try:
        number = Decimal(folded)
    except InvalidOperation:
        return unicodedata.normalize("NFKC", folded)
    return decimal_text(number) if number.is_finite() and abs(number.adjusted()) <= _MAX_EXPONENT else folded


def find_similar(texts: Iterable[str]) -> tuple[str, str] | None:
    """Two different texts with the same comparison key, in alphabetical order; None where there are none."""
    groups: dict[str, set[str]] = {}
    for text in texts:
        groups.setdefault(comparison_key(text), set()).add(text)
    pairs = [pair for group in groups.values() if len(group) > 1 for pair in combinations(sorted(group), 2)]
    return min(pairs, default=None)


def describe_difference(first: str, second: str) -> str:
    """In what two spellings of one option differ.

    >>> describe_difference("yes", "yes "), describe_difference("yes", "Yes"), describe_difference("1", "1.0")
    ('white space', 'case', 'the way the number is written')
    """
    if " ".join(first.split()) == " ".join(second.split()):
        return "white space"
    if first.casefold() == second.casefold():
        return "case"
    if unicodedata.normalize("NFKC", first) == unicodedata.normalize("NFKC", second):
        return "Unicode form"
    if comparison_key(first)[:1] in "0123456789-":
        return "the way the number is written"
    return "white space, case or Unicode form"


def join_similar(counts: Mapping[str, int]) -> dict[str, str]:
    """Each spelling and the option it stands for: the most frequent spelling of its group, cleaned.

    >>> join_similar({"yes ": 5, "Yes": 2, "no": 1})
    {'yes ': 'yes', 'Yes': 'yes', 'no': 'no'}
    """
    groups: dict[str, Counter[str]] = {}
    for text, count in counts.items():
        groups.setdefault(comparison_key(text), Counter())[clean_text(text)] += count
    chosen = {key: min(group, key=lambda text: (-group[text], text)) for key, group in groups.items()}
    return {text: chosen[comparison_key(text)] for text in counts}


def options_by_key(domain: Choices) -> dict[str, int]:
    """The code of each option that is the only one with its comparison key."""
    keys = [comparison_key(option) for option in domain.options]
    unique = Counter(keys)
    return {key: code for code, key in enumerate(keys) if unique[key] == 1}


def choices_of(seen: Iterable[Label]) -> Choices:
    """Options that were seen: numbers in their order, other words in alphabetical order; similar ones are refused."""
    labels = list(seen)
    texts = [label for label in labels if isinstance(label, str)]
    for text in texts:
        if text.strip().lower() in MISSING_TEXTS:
            fix = "leave the cell empty, or name it among the options"
            raise DomainError(f"the answer {text!r} may be missing or an option", fix=fix)
    refuse_similar(texts)
    try:
        return Choices(tuple(sorted(labels, key=float)))
    except ValueError:
        return Choices(tuple(sorted(labels, key=spell_label)))


def refuse_similar(texts: Sequence[str]) -> None:
    """Options of which two differ only in their spelling are named, never silently counted as two."""
    pair = find_similar(texts)
    if pair is not None:
        raise DomainError(
            f"the options {pair[0]!r} and {pair[1]!r} differ only in {describe_difference(*pair)}",
            fix="correct one, normalize the answers, or name both as options",
        )
