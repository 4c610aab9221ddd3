/**
 * Drawing a report: one random word, compared with every threshold, nothing rejected.
 * Byte for byte the same as `crowdveil.sampler` in Python. This is the only place where an answer becomes a report.
 */
import { Refusal } from "./refusal.js";
/** @import { ByteSource, Channel } from "./types.js" */

/** The browser gives at most this many bytes at once. */
const MOST_AT_ONCE = 65536;

/** The operating system's generator: the only source for reports that are really sent. @type {ByteSource} */
export const systemBytes = {
  take(nBytes) {
    const bytes = new Uint8Array(nBytes);
    for (let start = 0; start < nBytes; start += MOST_AT_ONCE) {
      crypto.getRandomValues(bytes.subarray(start, start + MOST_AT_ONCE));
    }
    return bytes;
  },
};

/** @param {Uint8Array} bytes */
export const hexadecimal = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * One report code for each answer code (∅ = −1), consuming one little-endian word of `channel.bits` bits each.
 * @param {Channel} channel @param {number[]} answers @param {ByteSource} [source]
 */
export function draw(channel, answers, source = systemBytes) {
  const inputs = answers.map((answer) => inputCode(channel, answer));
  const size = channel.bits / 8, bytes = source.take(size * inputs.length);
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const thresholdsOf = thresholds(channel);
  return inputs.map((input, i) => {
    const word = size === 8 ? words.getBigUint64(i * size, true) : BigInt(words.getUint32(i * size, true));
    const passed = countPassed(thresholdsOf(input), word);
    // Randomised response counts on from the answer, past the end to the beginning; a table counts from 0.
    return channel.rotation ? (input + passed) % channel.inputs.length : passed;
  });
}

/** ∅ stands last where participation is protected and is refused elsewhere. @param {Channel} channel @param {number} answer */
function inputCode(channel, answer) {
  const isLevel = Number.isInteger(answer) && answer >= 0 && answer < channel.nLevels;
  if (isLevel) return answer;
  if (answer === -1 && channel.protectsParticipation) return channel.nLevels;
  throw new Refusal("answer.code", { got: answer, levels: channel.nLevels });
}

/**
 * Randomised response has one row of thresholds for all inputs: keep, keep + lie, keep + 2·lie, …
 * A table has, for each input, the prefix sums of its row.
 * @param {Channel} channel @returns {(input: number) => bigint[]}
 */
function thresholds({ rotation, weights, inputs }) {
  const known = /** @type {Map<number, bigint[]>} */ (new Map());
  return (input) => {
    const place = rotation ? 0 : input;
    const row = rotation ? [rotation.keep, ...Array(inputs.length - 1).fill(rotation.lie)] : weights[input] ?? [];
    const sums = known.get(place) ?? prefixSums(row);
    known.set(place, sums);
    return sums;
  };
}

/** All prefix sums but the last, which is 2^bits and never passed. @param {bigint[]} row */
function prefixSums(row) {
  let sum = 0n;
  return row.slice(0, -1).map((weight) => (sum += weight));
}

/** How many thresholds are ≤ the word. Every one is looked at, whatever it is, so that the time tells nothing. @param {bigint[]} row @param {bigint} word */
function countPassed(row, word) {
  return row.reduce((passed, threshold) => passed + Number(threshold <= word), 0);
}
