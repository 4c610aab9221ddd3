"""Reports files: worker, question, report, channel, with the channels in Parquet metadata or in a file beside.

An empty report cell (Parquet null) is a reported ∅, a subset is a JSON list. A file with reports but without
channels is refused, never read as unprotected; a file with answers is read through the identity channel.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.channel import Channel, Output
from crowdveil.channel.additive_noise import FORMAT as NOISE_FORMAT
from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.channel.joint import FORMAT as JOINT_FORMAT
from crowdveil.channel.joint import JointChannel
from crowdveil.domain import Choices, Domain, Scale
from crowdveil.errors import FileError, InputError
from crowdveil.files.answers import answers_in, refuse_duplicates
from crowdveil.files.paths import is_stream
from crowdveil.files.paths import sidecar as sidecar
from crowdveil.files.problems import no_channel_column, not_a_number, unknown_channel, unknown_report
from crowdveil.files.table import TextTable, both_ids, parse_label, read_table
from crowdveil.files.write import coded_column, id_texts, is_parquet, write_table
from crowdveil.reports import AnyChannel, Reports

FORMAT = "crowdveil-channels/1"
METADATA_KEY = b"crowdveil-channels"


def read_reports(
    path: str | Path,
    domain: Domain | None = None,
    *,
    worker: str | None = None,
    question: str | None = None,
    answer: str | None = None,
    normalize: bool = False,
) -> Reports:
    """Read reports with their channels, or unprotected answers through the identity channel.

    `worker`, `question` and `answer` name the columns where the file names them otherwise. `normalize` joins spellings
    of an answer that differ only in white space, case or Unicode form; otherwise these are refused.
    """
    names = {"worker": worker, "question": question, "answer": answer}
    reports = _read(path, domain, names, normalize)
    # The texts are codes by now; Arrow would keep their memory for more texts while a fit wants it for itself.
    pa.default_memory_pool().release_unused()
    return reports


def _read(path: str | Path, domain: Domain | None, names: Mapping[str, str | None], normalize: bool) -> Reports:
    table = read_table(path, ["worker", "question", ("report", "answer")], optional=["channel"], names=names)
    if "report" not in table:
        return Reports.unprotected(answers_in(table, domain, normalize=normalize))
    channels, own_domain = channels_beside(Path(path), table.metadata.get(METADATA_KEY))
    return reports_in(table, channels, domain or own_domain)


def reports_in(table: TextTable, channels: tuple[AnyChannel, ...], domain: Domain) -> Reports:
    """The reports of a table that has been read already."""
    (worker, workers), (question, questions) = both_ids(table)
    refuse_duplicates(table, worker, question, len(questions))
    channel = _channel_column(table, len(channels))
    report, number = _report_column(table, channel, channels)
    return Reports(worker, question, report, channel, workers, questions, channels, domain, number)


def channels_json(channels: tuple[AnyChannel, ...], domain: Domain) -> dict[str, object]:
    """The channels and the domain they share, as they travel with reports."""
    return {"format": FORMAT, "domain": domain_json(domain), "channels": [channel.to_json() for channel in channels]}


def domain_json(domain: Domain) -> dict[str, object]:
    """A domain as JSON: exact decimals as text; `labels` names the type of options that are no texts."""
    if isinstance(domain, Choices):
        kinds = {type(label) for label in domain.labels}
        kind = kinds.pop().__name__ if len(kinds) == 1 else "str"
        return {"options": list(domain.options)} | ({} if kind == "str" else {"labels": kind})
    return {"scale": [str(domain.low), str(domain.high), str(domain.step)]}


def domain_from_json(data: Any) -> Domain:
    """The domain that `domain_json` spelled."""
    match data:
        case {"options": list(options), "labels": ("int" | "float" | "bool") as kind}:
            return Choices(tuple(parse_label(option, kind) for option in options))
        case {"options": list(options)}:
            return Choices(tuple(options))
        case {"scale": [low, high, step]}:
            return Scale(low, high, step)
    raise FileError(f"a domain has options or a scale; got {data!r}", fix="make the reports again")


def channels_from_json(data: Any) -> tuple[tuple[AnyChannel, ...], Domain]:
    """Read channels and domain; anything tampered with is refused."""
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("channels"), list):
        raise FileError(f"channels must have the format {FORMAT!r}", fix="make the reports again")
    channels = tuple(_any_channel(entry) for entry in data["channels"])
    return channels, domain_from_json(data.get("domain"))


def write_reports(path: str | Path, reports: Reports, *, beside: str | Path | None = None) -> None:
    """Write reports as CSV (channels in the file `beside`) or Parquet (channels inside)."""
    channels = json.dumps(channels_json(reports.channels, reports.domain), ensure_ascii=False)
    columns = {
        "worker": coded_column(reports.worker, id_texts(reports.workers)),
        "question": coded_column(reports.question, id_texts(reports.questions)),
        "report": _spelled_reports(reports),
        "channel": pa.array(reports.channel),
    }
    write_table(path, columns, {METADATA_KEY: channels.encode()})
    if not is_parquet(path):
        Path(beside or sidecar(path)).write_text(channels + "\n", encoding="utf-8")


def _any_channel(entry: Any) -> AnyChannel:
    if isinstance(entry, dict) and entry.get("format") == NOISE_FORMAT:
        return NoiseRecord.from_json(entry)
    if isinstance(entry, dict) and entry.get("format") == JOINT_FORMAT:
        return JointChannel.from_json(entry)
    return Channel.from_json(entry)


def channels_beside(path: Path, inside: bytes | None = None) -> tuple[tuple[AnyChannel, ...], Domain]:
    """The channels inside a Parquet file, or else in the file beside it; without any, reports are refused."""
    beside = [sidecar(path), path.with_suffix(".channels.json")]
    text = inside
    source = path.name
    for candidate in beside:
        if text is None and candidate.is_file():
            text, source = candidate.read_bytes(), candidate.name
    if text is None:
        put = "send Parquet, which holds them" if is_stream(path) else f"put {beside[0].name} beside it"
        raise FileError(
            "the file has reports but no channels, so nobody can tell how they were randomised",
            fix=f"{put}, or name the column 'answer' if these are unprotected answers",
            source=path.name,
            field="report",
        )
    try:
        return channels_from_json(json.loads(text))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise FileError("the channels are not JSON", fix="make the reports again", source=source) from None
    except InputError as error:
        raise error.at(source=source) from None


def _channel_column(table: TextTable, n_channels: int) -> NDArray[np.int16]:
    if "channel" not in table:
        if n_channels != 1:
            problem = no_channel_column()
            raise FileError(problem.sentence, fix=problem.fix, source=table.source)
        return np.zeros(len(table), dtype=np.int16)
    codes, texts = table.coded("channel")
    known = {str(index): index for index in range(n_channels)}
    places = np.array([known.get((text or "").strip(), -1) for text in texts], dtype=np.int16)
    channel: NDArray[np.int16] = places[codes]
    if (wrong := np.flatnonzero(channel < 0)).size:
        raise table.refuse(unknown_channel(n_channels, texts[codes[wrong[0]]]), int(wrong[0]))
    return channel


def _report_column(
    table: TextTable, channel: NDArray[np.int16], channels: tuple[AnyChannel, ...]
) -> tuple[NDArray[np.int32], NDArray[np.float64] | None]:
    codes, texts = table.coded("report")
    report = np.full(len(codes), -1, dtype=np.int32)
    number = None
    for index, entry in enumerate(channels):
        rows = np.arange(len(codes)) if len(channels) == 1 else np.flatnonzero(channel == index)
        if isinstance(entry, NoiseRecord):
            number = np.zeros(len(codes)) if number is None else number
            number[rows] = _numbers(table, rows)
            continue
        places = _output_places(entry, texts)
        report[rows] = places[codes[rows]]
        if (wrong := rows[report[rows] < 0]).size:
            raise table.refuse(unknown_report(index, texts[codes[wrong[0]]]), int(wrong[0]))
    return report, number


def _output_places(channel: Channel, texts: list[str | None]) -> NDArray[np.int32]:
    known = {spell(output): code for code, output in enumerate(channel.outputs)}
    return np.array([known.get(text, -1) for text in texts], dtype=np.int32)


def _numbers(table: TextTable, rows: NDArray[Any]) -> NDArray[np.float64]:
    column = table.columns["report"]
    numbers = [_number(text.as_py()) for text in (column[int(row)] for row in rows)]
    for row, number in zip(rows, numbers, strict=True):
        if not np.isfinite(number):
            raise table.refuse(not_a_number(), int(row))
    return np.array(numbers)


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")


def spell(output: Output) -> str | None:
    """How a report is written in a cell; ∅ is an empty one."""
    return json.dumps(list(output), ensure_ascii=False) if isinstance(output, tuple) else output


def _spelled_reports(reports: Reports) -> Any:
    if reports.number is not None:
        return _mixed_numbers(reports)
    texts: list[str | None] = []
    codes = np.empty(len(reports), dtype=np.int32)
    for index, channel in enumerate(reports.channels):
        assert isinstance(channel, Channel)
        rows = slice(None) if len(reports.channels) == 1 else reports.channel == index
        codes[rows] = reports.report[rows] + len(texts)
        texts += [spell(output) for output in channel.outputs]
    return coded_column(codes, texts)


def _mixed_numbers(reports: Reports) -> Any:
    assert reports.number is not None
    texts = pc.cast(pa.array(reports.number), pa.string()).to_pylist()
    for row in np.flatnonzero(reports.report >= 0):
        channel = reports.channels[reports.channel[row]]
        assert isinstance(channel, Channel)
        texts[row] = spell(channel.outputs[reports.report[row]])
    return pa.array(texts, pa.string())
