/** SHA-256 (FIPS 180-4), written out: the browser's own is missing where a page is not served securely. */

const PRIMES = firstPrimes(64);
const ROUND = Uint32Array.from(PRIMES, (prime) => fractionBits(Math.cbrt(prime)));
const START = Uint32Array.from(PRIMES.slice(0, 8), (prime) => fractionBits(Math.sqrt(prime)));

/** The hash in hexadecimal. @param {Uint8Array} bytes */
export function sha256(bytes) {
  const state = START.slice(), view = padded(bytes);
  for (let start = 0; start < view.byteLength; start += 64) compress(state, view, start);
  return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
}

/** The message, a one bit, zeros, and its length in bits: a whole number of blocks. @param {Uint8Array} bytes */
function padded(bytes) {
  const blocks = new Uint8Array((((bytes.length + 8) >> 6) + 1) << 6), view = new DataView(blocks.buffer);
  blocks.set(bytes);
  blocks[bytes.length] = 0x80;
  view.setBigUint64(blocks.length - 8, 8n * BigInt(bytes.length));
  return view;
}

/** @type {Compress} */
function compress(state, view, start) {
  const w = new Uint32Array(64);
  for (let t = 0; t < 64; t++) {
    const x = at(w, t - 15), y = at(w, t - 2);
    const s0 = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3), s1 = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10);
    w[t] = t < 16 ? view.getUint32(start + 4 * t) : at(w, t - 16) + s0 + at(w, t - 7) + s1;
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let t = 0; t < 64; t++) {
    const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25), s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + at(ROUND, t) + at(w, t)) | 0;
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => { state[i] = at(state, i) + word; });
}

/** @type {OfNumbers} */
const turn = (word, by) => (word >>> by) | (word << (32 - by));

/** @type {At} */
const at = (words, i) => words[i] ?? 0;

/** @param {number} count */
function firstPrimes(count) {
  const primes = /** @type {number[]} */ ([]);
  for (let candidate = 2; primes.length < count; candidate++) {
    if (primes.every((prime) => candidate % prime)) primes.push(candidate);
  }
  return primes;
}

/** The first 32 bits behind the point. @param {number} root */
function fractionBits(root) {
  return Math.floor((root % 1) * 2 ** 32);
}
