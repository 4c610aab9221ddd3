/**
 * Exact ε and a rigorous ρ of an integer table, computed on the device so that nobody has to be believed.
 * The twin of `crowdveil.channel.divergence`.
 */
import { logUp } from "./exact.js";

const FLOAT_SLACK = 1e-5; // added on top: powers and sums near 1 err by far less
const RHO_PRECISION = 1e-4;
const SMALLEST_SEARCHED = 5e-3; // below, divergences drown in rounding, and ε²/2 is always an upper bound
const LARGEST_EXPONENT = 600; // e^600 is still a double

/** ε = ln max W[x][y] / W[x'][y], rounded up; Infinity when a row can give an output that another cannot. @type {OfTable} */
export function epsilonOf(weights) {
  let top = 1n, bottom = 1n;
  for (const column of columns(weights)) {
    const most = column.reduce((a, b) => (a > b ? a : b)), least = column.reduce((a, b) => (a < b ? a : b));
    if (most === 0n) continue; // it never happens and says nothing
    if (least === 0n) return Infinity;
    if (most * bottom > top * least) [top, bottom] = [most, least];
  }
  return logUp(top, bottom);
}

/**
 * The smallest ρ we can certify with D_α(row ‖ row') ≤ ρ·α for all α > 1 (zero-concentrated privacy).
 * Intervals of α are halved, worst first; beyond the last α the ratio is at most ε/α. @type {OfTable}
 */
export function rhoOf(weights) {
  const epsilon = epsilonOf(weights);
  if (epsilon === Infinity || epsilon === 0) return epsilon;
  if (epsilon < SMALLEST_SEARCHED) return (epsilon ** 2 / 2) * (1 + FLOAT_SLACK);
  const worst = worstRenyi(weights);
  let attained = worst(1);
  const last = Math.min(Math.max(2, epsilon / attained), Math.max(2, LARGEST_EXPONENT / epsilon));
  const intervals = [{ bound: chordBound(worst, 1, last), low: 1, high: last }];
  for (;;) {
    const widest = intervals.reduce((a, b) => (b.bound > a.bound ? b : a)), { bound, low, high } = widest;
    attained = Math.max(attained, worst(high) / high);
    if (bound <= Math.max(attained * (1 + RHO_PRECISION), epsilon / last)) {
      return Math.min(Math.max(bound, epsilon / last), epsilon ** 2 / 2) * (1 + FLOAT_SLACK);
    }
    const middle = Math.sqrt(low * high);
    Object.assign(widest, { bound: chordBound(worst, low, middle), high: middle });
    intervals.push({ bound: chordBound(worst, middle, high), low: middle, high });
  }
}

/**
 * An upper bound of G(α)/α on [low, high]: with t = α − 1, t·G(1 + t) is convex and lies below its chord A + B·t,
 * A ≤ 0. Hence G/α ≤ A/t + (B − A)/(1 + t), which rises up to t = 1 / (√((B − A) / −A) − 1) and then falls.
 * @type {ChordBound}
 */
function chordBound(worst, low, high) {
  const start = low - 1, end = high - 1, first = start * worst(low);
  const slope = (end * worst(high) - first) / (end - start), intercept = first - slope * start;
  if (intercept >= 0) return start > 0 ? first / (start * low) : slope;
  const peak = 1 / (Math.sqrt((slope - intercept) / -intercept) - 1);
  const best = Math.min(Math.max(peak, start), end);
  return (intercept + slope * best) / (best * (1 + best));
}

/** G(α): the largest Rényi divergence between two rows; at α = 1 the largest Kullback–Leibler divergence. @type {WorstRenyi} */
function worstRenyi(weights) {
  const rows = logarithms(weights);
  // Each column is divided by its smallest weight, so that no power overflows or vanishes.
  const floor = (rows[0] ?? new Float64Array()).map((_, y) => Math.min(...rows.map((row) => at(row, y))));
  const above = rows.map((row) => row.map((log, y) => log - at(floor, y)));
  const seen = /** @type {Map<number, number>} */ (new Map());
  return (alpha) => {
    const value = seen.get(alpha) ?? (alpha === 1 ? kullbackLeibler(rows) : renyi(above, floor, alpha));
    seen.set(alpha, value);
    return value;
  };
}

/** Logarithms of the probabilities, impossible outputs and repeated rows left out. @param {bigint[][]} weights */
function logarithms(weights) {
  const possible = columns(weights).filter((column) => column.some((weight) => weight > 0n));
  const rows = weights.map((_, x) => possible.map((column) => Number(column[x])));
  const distinct = new Map(rows.map((row) => [row.join(), row])).values();
  return Array.from(distinct, (row) => {
    const total = row.reduce((a, b) => a + b);
    return Float64Array.from(row, (weight) => Math.log(weight / total));
  });
}

/** @param {Float64Array[]} rows */
function kullbackLeibler(rows) {
  return largest(rows, (row) => {
    const chances = row.map(Math.exp), negentropy = dot(chances, row);
    return largest(rows, (other) => negentropy - dot(chances, other));
  });
}

/** @type {Renyi} */
function renyi(above, floor, alpha) {
  const raised = above.map((row) => row.map((log) => Math.exp(alpha * log)));
  const lowered = above.map((row) => row.map((log, y) => Math.exp(at(floor, y) - (alpha - 1) * log)));
  return Math.log(largest(raised, (p) => largest(lowered, (q) => dot(p, q)))) / (alpha - 1);
}

/** @type {Largest} */
const largest = (items, measure) => items.reduce((most, item) => Math.max(most, measure(item)), -Infinity);

/** @type {Dot} */
const dot = (p, q) => p.reduce((sum, each, i) => sum + each * at(q, i), 0);

/** @param {bigint[][]} weights */
const columns = (weights) => (weights[0] ?? []).map((_, y) => weights.map((row) => row[y] ?? 0n));

/** @type {At} */
const at = (numbers, i) => numbers[i] ?? 0;
