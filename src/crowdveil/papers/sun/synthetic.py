"""Error against ε, sparsity and size on synthetic crowds (Sun et al. 2018, Figures 2 to 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from crowdveil.papers.core.reproduction import (
    Claim,
    ClaimVerdict,
    Reproduction,
    Row,
    Settings,
    add_columns,
    column,
    said_trials,
    select,
)
from crowdveil.papers.sun.trial import (
    CONSTANTS,
    HOLLOW,
    MECHANISMS,
    PAPER,
    Reading,
    change,
    epsilon_panel,
    error,
    measure_mechanisms,
    readings,
    said_epsilons,
)
from crowdveil.plot import Panel, Series, panels
from crowdveil.simulate import preset

_READING = (
    "truths are drawn from N(0, 1) and kept; answers are rounded and clipped to 0..9. So about half of the truths lie "
    "below the scale and even without privacy the error is large. MAE is against the truths as drawn; scoring against "
    "truths clipped to the scale is shown beside it. LP fills ∅ with a uniform level and uses the printed noise |Γ|/ε, "
    "which on 0..9 is ε·9/10 exactly. V has signed entries and columns of L1 norm 1, d = 2; positive V and d = 10 are "
    "shown beside it. 2-layer draws ε_i from U(0, 2ε), so its exact ε is 2ε. MF has no finite ε per cell (Theorem 4 "
    "does not hold for ∅), so its ε is per value."
)


def crowd_rows(
    n_workers: int,
    n_questions: int,
    sparsity: float,
    epsilons: Sequence[float],
    seed: int,
    reading: Reading,
    **crowd: Any,
) -> list[Row]:
    """One crowd, drawn and perturbed at each ε."""
    drawn = preset("sun", n_workers=n_workers, n_questions=n_questions, share=1 - sparsity, **crowd).draw(seed)
    rows = measure_mechanisms(drawn.answers, drawn.truth, epsilons, [seed], reading)
    return [row | {"sparsity": sparsity, "reading": reading.name, "trial": float(seed)} for row in rows]


@dataclass(frozen=True, kw_only=True)
class Figure2(Reproduction):
    """MAE over ε at sparsity .9 and .5."""

    id = "sun-fig2"
    title = "error against ε on synthetic crowds"
    paper = PAPER
    interpretation = _READING
    reading: Reading = field(default_factory=Reading)
    epsilons: tuple[float, ...] = (0.1, 1.0, 2.0, 3.0)
    sparsities: tuple[float, ...] = (0.9, 0.5)
    n_workers: int | None = None

    def rows(self, settings: Settings) -> list[Row]:
        n_workers, trials = (1000, min(settings.trials, 2)) if settings.quick else (2000, settings.trials)
        n_workers = self.n_workers or n_workers
        rows: list[Row] = []
        for seed in settings.seeds(trials):
            for sparsity in self.sparsities:
                rows += crowd_rows(n_workers, 200, sparsity, self.epsilons, seed, self.reading)
            for reading in readings(self.reading):
                rows += crowd_rows(n_workers, 200, 0.9, (1.0,), seed, reading)
            uniform = Reading(name="truths uniform on the scale")
            rows += crowd_rows(n_workers, 200, 0.9, (1.0,), seed, uniform, truth="uniform")
        return add_columns(rows, n_workers=n_workers, n_questions=200)

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        sparse: dict[str, Any] = {"sparsity": 0.9}
        lp, rr, mf = ({e: error(rows, name, epsilon=e, **sparse) for e in self.epsilons} for name in MECHANISMS[:3])
        uniform: dict[str, Any] = {"reading": "truths uniform on the scale", "sparsity": 0.9}
        return [
            _smallest(rows, self.epsilons, self.sparsities),
            _like_zero(rows, "MF (signed V, d = 2) infers more than always answering 0", sparsity=0.9, epsilon=1.0),
            Claim(
                "MF stays accurate when the truths are not gathered around 0 (uniform on 0..9, ε = 1)",
                "error insensitive to the data",
                f"MF {error(rows, 'MF', epsilon=1.0, **uniform):.2f}, best constant "
                f"{error(rows, 'best constant', **uniform):.2f}, no privacy {error(rows, 'no privacy', **uniform):.2f}",
                "fails"
                if error(rows, "MF", epsilon=1.0, **uniform) > error(rows, "best constant", **uniform)
                else "holds",
            ),
            _levels(rows, lp[1.0], rr[1.0], mf[1.0]),
            Claim(
                "LP drops suddenly from ε .1 to 1 and is stable from there (sparsity .9)",
                "sudden drop, then stable",
                ", ".join(f"ε {e:g}: {lp[e]:.2f}" for e in self.epsilons),
                "holds" if lp[0.1] - lp[1.0] > 5 * abs(lp[1.0] - lp[self.epsilons[-1]]) else "differs",
            ),
            Claim(
                "RR keeps decreasing sharply as ε grows (sparsity .9)",
                "sharp decrease",
                ", ".join(f"ε {e:g}: {rr[e]:.2f}" for e in self.epsilons),
                "holds" if rr[self.epsilons[-1]] < rr[0.1] / 2 else "differs",
            ),
            Claim(
                "LP is more accurate on less sparse data (ε = 1)",
                "smaller error at .5 than at .9",
                f"sparsity .9: {lp[1.0]:.2f}, .5: {error(rows, 'LP', epsilon=1.0, sparsity=0.5):.2f}",
                "holds" if error(rows, "LP", epsilon=1.0, sparsity=0.5) < lp[1.0] else "fails",
            ),
            *(_other_reading(rows, reading.name) for reading in readings(self.reading)),
        ]

    def draw(self, rows: Sequence[Row]) -> Any:
        drawn = [
            epsilon_panel(rows, self.epsilons, f"sparsity {sparsity:g}", sparsity=sparsity)
            for sparsity in self.sparsities
        ]
        return panels(drawn, caption=f"{_caption(rows)} {HOLLOW}")


@dataclass(frozen=True, kw_only=True)
class Figure3(Reproduction):
    """MAE over sparsity at ε = .1 and 1."""

    id = "sun-fig3"
    title = "error against sparsity"
    paper = PAPER
    interpretation = _READING
    reading: Reading = field(default_factory=Reading)
    epsilons: tuple[float, ...] = (0.1, 1.0)
    sparsities: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)

    n_workers: int | None = None

    def size(self, quick: bool) -> tuple[int, int]:
        return (1000, 200) if quick else (2000, 200)

    def trials(self, settings: Settings) -> int:
        return min(settings.trials, 1) if settings.quick else settings.trials

    def rows(self, settings: Settings) -> list[Row]:
        n_workers, n_questions = self.size(settings.quick)
        n_workers = self.n_workers or n_workers
        rows: list[Row] = []
        for seed in settings.seeds(self.trials(settings)):
            for sparsity in self.sparsities:
                settings.progress(f"{self.id}: sparsity {sparsity:g}")
                rows += crowd_rows(n_workers, n_questions, sparsity, self.epsilons, seed, self.reading)
        return add_columns(rows, n_workers=n_workers, n_questions=n_questions)

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        low, high = self.sparsities[0], self.sparsities[-1]
        worst = max(change(rows, "MF", epsilon=e, sparsity=s) for e in self.epsilons for s in self.sparsities)
        return [
            Claim(
                "the MAE change of MF never exceeds .5",
                "at most 0.5",
                f"largest change {worst:.2f}",
                "holds" if worst <= 0.5 else "fails",
            ),
            _like_zero(rows, "and it is small because MF predicts missing answers", sparsity=high, epsilon=1.0),
            *(
                Claim(
                    f"the error of {name} grows with sparsity (ε = 1)",
                    "grows",
                    f"sparsity {low:g}: {error(rows, name, epsilon=1.0, sparsity=low):.2f}, "
                    f"{high:g}: {error(rows, name, epsilon=1.0, sparsity=high):.2f}",
                    "holds"
                    if error(rows, name, epsilon=1.0, sparsity=high) > error(rows, name, epsilon=1.0, sparsity=low)
                    else "fails",
                )
                for name in ("LP", "RR")
            ),
        ]

    def draw(self, rows: Sequence[Row]) -> Any:
        return panels([self._panel(rows, epsilon) for epsilon in self.epsilons], caption=_caption(rows))

    def _panel(self, rows: Sequence[Row], epsilon: float) -> Panel:
        series = []
        for name in (*MECHANISMS, "no privacy"):
            where: dict[str, Any] = {"epsilon": epsilon} if name in MECHANISMS else {}
            y = [error(rows, name, sparsity=sparsity, **where) for sparsity in self.sparsities]
            series.append(Series(_format_mae(rows, name, epsilon), self.sparsities, y))
        # The truths of a trial are the same at every sparsity.
        lines = {name: error(rows, name) for name in CONSTANTS}
        return Panel(f"claimed ε = {epsilon:g}", "sparsity (share of ∅)", "MAE", series, lines)


@dataclass(frozen=True, kw_only=True)
class Figure4(Figure3):
    """The same on a crowd five times as large in both directions."""

    id = "sun-fig4"
    title = "error against sparsity, a larger crowd"
    interpretation = _READING + " With --quick the crowd has 3000 workers and 300 questions instead of 10000 and 1000."
    sparsities: tuple[float, ...] = (0.5, 0.9)

    def size(self, quick: bool) -> tuple[int, int]:
        return (3000, 300) if quick else (10_000, 1000)

    def trials(self, settings: Settings) -> int:
        return 1 if settings.quick else min(settings.trials, 3)

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        n_workers = int(column(rows, "n_workers")[0])
        scaled = Claim(
            "10000 workers and 1000 questions",
            "10000 × 1000",
            f"{n_workers} × {int(column(rows, 'n_questions')[0])}",
            "holds" if n_workers == 10_000 else "cannot tell",
        )
        return [scaled, *Figure3.claims(self, rows)]


def _smallest(rows: Sequence[Row], epsilons: Sequence[float], sparsities: Sequence[float]) -> Claim:
    cells = [(e, s) for e in epsilons for s in sparsities]
    wins = sum(
        all(
            error(rows, "MF", epsilon=e, sparsity=s) <= error(rows, other, epsilon=e, sparsity=s)
            for other in ("LP", "RR", "2-layer")
        )
        for e, s in cells
    )
    return Claim(
        "MF always has the smallest MAE change of the published mechanisms",
        "always",
        f"in {wins} of {len(cells)} settings",
        "holds" if wins == len(cells) else "fails",
    )


def _like_zero(rows: Sequence[Row], claim: str, *, sparsity: float, epsilon: float) -> Claim:
    ours, zero = error(rows, "MF", sparsity=sparsity, epsilon=epsilon), error(rows, "always 0", sparsity=sparsity)
    better: ClaimVerdict = "holds" if ours < zero - 0.05 else "fails"
    return Claim(
        f"{claim} (sparsity {sparsity:g}, ε = {epsilon:g})",
        "implied by §V and §VI",
        f"MF {ours:.3f}, always answering 0 {zero:.3f}, difference {ours - zero:+.3f}",
        better,
    )


def _levels(rows: Sequence[Row], lp: float, rr: float, mf: float) -> Claim:
    none, middle = error(rows, "no privacy", sparsity=0.9), error(rows, "mid-level", sparsity=0.9)
    return Claim(
        "errors at sparsity .9, ε = 1 (the paper shows them as a figure without numbers)",
        "–",
        f"MAE: LP {lp:.2f}, RR {rr:.2f}, MF {mf:.2f}, no privacy {none:.2f}, mid-level {middle:.2f}",
        "cannot tell",
    )


def _other_reading(rows: Sequence[Row], name: str) -> Claim:
    where: dict[str, Any] = {"reading": name, "sparsity": 0.9}
    mf, zero = error(rows, "MF", epsilon=1.0, **where), error(rows, "always 0", **where)
    return Claim(
        f"MF infers more than always answering 0, read with {name} (ε = 1, sparsity .9)",
        "implied by §V and §VI",
        f"MF {mf:.2f}, always 0 {zero:.2f}, LP {error(rows, 'LP', epsilon=1.0, **where):.2f}, "
        f"RR {error(rows, 'RR', epsilon=1.0, **where):.2f}, no privacy {error(rows, 'no privacy', **where):.2f}",
        "holds" if mf < zero - 0.05 else "fails",
    )


def _format_mae(rows: Sequence[Row], name: str, epsilon: float) -> str:
    selected = select(rows, mechanism=name, epsilon=epsilon)
    return f"{name} (ε per value)" if selected and selected[0]["unit"] == "value" else name


def _caption(rows: Sequence[Row]) -> str:
    return (
        f"{int(column(rows, 'n_workers')[0])} workers × {int(column(rows, 'n_questions')[0])} questions, levels 0..9, "
        f"truths N(0, 1), {said_trials(rows)}; Algorithm 1 on reports read as answers. {said_epsilons(rows)}"
    )
