"""The compiled loops do what the plain ones do, to the last digit that rounding leaves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.inference.kernels import em as kernels
from crowdveil.inference.kernels import em_reference as plain
from crowdveil.inference.kernels import layout
from crowdveil.inference.kernels import weighted as row_kernels
from crowdveil.inference.kernels import weighted_reference as row_plain
from crowdveil.inference.protocols import Block


def block_of(rng: np.random.Generator, n_rows: int, n_questions: int, n_workers: int, n_symbols: int) -> Block:
    question = np.sort(rng.integers(0, n_questions, n_rows)).astype(np.int32)
    return Block(
        question,
        rng.integers(0, n_workers, n_rows).astype(np.int32),
        rng.integers(0, n_symbols, n_rows).astype(np.int32),
        np.zeros(n_rows, dtype=np.int16),
        n_questions,
    )


@pytest.mark.parametrize("n_options", [1, 2, 4, 15])
@pytest.mark.parametrize("n_rows", [0, 1, 3000])
@pytest.mark.parametrize("n_workers", [7, 9000])
def test_sweeps_equal_their_plain_twins(n_options: int, n_rows: int, n_workers: int) -> None:
    rng = np.random.default_rng(n_options + n_rows)
    block = block_of(rng, n_rows, 50, n_workers, n_options)
    made = layout.build_layout(block, block.report, n_options, n_workers, n_options)
    table = rng.normal(size=(made.n_cells, n_options))
    sums = np.zeros((2, 50, n_options))
    counts = np.zeros((2, made.n_cells, n_options))
    for index, module in enumerate((kernels, plain)):
        module.sweep_logs(made, table, sums[index])
        module.sweep_counts(made, sums[index], counts[index])
    left = np.zeros((2, 50, n_options))
    chances = rng.uniform(0, 1, size=(3, max(made.n_cells, 50), n_options))
    for index, module in enumerate((kernels, plain)):
        module.sweep_apart(made, chances[0], chances[1], 0.5 * chances[2], left[index])
    np.testing.assert_allclose(left[0], left[1], atol=1e-9)
    assert n_rows == 0 or left[0].any()
    asked = rng.random(50) < 0.3
    rows = sorted(zip(_cells(made, block, n_options), block.question, strict=True))
    assert sorted(zip(*made.find_rows(asked), strict=True)) == [row for row in rows if asked[row[1]]]
    np.testing.assert_allclose(sums[0], sums[1], atol=1e-12)
    np.testing.assert_allclose(counts[0], counts[1], atol=1e-9)
    assert sums[0].sum() == pytest.approx(table[_cells(made, block, n_options)].sum())


def test_rows_are_found_again_in_many_tiles() -> None:
    rng = np.random.default_rng(3)
    block = block_of(rng, 60_000, 40_000, 9000, 4)
    made = layout.build_layout(block, block.report, 4, 9000, 4)
    assert made.n_down > 1 < made.n_across
    asked = rng.random(40_000) < 0.1
    rows = sorted(zip(_cells(made, block, 4), block.question, strict=True))
    assert sorted(zip(*made.find_rows(asked), strict=True)) == [row for row in rows if asked[row[1]]]


def _cells(made: layout.Layout, block: Block, n_symbols: int) -> np.ndarray:
    cell = block.worker.astype(np.int64) * n_symbols + block.report
    return cell if made.cells is None else np.searchsorted(made.cells, cell)


@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(1, 14), st.booleans())
def test_softmax_equals_its_plain_twin(seed: int, n_questions: int, n_options: int, with_gold: bool) -> None:
    rng = np.random.default_rng(seed)
    totals = np.repeat(rng.normal(scale=50, size=(1, n_questions, n_options)), 2, axis=0)
    classes = np.log(rng.dirichlet(np.ones(n_options)) + 1e-9)
    gold = rng.integers(-1, n_options, n_questions).astype(np.int32) if with_gold else np.empty(0, np.int32)
    answered = rng.random(n_questions) < 0.8
    results = [
        module.softmax(total, classes, gold, answered) for module, total in zip((kernels, plain), totals, strict=True)
    ]
    np.testing.assert_allclose(totals[0], totals[1], atol=1e-12)
    np.testing.assert_allclose(totals[0].sum(axis=1), 1)
    assert results[0][0] == pytest.approx(results[1][0])
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-9)
    assert results[0][1].sum() == pytest.approx(answered.sum())


@pytest.mark.parametrize("n_options", [2, 4, 13])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_log_shares_equal_their_plain_twin(n_options: int, precision: str) -> None:
    rng = np.random.default_rng(n_options)
    counts = rng.gamma(0.3, size=(300, n_options + 1, n_options)).astype(precision)
    counts[::7] = 0.0
    for prior in (np.zeros(counts.shape[1:]), rng.random(counts.shape[1:])):
        results = []
        for module in (kernels, plain):
            logs, seen = np.empty_like(counts), np.empty((len(counts), n_options))
            module.log_shares(counts, prior, logs, seen)
            results.append((logs, seen, module.column_sums(logs.reshape(len(logs), -1))))
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12 if precision == "float64" else 2e-6, atol=2e-6)
        # Shares sum to 1, and those of a worker without answers are equal when there is no prior either.
        np.testing.assert_allclose(np.exp(results[0][0]).sum(axis=1), 1, rtol=1e-5)
        assert prior.any() or np.allclose(np.exp(results[0][0][0]), 1 / (n_options + 1))


@given(st.integers(0, 2**32), st.integers(0, 80), st.integers(1, 5))
def test_loops_over_rows_equal_their_plain_twins(seed: int, n_rows: int, n_options: int) -> None:
    rng = np.random.default_rng(seed)
    question = np.sort(rng.integers(0, 9, n_rows)).astype(np.int32)
    worker = rng.integers(0, 6, n_rows).astype(np.int32)
    value, share, worth = rng.normal(size=n_rows), rng.normal(0.5, 1, size=n_rows), rng.random(n_rows)
    weight, votes, chosen = rng.random(6), rng.normal(size=(n_rows, n_options)), rng.integers(0, n_options, 9)
    ours, theirs = [], []
    for module, found in ((row_kernels, ours), (row_plain, theirs)):
        total, mass = module.weighted_sums(question, worker, value, share, weight, 9)
        found += [total, mass, *module.residual_sums(question, worker, value, share, weight, total, mass)]
        found += [module.tally(question, worker, votes, worth, weight, 9)]
        found += [*module.agreements(question, worker, votes, worth, chosen, 6)]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@given(st.integers(0, 2**32), st.integers(0, 60))
def test_rows_are_sorted_by_question_and_nothing_is_lost(seed: int, n_rows: int) -> None:
    rng = np.random.default_rng(seed)
    question = rng.integers(0, 10, n_rows).astype(np.int32)
    low, high = sorted(rng.integers(0, 11, 2).tolist())
    inside = question[(question >= low) & (question < high)]
    counts = np.bincount(inside - low, minlength=high - low)
    for module in (kernels, plain):
        rows = np.empty(len(inside), dtype=np.int32)
        module.sort_rows(question, low, high, np.cumsum(counts) - counts, rows)
        assert question[rows].tolist() == sorted(inside.tolist())
        assert len(set(rows.tolist())) == len(rows)


def test_a_layout_of_many_tiles_keeps_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "TILE_BYTES", 4 * 4 * 16)
    monkeypatch.setattr(layout, "LEAST_ROWS", 1)
    rng = np.random.default_rng(5)
    block = block_of(rng, 20_000, 150, 60, 4)
    made = layout.build_layout(block, block.report, 4, 60, 4)
    assert made.n_across == 240 // 16
    assert made.n_down == 10
    cell, question = plain._rows(made)
    wanted = np.sort(_cells(made, block, 4) * 150 + block.question)
    assert np.sort(cell.astype(np.int64) * 150 + question).tolist() == wanted.tolist()
    table, classes, none = rng.normal(size=(240, 4)), np.log([0.1, 0.2, 0.3, 0.4]), np.empty(0, np.int32)
    totals, counts = np.empty((2, 150, 4)), np.empty((2, 240, 4))
    for index, module in enumerate((kernels, plain)):
        objective, shares = module.sweep_posterior(made, table, classes, none, totals[index])
        assert shares.sum() == pytest.approx(150)
        assert objective == pytest.approx(plain.sweep_posterior(made, table, classes, none, np.empty((150, 4)))[0])
        module.sweep_counts(made, totals[index], counts[index])
    np.testing.assert_allclose(totals[0], totals[1], atol=1e-12)
    np.testing.assert_allclose(counts[0], counts[1], atol=1e-9)
