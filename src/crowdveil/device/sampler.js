/**
 * Drawing a report: one random word, compared with every threshold, nothing rejected.
 * Byte for byte the same as `crowdveil.sampler` in Python. This is the only place where an answer becomes a report.
 */
import { Refusal } from "./refusal.js";

const MOST_AT_ONCE = 65536; // the browser gives no more

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

/** One report code for each answer code (∅ = −1), from one little-endian word of `channel.bits` bits each. @type {Draw} */
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

/** ∅ stands last where participation is protected and is refused elsewhere. @type {InputCode} */
function inputCode({ nLevels, protectsParticipation }, answer) {
  if (Number.isInteger(answer) && answer >= 0 && answer < nLevels) return answer;
  if (answer === -1 && protectsParticipation) return nLevels;
  throw new Refusal("answer.code", { got: answer, levels: nLevels });
}

/** One row for all inputs in randomised response: keep, keep + lie, keep + 2·lie, …; in a table one for each. @type {Thresholds} */
function thresholds({ rotation, weights, inputs }) {
  const shared = rotation && prefixSums([rotation.keep, ...Array(inputs.length - 1).fill(rotation.lie)]);
  return (input) => shared ?? prefixSums(weights[input] ?? []);
}

/** All prefix sums but the last, which is 2^bits and never passed. @param {bigint[]} row */
function prefixSums(row) {
  let sum = 0n;
  return row.slice(0, -1).map((weight) => (sum += weight));
}

/** How many thresholds are ≤ the word. Every one is looked at, so that the time tells nothing. @type {CountPassed} */
const countPassed = (row, word) => row.reduce((passed, threshold) => passed + Number(threshold <= word), 0);
