/**
 * The compact spellings of large tables, unfolded into weights (inputs × outputs) exactly as `crowdveil.forms` does.
 */
import { Refusal } from "./refusal.js";
/** @import { Shape } from "./types.js" */

/** A weight: a decimal string in its one canonical spelling. @param {unknown} text */
export function count(text) {
  if (typeof text !== "string" || !/^(0|[1-9][0-9]*)$/.test(text)) {
    throw new Refusal("channel.weight", { got: String(text) });
  }
  return BigInt(text);
}

/** The weights that a wire `kind` other than "rotate" spells. @param {any} kind @param {Shape} shape */
export function unfold(kind, shape) {
  if (kind.name === "subset") return subset(whole(kind.size), count(kind.inside), count(kind.outside), shape);
  if (kind.name === "clamp" && Array.isArray(kind.noise) && typeof kind.null_input === "boolean") {
    return clamp(kind.noise.map(count), whole(kind.offset), kind.null_input, shape);
  }
  throw new Refusal("channel.kind", { got: String(kind.name) });
}

/**
 * Outputs are all subsets of `size` inputs in order; what is missing to 2^bits goes to the first that hold the input.
 * @param {number} size @param {bigint} inside @param {bigint} outside @param {Shape} shape
 */
function subset(size, inside, outside, shape) {
  const n = shape.inputs;
  if (size < 1 || size >= n || choose(n, size) !== BigInt(shape.outputs)) throw new Refusal("channel.shape");
  const missing = (1n << BigInt(shape.bits)) - choose(n - 1, size - 1) * inside - choose(n - 1, size) * outside;
  if (missing < 0n || missing > choose(n - 1, size - 1)) throw new Refusal("channel.sum", { row: 1 });
  const subsets = combinations(n, size);
  return Array.from({ length: n }, (_, input) => {
    let left = missing;
    return subsets.map((members) => {
      if (!members.includes(input)) return outside;
      return left-- > 0n ? inside + 1n : inside;
    });
  });
}

/**
 * Noise added to the level and clamped to the outputs; input x stands at output `offset` + x; ∅ is the mean row.
 * @param {bigint[]} noise @param {number} offset @param {boolean} nullInput @param {Shape} shape
 */
function clamp(noise, offset, nullInput, shape) {
  if (noise.length % 2 === 0) throw new Refusal("channel.shape");
  const reach = (noise.length - 1) / 2;
  const rows = Array.from({ length: shape.inputs - (nullInput ? 1 : 0) }, (_, level) => {
    const row = Array.from({ length: shape.outputs }, () => 0n);
    noise.forEach((weight, i) => {
      const landing = Math.min(Math.max(i - reach + level + offset, 0), shape.outputs - 1);
      row[landing] = (row[landing] ?? 0n) + weight;
    });
    return row;
  });
  return nullInput ? [...rows, meanRow(rows, shape)] : rows;
}

/** Rounded down, the remainder on the first largest weight. @param {bigint[][]} rows @param {Shape} shape */
function meanRow(rows, shape) {
  const mean = Array.from({ length: shape.outputs }, (_, y) =>
    rows.reduce((sum, row) => sum + (row[y] ?? 0n), 0n) / BigInt(rows.length));
  const most = mean.reduce((a, b) => (b > a ? b : a));
  const rest = (1n << BigInt(shape.bits)) - mean.reduce((a, b) => a + b);
  mean[mean.indexOf(most)] = most + rest;
  return mean;
}

/** @param {unknown} value */
function whole(value) {
  if (!Number.isSafeInteger(value)) throw new Refusal("channel.weight", { got: String(value) });
  return /** @type {number} */ (value);
}

/** @param {number} n @param {number} size */
function choose(n, size) {
  let ways = 1n;
  for (let i = 1; i <= size; i++) ways = (ways * BigInt(n - size + i)) / BigInt(i);
  return ways;
}

/** All subsets of 0 … n − 1 with `size` members, in lexicographic order. @param {number} n @param {number} size */
function combinations(n, size) {
  const all = /** @type {number[][]} */ ([]);
  const grow = (/** @type {number[]} */ members, /** @type {number} */ next) => {
    if (members.length === size) return void all.push(members);
    for (let member = next; member <= n - size + members.length; member++) grow([...members, member], member + 1);
  };
  grow([], 0);
  return all;
}
