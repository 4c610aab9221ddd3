"""Mistakes in the tables that mechanisms build and in how reports are drawn from them."""

from __future__ import annotations

from mutants.mutant import Mutant

CHANNELS = "tests/laws/test_channels.py"
MECHANISMS = "tests/laws/test_mechanisms.py"
TABLES = "tests/mechanisms/test_tables.py"
DRAWS = "tests/statistical/test_draws.py"
TWO_LAYER = "tests/mechanisms/test_two_layer.py"
FACTORS = "tests/mechanisms/test_factorization.py"
NOISE = "tests/mechanisms/test_noise.py"

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
        "mechanisms/_integer_rounding.py",
        "BELOW = 1 - 1e-7",
        "BELOW = 1 + 1e-7",
        CHANNELS,
        "request_is_kept and laplace",
    ),
    Mutant(
        "the check of the request dropped, and tables above it",
        "mechanisms/_integer_rounding.py",
        "    if channel.epsilon > epsilon:",
        "    if channel.epsilon > 2 * epsilon:",
        "tests/mechanisms/test_verified.py",
    ),
    Mutant(
        "weights of zero allowed",
        "channel/encoding.py",
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
        "lower = (c + 1) / 2 * levels - (c - 1) / 2",
        "lower = (c + 1) / 2 * levels - c / 2",
        TABLES,
        "published or worst",
    ),
    Mutant(
        "the row of ∅ is that of the first level",
        "channel/encoding.py",
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
    Mutant("a uniform that can be 1", "entropy.py", "UNIFORM_BITS = 52", "UNIFORM_BITS = 53", "tests/test_entropy.py"),
    # research
    Mutant(
        "two-layer: the number of lies forgotten",
        "channel/two_layer.py",
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
)
