/** Logarithms of exact ratios, rounded up: a privacy loss is never understated. The twin of `crowdveil.exact`. */

// Fixed point with 192 bits; every step errs by less than one unit, there are fewer than 2^12 steps, and the slack
// covers them all.
const POINT = 192n;
const SLACK = 1n << 12n;
const LN2 = twiceArtanh(1n, 3n);

/** The smallest double that is certainly not below ln(numerator / denominator), for a ratio of at least 1. @type {OfRatio<number>} */
export function logUp(numerator, denominator) {
  if (numerator === denominator) return 0;
  // ratio = 2^shift · rest with rest between about ½ and 2, where the series below converges quickly.
  const shift = BigInt(bitLength(numerator) - bitLength(denominator)), scaled = denominator << shift;
  return doubleUp(shift * LN2 + twiceArtanh(numerator - scaled, numerator + scaled) + SLACK);
}

/** ln((1 + t) / (1 − t)) = 2·artanh(t) = 2·(t + t³/3 + t⁵/5 + …) for t = top / bottom, |t| ≤ 1/3. @type {OfRatio<bigint>} */
function twiceArtanh(top, bottom) {
  const t = (top << POINT) / bottom, square = (t * t) >> POINT;
  let power = t, sum = 0n;
  for (let odd = 1n; power !== 0n && power !== -1n; odd += 2n) {
    sum += power / odd;
    power = (power * square) >> POINT;
  }
  return 2n * sum;
}

/** A positive fixed-point number as a double, rounded up. @param {bigint} value */
function doubleUp(value) {
  const surplus = Math.max(0, bitLength(value) - 53), rounded = -((-value) >> BigInt(surplus));
  return Number(rounded) * 2 ** (surplus - Number(POINT));
}

/** @param {bigint} value */
const bitLength = (value) => value.toString(2).length;
