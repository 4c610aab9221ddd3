/**
 * A study as the device sees it: checked against its hash, the public log and its own channels before anything is
 * answered, then turned into exactly the reports that leave.
 */
import { sha256Of } from "./canonical.js";
import { probability, readChannel, rho } from "./channel.js";
import { checkFields } from "./fields.js";
import { add, nanoUp } from "./nano.js";
import { Refusal, refuseUnless } from "./refusal.js";
/** @import { CellsOf, Channel, Charge, ChargeOf, CheckCharge, CheckFits, CheckSkips, LogEntry, Question, ReadLevel, ReadStudy, Study, Visible } from "./types.js" */

const LEVELS = ["none", "low", "medium", "high"];
// ρ is searched; both sides may stop a little apart.
const RHO_TOLERANCE = 1.001;

/** Check what the broker sent against itself and the log; refuse otherwise. @type {ReadStudy} */
export function readStudy(answer, entry, id) {
  const definition = answer?.definition;
  refuseUnless(definition?.format === "crowdveil-study/1" && definition.id === id && /^\S+$/.test(id), "study.format"); // keys with a space are the ledger's own
  const sha256 = sha256Of(definition);
  refuseUnless(sha256 === answer.sha256, "study.hash");
  if (entry?.study !== id || entry.sha256 !== sha256) throw new Refusal("study.log");
  checkEntry(entry);
  checkFields(definition, "");
  const { protects_participation: protectsParticipation, max_answers: maxAnswers } = definition;
  // Elsewhere every report tells of an answer, and all are charged.
  refuseUnless(maxAnswers === null || protectsParticipation, "study.field", { got: "max_answers" });
  const channels = new Map(Object.entries(definition.channels).map(([name, wire]) => [name, namedChannel(name, wire)]));
  const shared = { id, sha256, definition, questions: definition.questions, protectsParticipation, maxAnswers };
  checkQuestions(shared.questions);
  checkNames(definition.levels.map((/** @type {any} */ level) => level.name));
  const levels = definition.levels.map((/** @type {any} */ level) => readLevel(level, channels, shared));
  checkOrder(levels);
  checkSkips(shared, levels);
  return Object.freeze({ ...shared, levels });
}

/** The log is a chain: each entry names the one before it. @param {LogEntry} entry @param {string} [previous] */
export function checkEntry(entry, previous) {
  const { entry: name, ...content } = entry;
  const follows = previous === undefined || entry.previous === previous;
  refuseUnless(follows && sha256Of(content) === name, "study.log");
}

/** @param {string} name @param {unknown} wire */
function namedChannel(name, wire) {
  const channel = readChannel(wire);
  refuseUnless(channel.sha256 === name, "channel.hash");
  return channel;
}

/** @param {Question[]} questions */
function checkQuestions(questions) {
  const seen = new Set();
  for (const { id, show_if: condition } of questions) {
    // A question may only depend on an earlier one.
    refuseUnless(!seen.has(id) && (!condition || seen.has(condition.question)), "study.questions", { got: id });
    seen.add(id);
  }
  refuseUnless(seen.size > 0, "study.questions", { got: "" });
}

/** Known, each once, the most private last: what is chosen by name must be what is drawn. @param {string[]} names */
function checkNames(names) {
  const inOrder = LEVELS.filter((name) => names.includes(name));
  refuseUnless(names.length > 0 && names.join() === inOrder.join(), "study.level", { got: names.join() });
}

/** "High" must not come to cost more than "low". @param {Study["levels"]} levels */
function checkOrder(levels) {
  levels.filter((level) => level.protected).reduce((most, { name, charge: { epsilon } }) => {
    refuseUnless(epsilon <= most, "study.protection", { level: name });
    return epsilon;
  }, Infinity);
}

/** Where skipping is visible, a question that depends on an answer would tell it by being reported. @type {CheckSkips} */
function checkSkips({ protectsParticipation, questions }, levels) {
  const depends = questions.some((question) => question.show_if) && levels.some((level) => level.protected);
  refuseUnless(protectsParticipation || !depends, "study.skips");
}

/** @type {ReadLevel} */
function readLevel(level, all, study) {
  const channels = new Map(study.questions.map((question) => {
    const channel = all.get(level.channels?.[question.id]);
    if (!channel) throw new Refusal("study.channel", { question: question.id });
    checkFits(channel, question, study.protectsParticipation);
    return [question.id, channel];
  }));
  const used = [...channels.values()], isProtected = used.every((channel) => Number.isFinite(channel.epsilon));
  const fits = isProtected === level.protected && isProtected === (level.name !== "none");
  refuseUnless(fits && (isProtected || !study.protectsParticipation), "study.protection", { level: level.name });
  const charge = isProtected ? chargeOf(used, study) : { epsilon: 0, rho: 0 };
  checkCharge(level, charge, isProtected);
  return { name: level.name, protected: isProtected, pay: level.pay_cents, charge, channels };
}

/** The channel takes in exactly what may be answered. @type {CheckFits} */
function checkFits(channel, question, protects) {
  const wanted = protects ? [...symbols(question.domain), null] : symbols(question.domain);
  const fits = wanted.length === channel.inputs.length && wanted.every((symbol, i) => symbol === channel.inputs[i]);
  refuseUnless(fits, "study.channel", { question: question.id });
}

/** A level must not claim to cost less than its integers say. @type {CheckCharge} */
function checkCharge(level, computed, isProtected) {
  if (!isProtected && level.charge === null) return;
  const { epsilon_nano: epsilon, rho_nano: claimedRho } = level.charge ?? {};
  const honest = isProtected && computed.epsilon <= epsilon && computed.rho <= claimedRho * RHO_TOLERANCE;
  refuseUnless(honest, "study.charge", { level: level.name });
}

/** The loss of one report; ρ is searched once for each channel. @param {Channel} channel @returns {Charge} */
function lossOf(channel) {
  const known = losses.get(channel.sha256) ?? { epsilon: nanoUp(channel.epsilon), rho: nanoUp(rho(channel)) };
  losses.set(channel.sha256, known);
  return known;
}
const losses = /** @type {Map<string, Charge>} */ (new Map());

/**
 * What these reports cost together. Where participation is protected and at most t answers are given, two workers
 * differ in at most 2·t reports.
 * @type {ChargeOf}
 */
export function chargeOf(channels, study) {
  const atStake = study.protectsParticipation && study.maxAnswers !== null ? 2 * study.maxAnswers : channels.length;
  const most = (/** @type {number[]} */ amounts) => amounts.sort((a, b) => b - a).slice(0, atStake).reduce(add, 0);
  const each = channels.map(lossOf);
  return { epsilon: most(each.map((loss) => loss.epsilon)), rho: most(each.map((loss) => loss.rho)) };
}

/** Everything that may be answered, in code order. @param {any} domain @returns {string[]} */
export function symbols(domain) {
  if (domain.type === "choices") return domain.options;
  if (domain.type === "scale") return levels(domain);
  if (domain.type === "tick-all") return subsets(domain.boxes).map((ticked) => JSON.stringify(ticked));
  throw new Refusal("study.domain", { got: String(domain.type) });
}

/** The levels of a scale as exact decimals. @param {{low: string, high: string, step: string}} scale */
function levels({ low, high, step }) {
  const digits = Math.max(...[low, high, step].map((text) => (text.split(".")[1] ?? "").length));
  const units = (/** @type {string} */ text) => Math.round(Number(text) * 10 ** digits);
  const n = Math.min(Math.floor((units(high) - units(low)) / units(step)) + 1, 100_001);
  return Array.from({ length: n }, (_, i) => {
    const text = ((units(low) + i * units(step)) / 10 ** digits).toFixed(digits);
    return digits ? text.replace(/\.?0+$/, "") : text;
  });
}

/** All sets of boxes, ordered by bit mask. @param {string[]} boxes */
function subsets(boxes) {
  return Array.from({ length: 2 ** boxes.length }, (_, mask) => boxes.filter((_, bit) => (mask >> bit) & 1));
}

/** The questions to show, given the symbols answered: skip logic stays here. @type {Visible} */
export function visible(study, answers) {
  const shown = new Set();
  return study.questions.filter(({ id, show_if: condition }) => {
    const given = condition && shown.has(condition.question) ? answers.get(condition.question) : undefined;
    const show = !condition || (given !== undefined && condition.any_of.includes(given));
    if (show) shown.add(id);
    return show;
  });
}

/**
 * The cells that will be reported: every question where participation is protected, else the answered ones.
 * @type {CellsOf}
 */
export function cellsOf(study, level, answers) {
  const shown = new Set(visible(study, answers).map((question) => question.id));
  const given = new Map([...answers].filter(([question]) => shown.has(question)));
  refuseUnless(given.size <= (study.maxAnswers ?? Infinity), "study.tooMany", { most: study.maxAnswers, got: given.size });
  return study.questions.flatMap(({ id, domain }) => {
    const channel = /** @type {Channel} */ (level.channels.get(id));
    const symbol = given.get(id);
    if (symbol === undefined) return study.protectsParticipation ? [{ question: id, channel, answer: -1 }] : [];
    const answer = symbols(domain).indexOf(symbol);
    refuseUnless(answer >= 0, "answer.option", { question: id });
    return [{ question: id, channel, answer }];
  });
}

/**
 * How sure somebody can be who thought 50:50 between the two answers that this report tells apart best.
 * @param {Channel} channel @param {number} report
 */
export function mostSure(channel, report) {
  const chances = channel.inputs.map((_, input) => probability(channel, input, report));
  const most = Math.max(...chances), least = Math.min(...chances);
  return most === 0 ? 1 : most / (most + least);
}
