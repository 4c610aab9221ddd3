"""The quasi-identifier guard: warns when one requester's studies together ask for what tells people apart.

Birth date, gender and postcode single out most people (Sweeney 2000); Loki's authors joined three harmless surveys
to find out who was ill. Randomised answers stay randomised, but nobody should be asked for the set unawares.
"""

from __future__ import annotations

import re

from crowdveil.broker.identity.models import Account
from crowdveil.broker.studies.draft import Draft
from crowdveil.broker.studies.models import Study

# What a question's words give away even where the requester did not tag it.
_WORDS = {
    "birth-date": r"birth ?(day|date)|date of birth|born|star sign|zodiac|how old|\bage\b|year of birth",
    "gender": r"\bgender\b|\bsex\b|male or female",
    "postcode": r"post ?code|\bzip\b|where do you live|neighbou?rhood|home town|suburb",
    "occupation": r"occupation|profession|job title|your job",
    "employer": r"employer|company do you work|where do you work",
    "ethnicity": r"ethnic|\brace\b|nationality|country of birth|mother tongue",
    "household": r"household|marital|married|how many children",
    "name": r"your (full )?name\b|surname|e-?mail|phone number",
}
_ENOUGH = 3


def find_tags(draft: Draft) -> set[str]:
    """What the questions of one study ask about: the requester's tags and what their words say."""
    tags = {tag for question in draft.questions for tag in question.identifying}
    for question in draft.questions:
        text = question.text.lower()
        tags |= {tag for tag, pattern in _WORDS.items() if re.search(pattern, text)}
    return tags


def warnings_about(owner: Account, *, also: set[str] | None = None) -> list[str]:
    """What this requester's piloted and opened studies ask for together, if it can tell people apart."""
    asked = Study.objects.filter(owner=owner).exclude(state="draft").values_list("identifying", flat=True)
    tags = {tag for line in asked for tag in line.split()} | (also or set())
    return [sentence] if (sentence := warning(tags)) else []


def warning(tags: set[str]) -> str:
    quasi = sorted(tags)
    if "name" not in tags and len(quasi) < _ENOUGH:
        return ""
    words = ", ".join(tag.replace("-", " ") for tag in quasi)
    return f"this requester's studies together ask for {words}: joined, such answers can tell who somebody is"
