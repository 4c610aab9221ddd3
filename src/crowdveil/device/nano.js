/**
 * Privacy in whole nano-units, charges rounded up and caps down, and the conversion to the second currency of the ledger
 * rule. The twin of `crowdveil.accounting.nano` and `.conversion`.
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

/** @type {OfNumbers} */
export const add = (left, right) => Math.min(left + right, SATURATED);

/** A double that is not negative, exactly. @param {number} amount */
function fraction(amount) {
  if (!(amount >= 0)) throw new RangeError("no amount"); // it would be doubled for ever
  let bottom = 1n;
  for (; !Number.isInteger(amount); amount *= 2) bottom *= 2n;
  return { top: BigInt(amount), bottom };
}

/**
 * The largest ρ whose zero-concentrated guarantee implies (ε, δ) (Canonne–Kamath–Steinke 2020), rounded down.
 * At order α: ε = α·ρ + ln(1 − 1/α) − (ln δ + ln α)/(α − 1), solved for ρ; each order gives a true bound by itself.
 * The best order is found on a grid of ln(α − 1), made ever finer around its best point. @type {OfNumbers}
 */
export function rhoMax(epsilon, delta) {
  if (delta === 0) return 0;
  const at = (/** @type {number} */ place) => {
    const above = Math.exp(place), alpha = 1 + above;
    return (epsilon - Math.log1p(-1 / alpha) + (Math.log(delta) + Math.log(alpha)) / above) / alpha;
  };
  let best = 0;
  for (let width = 0.5; width > 1e-9; width /= 4) {
    const grid = Array.from({ length: 101 }, (_, step) => best + (step - 50) * width);
    best = grid.reduce((a, b) => (at(b) > at(a) ? b : a));
  }
  // Sums of a few logarithms err by less than this.
  return Math.max(0, at(best)) * (1 - 1e-12);
}
