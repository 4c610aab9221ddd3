/**
 * Privacy in whole nano-units, charges rounded up and caps rounded down, and the conversion that gives the second
 * currency of the ledger rule. The twin of `crowdveil.accounting.nano` and `.conversion`.
 */

const NANO = 1_000_000_000n;

/** An absurdly large amount stops here: two of them still add exactly. */
export const SATURATED = 2 ** 52;

/** A charge: never below the amount. @param {number} amount */
export function nanoUp(amount) {
  if (amount * 1e9 >= SATURATED) return SATURATED;
  const { top, bottom } = fraction(amount);
  return Number((top * NANO + bottom - 1n) / bottom);
}

/** A cap: never above the amount. @param {number} amount */
export function nanoDown(amount) {
  if (amount * 1e9 >= SATURATED) return SATURATED - 1;
  const { top, bottom } = fraction(amount);
  return Number((top * NANO) / bottom);
}

/** @param {number} left @param {number} right */
export function add(left, right) {
  return Math.min(left + right, SATURATED);
}

/** Nano-units as text, rounded up to four digits: a shown loss is never understated. @param {number} nano */
export function shownUp(nano) {
  return nano >= SATURATED ? "∞" : String(Math.ceil(nano / 1e5) / 1e4);
}

/** Rounded down: what is left is never overstated. @param {number} nano */
export function shownDown(nano) {
  return String(Math.floor(nano / 1e5) / 1e4);
}

/** A double that is not negative, exactly. @param {number} amount */
function fraction(amount) {
  let bottom = 1n;
  for (; !Number.isInteger(amount); amount *= 2) bottom *= 2n;
  return { top: BigInt(amount), bottom };
}

const SEARCH = { low: Math.log(1e-6), high: Math.log(1e12), grid: 64, steps: 80 };
const GOLDEN = (Math.sqrt(5) - 1) / 2;
// Sums of a few logarithms err by less than this.
const FLOAT_SLACK = 1e-12;

/**
 * The largest ρ whose zero-concentrated guarantee implies (ε, δ) (Canonne–Kamath–Steinke 2020), rounded down.
 * At order α: ε = α·ρ + ln(1 − 1/α) − (ln δ + ln α)/(α − 1), solved for ρ; each order gives a true bound by itself.
 * @param {number} epsilon @param {number} delta
 */
export function rhoMax(epsilon, delta) {
  if (delta === 0) return 0;
  const at = (/** @type {number} */ logAbove) => {
    const above = Math.exp(logAbove), alpha = 1 + above;
    return (epsilon - Math.log1p(-1 / alpha) + (Math.log(delta) + Math.log(alpha)) / (alpha - 1)) / alpha;
  };
  return Math.max(0, largest(at)) * (1 - FLOAT_SLACK);
}

/** A grid, then a golden-section search around its best point. @param {(place: number) => number} at */
function largest(at) {
  const width = (SEARCH.high - SEARCH.low) / SEARCH.grid;
  const places = Array.from({ length: SEARCH.grid + 1 }, (_, step) => SEARCH.low + step * width);
  const best = places.reduce((a, b) => (at(b) > at(a) ? b : a));
  let low = best - width, high = best + width;
  for (let step = 0; step < SEARCH.steps; step++) {
    const left = high - GOLDEN * (high - low), right = low + GOLDEN * (high - low);
    if (at(left) > at(right)) high = right;
    else low = left;
  }
  return Math.max(at(best), at((low + high) / 2));
}
