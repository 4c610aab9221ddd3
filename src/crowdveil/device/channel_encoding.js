/** The compact spellings of large tables, unfolded into weights (inputs × outputs) exactly as `crowdveil.channel.encoding` does. */
import { Refusal, refuseUnless } from "./refusal.js";

/** A weight: a decimal string in its one canonical spelling. @param {unknown} text */
export function count(text) {
  refuseUnless(typeof text === "string" && /^(0|[1-9][0-9]*)$/.test(text), "channel.weight");
  return BigInt(String(text));
}

/** Every `kind` but "rotate". @type {Unfold} */
export function unfold(kind, shape) {
  const known = kind !== null && typeof kind === "object" && Object.keys(kind).length === 4;
  if (known && kind.name === "subset") return subset(whole(kind.size), count(kind.inside), count(kind.outside), shape);
  if (known && kind.name === "clamp" && Array.isArray(kind.noise) && typeof kind.null_input === "boolean") {
    return clamp(kind.noise.map(count), whole(kind.offset), kind.null_input, shape);
  }
  throw new Refusal("channel.kind");
}

/** What is missing to 2^bits goes to the first subsets that hold the input. @type {Subset} */
function subset(size, inside, outside, { inputs, outputs, bits }) {
  refuseUnless(size >= 1 && size < inputs && choose(inputs, size) === BigInt(outputs), "channel.shape");
  const holding = choose(inputs - 1, size - 1);
  const missing = (1n << BigInt(bits)) - holding * inside - choose(inputs - 1, size) * outside;
  refuseUnless(missing >= 0n && missing <= holding, "channel.sum");
  const subsets = combinations(inputs, size);
  return Array.from({ length: inputs }, (_, input) => {
    let left = missing;
    return subsets.map((members) => (!members.includes(input) ? outside : left-- > 0n ? inside + 1n : inside));
  });
}

/** Input x stands at output `offset` + x; ∅ is the mean row. @type {Clamp} */
function clamp(noise, offset, nullInput, { inputs, outputs, bits }) {
  refuseUnless(noise.length % 2 === 1, "channel.shape");
  const reach = (noise.length - 1) / 2;
  const rows = Array.from({ length: inputs - Number(nullInput) }, (_, level) => {
    const row = Array(outputs).fill(0n);
    noise.forEach((weight, i) => { row[Math.min(Math.max(i - reach + level + offset, 0), outputs - 1)] += weight; });
    return row;
  });
  return nullInput ? [...rows, meanRow(rows, 1n << BigInt(bits))] : rows;
}

/** Rounded down, the remainder on the first largest weight. @type {MeanRow} */
function meanRow(rows, total) {
  const sum = (/** @type {bigint[]} */ weights) => weights.reduce((a, b) => a + b);
  const mean = (rows[0] ?? []).map((_, y) => sum(rows.map((row) => row[y] ?? 0n)) / BigInt(rows.length));
  const most = mean.reduce((a, b) => (b > a ? b : a));
  mean[mean.indexOf(most)] = most + total - sum(mean);
  return mean;
}

/** @param {any} value */
function whole(value) {
  refuseUnless(Number.isSafeInteger(value), "channel.weight");
  return value;
}

/** @type {Choose} */
function choose(n, size) {
  let ways = 1n;
  for (let i = 1; i <= size; i++) ways = (ways * BigInt(n - size + i)) / BigInt(i);
  return ways;
}

/** All subsets of first … n − 1 with `size` members, in lexicographic order. @type {Combinations} */
function combinations(n, size, first = 0) {
  if (size === 0) return [[]];
  const firsts = Array.from({ length: n - size - first + 1 }, (_, i) => first + i);
  return firsts.flatMap((member) => combinations(n, size - 1, member + 1).map((others) => [member, ...others]));
}
