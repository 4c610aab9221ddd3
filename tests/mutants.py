"""Mistakes that must not survive: each is planted in a copy of the source, and the tests named beside it must go red.

`make mutants` plants them all; `python tests/mutants.py WORD` only those whose name holds the word. To add one, add a
line to MUTANTS: the file, the text as it stands (exactly once), the mistake, and the tests that have to notice it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "src/crowdveil"

CHANNELS = "tests/laws/test_channels.py"
MECHANISMS = "tests/laws/test_mechanisms.py"
TABLES = "tests/mechanisms/test_tables.py"
DRAWS = "tests/statistical/test_draws.py"
TWO_LAYER = "tests/mechanisms/test_two_layer.py"
FACTORS = "tests/mechanisms/test_factorization.py"
NOISE = "tests/mechanisms/test_noise.py"
LEDGER = "tests/accounting/test_ledger.py"
COMPOSITION = "tests/accounting/test_composition.py"
AUDIT = "tests/audit/test_audit.py"
VECTORS = "tests/device/test_vectors.py"
DEVICE_LEDGER = "tests/device/test_ledger.py"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake in one file, and who should notice."""

    name: str
    file: str
    text: str
    mistake: str
    tests: str
    only: str = ""


MUTANTS = (
    # randomised response
    Mutant(
        "e^(ε/2) for e^ε",
        "mechanisms/randomized_response.py",
        "2**bits / (exp_down(epsilon) +",
        "2**bits / (exp_down(epsilon / 2) +",
        CHANNELS,
        "nearly_all",
    ),
    Mutant(
        "e^(2ε) for e^ε",
        "mechanisms/randomized_response.py",
        "2**bits / (exp_down(epsilon) +",
        "2**bits / (exp_down(2 * epsilon) +",
        CHANNELS,
        "request_is_kept and randomized",
    ),
    Mutant(
        "the + 1 of the lie dropped",
        "mechanisms/randomized_response.py",
        "n_symbols - 1)) + 1",
        "n_symbols - 1))",
        CHANNELS,
        "request_is_kept and randomized",
    ),
    Mutant(
        "one symbol too many",
        "mechanisms/randomized_response.py",
        "+ n_symbols - 1)) + 1",
        "+ n_symbols)) + 1",
        CHANNELS,
        "nearly_all",
    ),
    Mutant(
        "p and q swapped in one-layer",
        "mechanisms/one_layer.py",
        "ceil(2**64 * flip / (n_symbols - 1))",
        "ceil(2**64 * (1 - flip) / (n_symbols - 1))",
        TABLES,
        "one_layer",
    ),
    # tables
    Mutant(
        "p and q swapped in subset selection",
        "mechanisms/subset_selection.py",
        "return Subset(w, (2**BITS - n_outside * outside) // n_inside, outside)",
        "return Subset(w, outside, (2**BITS - n_inside * outside) // n_outside)",
        CHANNELS,
        "sum_to_two and subset or never_understated and subset or request_is_kept and subset and 1.0",
    ),
    Mutant(
        "the worst subset size",
        "mechanisms/subset_selection.py",
        "    return min(sizes, key",
        "    return max(sizes, key",
        TABLES,
        "subset",
    ),
    Mutant(
        "Laplace rate over k instead of k - 1",
        "mechanisms/discrete_laplace.py",
        "epsilon / (n_levels - 1)\n",
        "epsilon / n_levels\n",
        DRAWS,
        "laplace",
    ),
    Mutant(
        "Laplace tails forgotten",
        "mechanisms/discrete_laplace.py",
        "side = [*inner, max(1, int(whole * exp(-epsilon)))]",
        "side = [*inner, max(1, int(whole * -expm1(-rate) * exp(-epsilon)))]",
        CHANNELS,
        "request_is_kept and laplace",
    ),
    Mutant(
        "Gaussian without the half in its exponent",
        "mechanisms/discrete_gaussian.py",
        "np.exp(-0.5 * (",
        "np.exp(-(",
        DRAWS,
        "gaussian",
    ),
    Mutant(
        "Gaussian clamped at one σ",
        "mechanisms/discrete_gaussian.py",
        "_REACH = 3.0",
        "_REACH = 1.0",
        TABLES,
        "gaussian",
    ),
    Mutant(
        "tables built above the request",
        "mechanisms/tables.py",
        "BELOW = 1 - 1e-7",
        "BELOW = 1 + 1e-7",
        CHANNELS,
        "request_is_kept and laplace",
    ),
    Mutant(
        "the check of the request dropped, and tables above it",
        "mechanisms/tables.py",
        "    if channel.epsilon > epsilon:",
        "    if channel.epsilon > 2 * epsilon:",
        "tests/mechanisms/test_verified.py",
    ),
    Mutant(
        "weights of zero allowed",
        "forms.py",
        "max(1, int(Fraction(p)",
        "max(0, int(Fraction(p)",
        "tests/test_channel.py",
    ),
    Mutant(
        "optimal-scale biased",
        "mechanisms/optimal_scale.py",
        "b_eq=np.concatenate([np.ones(k), levels / size]),",
        "b_eq=np.concatenate([np.ones(k), 0.9 * levels / size]),",
        TABLES,
        "optimal",
    ),
    Mutant(
        "piecewise interval misplaced",
        "mechanisms/piecewise.py",
        "left = (c + 1) / 2 * levels - (c - 1) / 2",
        "left = (c + 1) / 2 * levels - c / 2",
        TABLES,
        "published or worst",
    ),
    Mutant(
        "the row of ∅ is that of the first level",
        "forms.py",
        "mean_row(rows, bits)])",
        "rows[0]])",
        TABLES,
        "empty_answer",
    ),
    # drawing
    Mutant(
        "off-by-one lie",
        "sampler.py",
        "unsigned(self._form.keep - self._form.lie)",
        "unsigned(self._form.keep)",
        CHANNELS,
        "byte_for_byte and randomized",
    ),
    Mutant(
        "threshold on the wrong side",
        "sampler.py",
        'np.searchsorted(self.thresholds[row], wide[mine], side="right")',
        'np.searchsorted(self.thresholds[row], wide[mine], side="left")',
        CHANNELS,
        "byte_for_byte and laplace",
    ),
    Mutant(
        "guide cell that ends too early",
        "sampler.py",
        "(1 << (channel.bits - self._bits)) - 1)",
        "(1 << (channel.bits - self._bits - 1)) - 1)",
        CHANNELS,
        "guided and laplace",
    ),
    Mutant(
        "∅ drawn as the first level",
        "sampler.py",
        "np.where(codes == EMPTY, np.int32(channel.n_levels), codes)",
        "np.where(codes == EMPTY, np.int32(0), codes)",
        CHANNELS,
        "byte_for_byte and laplace",
    ),
    Mutant(
        "∅ not reported although participation is hidden",
        "mechanisms/base.py",
        "    if channel.protects_participation:\n",
        "    if not len(answers):\n",
        MECHANISMS,
        "every_pair",
    ),
    Mutant("big-endian words", "entropy.py", 'f"<u{bits // 8}"', 'f">u{bits // 8}"', "tests/test_entropy.py"),
    Mutant(
        "a fixed seed where none was asked for",
        "entropy.py",
        "SystemEntropy() if seed is None",
        "Keystream(0) if seed is None",
        "tests/test_entropy.py",
    ),
    Mutant("a uniform that can be 1", "entropy.py", "np.uint64(12)", "np.uint64(11)", "tests/test_entropy.py"),
    # privacy computed
    Mutant(
        "ε rounded down",
        "exact.py",
        "return nearest if Decimal(nearest) >= value else math.nextafter(nearest, math.inf)",
        "return nearest if Decimal(nearest) <= value else math.nextafter(nearest, -math.inf)",
        "tests/test_exact.py",
    ),
    Mutant(
        "ε against the middle row instead of the lowest",
        "divergence.py",
        "weights.min(axis=0)\n",
        "np.sort(weights, axis=0)[len(weights) // 2]\n",
        CHANNELS,
        "never_understated and laplace",
    ),
    Mutant(
        "ρ at order one only",
        "divergence.py",
        "attained * (1 + _RHO_PRECISION), epsilon",
        "attained * 1e9, epsilon",
        "tests/test_divergence.py",
    ),
    Mutant(
        "chord divided by too much",
        "divergence.py",
        "(slope * u - below) / (u * (1 + u))",
        "(slope * u - below) / (u * (2 + u))",
        "tests/test_divergence.py",
    ),
    Mutant(
        "a changed channel is accepted",
        "channel.py",
        'is None or found != data.get("sha256")',
        "is None",
        CHANNELS,
        "tampered and randomized",
    ),
    Mutant(
        "rows that sum to less are accepted",
        "channel.py",
        "        if sum(row) != 2**channel.bits:",
        "        if sum(row) > 2**channel.bits:",
        "tests/test_channel.py",
    ),
    # research
    Mutant(
        "two-layer: the number of lies forgotten",
        "two_layer_law.py",
        "(ends + m * integral)",
        "(ends + integral)",
        TWO_LAYER,
    ),
    Mutant(
        "two-layer: a new probability for each answer",
        "mechanisms/two_layer.py",
        "uniforms(entropy, len(answers.workers))\n        lies = uniforms(entropy, len(answer)) < flip[worker]",
        "uniforms(entropy, len(answer))\n        lies = uniforms(entropy, len(answer)) < flip",
        TWO_LAYER,
    ),
    Mutant(
        "LP: count of levels for their range",
        "mechanisms/laplace.py",
        "(domain.size if self.paper_scale else",
        "(domain.size if not self.paper_scale else",
        NOISE,
    ),
    Mutant(
        "MF: too few answers accepted",
        "mechanisms/matrix_factorization.py",
        "if counts[fewest] < self.factors:",
        "if counts[fewest] < 0:",
        FACTORS,
    ),
    Mutant(
        "MF: half the noise",
        "mechanisms/matrix_factorization.py",
        "laplace_noise(entropy, self.factors, scale)",
        "laplace_noise(entropy, self.factors, scale / 2)",
        FACTORS,
    ),
    Mutant(
        "dense: ∅ left out of the fit",
        "mechanisms/dense_factorization.py",
        "profiles @ value.T",
        "profiles @ np.where(answer.reshape(value.shape) < 0, 0, value).T",
        FACTORS,
    ),
    # accounting
    Mutant(
        "count ignored in a charge",
        "accounting/ledger.py",
        "total + each * taken",
        "total + each",
        LEDGER,
    ),
    Mutant(
        "count ignored in composition",
        "accounting/composition.py",
        "joined(spend.count, unit)",
        "joined(1, unit)",
        "tests/accounting/test_composition.py",
    ),
    Mutant(
        "charged before it is checked",
        "accounting/storage.py",
        "            if cap is not None and not total.within(cap):\n                return None\n"
        "            self._spent[receipt.worker] = total\n",
        "            self._spent[receipt.worker] = total\n            if cap is not None and not total.within(cap):\n"
        "                return None\n",
        LEDGER,
    ),
    Mutant(
        "both sums needed, or none",
        "accounting/storage.py",
        "self.epsilon <= cap.epsilon or self.rho <= cap.rho",
        "self.epsilon <= 2 * cap.epsilon or self.rho <= 2 * cap.rho",
        LEDGER,
    ),
    Mutant(
        "charges rounded down",
        "accounting/nano.py",
        "min(math.ceil(Fraction(amount) * NANO), SATURATED)",
        "min(math.floor(Fraction(amount) * NANO), SATURATED)",
        f"{LEDGER} src/crowdveil/accounting/nano.py",
    ),
    Mutant(
        "drawn before it is charged",
        "accounting/ledger.py",
        "        self.charge(worker, *spends, key=key, at_stake=at_stake)\n        stored",
        "        draw()\n        self.charge(worker, *spends, key=key, at_stake=at_stake)\n        stored",
        LEDGER,
        "killed",
    ),
    Mutant(
        "a second draw leaves the device",
        "accounting/ledger.py",
        "return self._storage.keep(worker, key, draw()) if stored is None else stored",
        "return draw()",
        LEDGER,
        "first_draw",
    ),
    Mutant(
        "the file's rule needs both sums",
        "accounting/sqlite.py",
        "<= :cap_epsilon OR rho",
        "<= :cap_epsilon AND rho",
        LEDGER,
        "twenty_three",
    ),
    Mutant(
        "a conversion that is too generous",
        "accounting/conversion.py",
        "divergence + math.log1p(-1 / alpha) -",
        "divergence + 2 * math.log1p(-1 / alpha) -",
        "tests/accounting/test_conversion.py",
    ),
    Mutant(
        "losses rounded down to the grid",
        "accounting/pld.py",
        "share = np.clip(share, 0.0, 1.0)",
        "share = 0 * share",
        COMPOSITION,
        "enumeration",
    ),
    Mutant(
        "answers that share a release treated as one",
        "accounting/laws.py",
        'times = count if unit == "vector" else 1',
        "times = 1",
        COMPOSITION,
    ),
    Mutant(
        "visible participation counted as protected",
        "accounting/composition.py",
        'if unit == "cell" and not all',
        'if unit == "vector" and not all',
        COMPOSITION,
        "cell_totals",
    ),
    # audit
    Mutant(
        "measured on the samples that chose the event",
        "audit/black_box.py",
        "_counts(views[best], fresh)",
        "_counts(views[best], seen)",
        AUDIT,
        "honest",
    ),
    Mutant(
        "all of alpha spent on one side",
        "audit/bound.py",
        "alpha / 2)\n    high",
        "alpha)\n    high",
        AUDIT,
        "half_of_alpha",
    ),
    Mutant(
        "∅ forgotten among the neighbours",
        "audit/subjects.py",
        "levels + [EMPTY] * participation",
        "levels",
        AUDIT,
        "silent",
    ),
    Mutant(
        "an exact claim checked at twice the ratio",
        "audit/exact.py",
        "ratio > exp_up(claimed)",
        "ratio > 2 * exp_up(claimed)",
        AUDIT,
        "hair",
    ),
    # the device
    Mutant(
        "JavaScript: threshold on the wrong side",
        "device/sampler.js",
        "Number(below <= low)",
        "Number(below < low)",
        VECTORS,
    ),
    Mutant(
        "JavaScript: big-endian words",
        "device/sampler.js",
        "words.getUint32(i * size, true)",
        "words.getUint32(i * size, false)",
        VECTORS,
    ),
    Mutant(
        "JavaScript: both sums must fit",
        "device/ledger.js",
        "return sum.epsilon <= cap.epsilon || sum.rho <= cap.rho;",
        "return sum.epsilon <= cap.epsilon && sum.rho <= cap.rho;",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: the new line is not counted",
        "device/ledger.js",
        "within(sum(already, line), cap)",
        "within(already, cap)",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: charges rounded down",
        "device/nano.js",
        "return Number((top * NANO + bottom - 1n) / bottom);",
        "return Number((top * NANO) / bottom);",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: a second draw",
        "device/outbox.js",
        "if (drawn) return { result: drawn };",
        "",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: one level's claim is believed",
        "device/study.js",
        "computed.epsilon <= epsilon && ",
        "",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: the log is not compared",
        "device/study.js",
        "|| entry.sha256 !== sha256) throw",
        ") throw",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: skipped questions stay silent",
        "device/study.js",
        "return study.protectsParticipation ? [{ question: id, channel, answer: -1 }] : [];",
        "return [];",
        DEVICE_LEDGER,
    ),
)


def main(words: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if all(word in mutant.name for word in words)]
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        if (code := baseline(copy, chosen)) != 0:
            print(f"the tests must be green before anything is planted; they ended with {code}")
            return 2
        alive = [mutant for mutant in chosen if not dies(copy, mutant)]
    print(f"{len(chosen) - len(alive)} of {len(chosen)} mutants died")
    return 1 if alive else 0


def baseline(copy: Path, chosen: list[Mutant]) -> int:
    """Every test that will be asked, once, on the sound source."""
    whole = {mutant.tests for mutant in chosen if not mutant.only}
    files = {path for mutant in chosen for path in mutant.tests.split()}
    parts = {mutant.only for mutant in chosen if mutant.tests not in whole}
    # A name in the expression that picks files taken whole is their path's last part.
    names = {Path(path).name for tests in whole for path in tests.split()}
    return run(copy, " ".join(sorted(files)), " or ".join(sorted(f"({part})" for part in parts | names)))


def copied(folder: Path) -> Path:
    """The parts of the checkout that the tests need."""
    ignored = shutil.ignore_patterns("__pycache__", ".*cache", "node_modules")
    for part in ("src", "tests", "docs"):
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    for part in ("pyproject.toml", "package.json", "README.md"):
        shutil.copy(ROOT / part, folder / part)
    return folder


def dies(copy: Path, mutant: Mutant) -> bool:
    path = copy / SOURCE / mutant.file
    sound = path.read_text()
    if sound.count(mutant.text) != 1:
        print(f"LOST      {mutant.name}: its text stands {sound.count(mutant.text)} times in {mutant.file}")
        return False
    path.write_text(sound.replace(mutant.text, mutant.mistake))
    started = time.monotonic()
    code = run(copy, mutant.tests, mutant.only)
    path.write_text(sound)
    # 1 is "tests failed"; anything else means that nothing was tested.
    verdict, seconds = "died    " if code == 1 else "SURVIVED", time.monotonic() - started
    print(f"{verdict}  {mutant.name}  ({seconds:.0f} s, exit {code})", flush=True)
    return code == 1


def run(copy: Path, tests: str, only: str) -> int:
    """The exit code of pytest for these tests against the copy."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests.split()]
    command += ["-k", only] if only else []
    # A cached module of the same size and second would be taken for the mutated one.
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
