/**
 * A study as the device sees it: checked against its hash, the public log and its own channels, then turned into
 * exactly the reports that leave.
 */
import { sha256Of } from "./canonical.js";
import { probability, readChannel, rho } from "./channel.js";
import { checkFields } from "./schema_check.js";
import { add, nanoUp } from "./nano.js";
import { Refusal, refuseUnless } from "./refusal.js";

const LEVELS = ["none", "low", "medium", "high"];
const RHO_TOLERANCE = 1.001; // it is searched; both sides may stop a little apart

/** Check what the broker sent against itself and the log. @type {ReadStudy} */
export function readStudy(answer, entry, id) {
  const definition = answer?.definition;
  // Keys with a space are the ledger's own.
  refuseUnless(definition?.format === "crowdveil-study/1" && definition.id === id && /^\S+$/.test(id), "study.format");
  const sha256 = sha256Of(definition);
  refuseUnless(sha256 === answer.sha256, "study.hash");
  if (entry?.study !== id || entry.sha256 !== sha256) throw new Refusal("study.log");
  checkEntry(entry);
  checkFields(definition, "");
  const { protects_participation: protectsParticipation, max_answers: maxAnswers } = definition;
  // Elsewhere every report tells of an answer, and all are charged.
  refuseUnless(maxAnswers === null || protectsParticipation, "study.field", { got: "max_answers" });
  const channels = new Map(Object.entries(definition.channels).map(([name, wire]) => [name, readChannel(wire)]));
  for (const [name, { sha256 }] of channels) refuseUnless(sha256 === name, "channel.hash");
  const shared = { id, sha256, definition, questions: definition.questions, protectsParticipation, maxAnswers };
  checkQuestions(shared.questions);
  checkNames(definition.levels.map((level) => level.name));
  const levels = definition.levels.map((level) => readLevel(level, channels, shared));
  checkOrder(levels);
  checkSkips(shared, levels);
  return Object.freeze({ ...shared, levels });
}

/** The log is a chain: each entry names the one before it. @type {CheckEntry} */
export function checkEntry({ entry, ...content }, previous = content.previous) {
  refuseUnless(content.previous === previous && sha256Of(content) === entry, "study.log");
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

/** "High" must not come to cost more than "low". @param {Level[]} levels */
function checkOrder(levels) {
  levels.filter((level) => level.protected).reduce((most, { name, charge: { epsilon } }) => {
    refuseUnless(epsilon <= most, "study.protection", { level: name });
    return epsilon;
  }, Infinity);
}

/** Where skipping is visible, a report on a question that depends on an answer would tell it. @type {CheckSkips} */
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
  const charge = chargeOf(isProtected ? used : [], study);
  checkCharge(level, charge, isProtected);
  return { name: level.name, protected: isProtected, pay: level.pay_cents, charge, channels };
}

/** The channel takes in exactly what may be answered. @type {CheckFits} */
function checkFits({ inputs }, { id, domain }, protects) {
  const wanted = [...symbols(domain), ...(protects ? [null] : [])];
  refuseUnless(JSON.stringify(wanted) === JSON.stringify(inputs), "study.channel", { question: id });
}

/** A level must not claim to cost less than its integers say. @type {CheckCharge} */
function checkCharge(level, computed, isProtected) {
  if (!isProtected && level.charge === null) return;
  const { epsilon_nano: epsilon, rho_nano: rho } = level.charge ?? {};
  const honest = isProtected && computed.epsilon <= epsilon && computed.rho <= rho * RHO_TOLERANCE;
  refuseUnless(honest, "study.charge", { level: level.name });
}

/** The loss of one report; ρ is searched once for each channel. @param {Channel} channel */
function lossOf(channel) {
  const known = losses.get(channel.sha256) ?? { epsilon: nanoUp(channel.epsilon), rho: nanoUp(rho(channel)) };
  losses.set(channel.sha256, known);
  return known;
}
const losses = /** @type {Map<string, Charge>} */ (new Map());

/** Where participation is protected and at most t answers are given, two workers differ in at most 2·t reports. @type {ChargeOf} */
export function chargeOf(channels, { protectsParticipation, maxAnswers }) {
  const atStake = protectsParticipation && maxAnswers !== null ? 2 * maxAnswers : channels.length, each = channels.map(lossOf);
  const most = (/** @type {keyof Charge} */ of) => each.map((loss) => loss[of]).sort((a, b) => b - a).slice(0, atStake).reduce(add, 0);
  return { epsilon: most("epsilon"), rho: most("rho") };
}

/** Everything that may be answered, in code order. @param {any} domain @returns {string[]} */
export function symbols(domain) {
  if (domain.type === "choices") return domain.options;
  if (domain.type === "scale") return levels(domain);
  if (domain.type === "tick-all") return subsets(domain.boxes).map((ticked) => JSON.stringify(ticked));
  throw new Refusal("study.domain", { got: String(domain.type) });
}

/** The levels of a scale as exact decimals. @param {any} scale */
function levels(scale) {
  const texts = [scale.low, scale.high, scale.step], digits = Math.max(...texts.map((text) => (text.split(".")[1] ?? "").length));
  const [low = 0, high = 0, step = 0] = texts.map((text) => Math.round(Number(text) * 10 ** digits));
  return Array.from({ length: Math.min(Math.floor((high - low) / step) + 1, 100_001) }, (_, i) => {
    const text = ((low + i * step) / 10 ** digits).toFixed(digits);
    return digits ? text.replace(/\.?0+$/, "") : text;
  });
}

/** All sets of boxes, ordered by bit mask. @param {string[]} boxes */
const subsets = (boxes) => Array.from({ length: 2 ** boxes.length }, (_, mask) => boxes.filter((_, bit) => (mask >> bit) & 1));

/** Which questions to show: skip logic stays here. @type {Visible} */
export function visible(study, answers) {
  const shown = new Set();
  return study.questions.filter(({ id, show_if: condition }) => {
    const given = condition && shown.has(condition.question) ? answers.get(condition.question) : undefined;
    const show = !condition || (given != null && condition.any_of.includes(given));
    return show && shown.add(id);
  });
}

/** Every question is reported where participation is protected, else the answered ones. @type {CellsOf} */
export function cellsOf(study, level, answers) {
  const shown = visible(study, answers).map((question) => question.id);
  const given = new Map([...answers].filter(([question, symbol]) => shown.includes(question) && symbol !== null));
  refuseUnless(given.size <= (study.maxAnswers ?? Infinity), "study.tooMany", { most: study.maxAnswers, got: given.size });
  return study.questions.flatMap(({ id, domain }) => {
    const channel = /** @type {Channel} */ (level.channels.get(id)), symbol = given.get(id);
    if (symbol == null) return study.protectsParticipation ? [{ question: id, channel, answer: -1 }] : [];
    const answer = symbols(domain).indexOf(symbol);
    refuseUnless(answer >= 0, "answer.option", { question: id });
    return [{ question: id, channel, answer }];
  });
}

/** What drawing these answers would cost. @type {CostOf} */
export const costOf = (study, level, answers) =>
  chargeOf(level.protected ? cellsOf(study, level, answers).map((cell) => cell.channel) : [], study);

/** How sure somebody can be who thought 50:50 between the two answers that this report tells apart best. @type {MostSure} */
export function mostSure(channel, report) {
  const chances = channel.inputs.map((_, input) => probability(channel, input, report)), most = Math.max(...chances);
  return most === 0 ? 1 : most / (most + Math.min(...chances));
}
