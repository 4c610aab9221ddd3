"""What linkable studies of one requester tell about its workers, by panel name, the running ones included.

Of a running study only what the newest batch of its estimates has counted: the choice of workers, and the error that is
expected of it, change with these reports, and must not show what a single person reported any more than estimates do.
"""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np

from crowdveil.broker.results.latest_batch import find_latest_batch
from crowdveil.broker.results.tables import Stored, everything, split_by_domain, table
from crowdveil.broker.studies.definition import Definition, read_definition
from crowdveil.broker.studies.models import Study
from crowdveil.domain import Domain
from crowdveil.errors import InputError
from crowdveil.reports import Reports
from crowdveil.selection import History


def build_history(study: Study) -> History | None:
    """All reports in the domain that this study asks in, or else in the one with most of them; None without any.

    A study that hides participation is left out: selection needs to see who answered.
    """
    past = Study.objects.filter(owner_id=study.owner_id).exclude(state="draft").order_by("id")
    by_domain: dict[Domain, list[Reports]] = defaultdict(list)
    for reports in (reports for each in past for reports in _tables(each)):
        by_domain[reports.domain].append(reports)
    asked_domains = {part.domain for part in split_by_domain(read_definition(study.definition, study.sha256))}
    fitting = [tables for domain, tables in by_domain.items() if domain in asked_domains] or list(by_domain.values())
    if not fitting:
        return None
    try:
        return History.from_reports(_join_tables(max(fitting, key=lambda tables: sum(map(len, tables)))))
    except InputError:
        return None


def _tables(study: Study) -> list[Reports]:
    opened = read_definition(study.definition, study.sha256)
    if not opened.document["linkable"] or opened.protects_participation:
        return []
    stored = _load_settled_reports(study, opened)
    return [table(part, stored, np.array(stored.pseudonyms)) for part in split_by_domain(opened)] if len(stored) else []


def _load_settled_reports(study: Study, opened: Definition) -> Stored:
    """The reports that this requester may have seen the effect of; of a closed study all, since those are exported."""
    stored = everything(study.id, opened)
    if study.state not in ("pilot", "open"):
        return stored
    batch = find_latest_batch(study.id)
    counted = {each["worker"] for each in json.loads(batch.estimates).get("workers", [])} if batch else set()
    counted_rows = np.array([name in counted for name in stored.pseudonyms], dtype=bool)
    return Stored(
        stored.codes[counted_rows], stored.levels[counted_rows], [name for name in stored.pseudonyms if name in counted]
    )


def _join_tables(tables: list[Reports]) -> Reports:
    """Tables of several studies as one: a worker is the same in all of them, a question is not."""
    names = sorted({str(name) for each in tables for name in each.workers})
    code_by_name = {name: code for code, name in enumerate(names)}
    codes = [np.array([code_by_name[str(name)] for name in each.workers], dtype=np.int32) for each in tables]
    question_at = np.cumsum([0, *(each.n_questions for each in tables)])
    channel_at = np.cumsum([0, *(len(each.channels) for each in tables)])
    return Reports(
        np.concatenate([code[each.worker] for code, each in zip(codes, tables, strict=True)]),
        np.concatenate([each.question + start for each, start in zip(tables, question_at[:-1], strict=True)]),
        np.concatenate([each.report for each in tables]),
        np.concatenate([each.channel + start for each, start in zip(tables, channel_at[:-1], strict=True)]),
        np.array(names),
        np.array([f"{number} {name}" for number, each in enumerate(tables) for name in each.questions]),
        tuple(channel for each in tables for channel in each.channels),
        tables[0].domain,
    )
