/**
 * Draws wait here until they are sent. A draw is charged, made and stored in one transaction, before anybody sees it;
 * what was drawn once is what is shown, sent and sent again. There is no second draw.
 */
import { sha256 } from "./sha256.js";
import { charge, spent, sum, within } from "./ledger.js";
import { draw, hexadecimal, systemBytes } from "./sampler.js";
import { cellsOf, chargeOf } from "./study.js";
import { refuseUnless } from "./refusal.js";

/** Charge, draw and store; or return what was drawn before. @type {Commit} */
export function commit(store, study, level, answers, { cap, day, since, isHeld = false }) {
  const cells = cellsOf(study, level, answers);
  refuseUnless(cells.length > 0, "study.nothing");
  return store.update((rows) => {
    const drawn = rows.outbox.get(study.id);
    if (drawn) return { result: drawn };
    refuseUnless(!rows.ledger.has(study.id), "study.drawn");
    const advice = remedies(study, level, spent(rows.ledger.values(), since), cap, isHeld);
    const line = charge(rows.ledger, lineOf(study, level, cells, day), cap, since, advice);
    // One for each question: without any they were forgotten, or stayed on another device.
    const kept = Object.fromEntries(study.questions.map(({ id }) => [id, answers.get(id) ?? null]));
    const entry = { ...drawEntry(study, level, cells), answers: kept, day };
    return {
      result: entry,
      writes: [
        { table: "ledger", key: line.key, value: line },
        { table: "outbox", key: study.id, value: entry },
        { table: "drafts", key: study.id },
      ],
    };
  });
}

/**
 * What helps a worker whose budget is too small: only what works. Fewer answers cost less where skipping is visible, but
 * the broker's hold is for all questions: they help only once a place is held. @type {Remedies}
 */
export function remedies(study, level, used, cap, isHeld) {
  const fits = (/** @type {Charge} */ charge) => within(sum(used, charge), cap);
  const isFewer = isHeld && !study.protectsParticipation && [...level.channels.values()].some((channel) => fits(chargeOf([channel], study)));
  const isHigher = study.levels.some((other) => other.protected && other !== level && fits(other.charge));
  return [...(isHigher ? ["level"] : []), ...(isFewer ? ["fewer"] : []), "cap"];
}

/** @type {LineOf} */
function lineOf(study, level, cells, day) {
  const counted = level.protected ? cells : [], cost = chargeOf(counted.map((cell) => cell.channel), study);
  return {
    key: study.id, kind: level.protected ? "study" : "unprotected", name: study.definition.title, level: level.name,
    reports: cells.length, ...cost, day,
  };
}

/** @type {DrawEntry} */
function drawEntry({ id, sha256: hash, definition }, level, cells) {
  const withdrawal = systemBytes.take(32);
  const reports = cells.map(({ question, channel, answer }) => ({
    question, channel: channel.sha256, report: draw(channel, [answer])[0],
  }));
  return {
    study: id, title: definition.title, level: level.name, state: "drawn", receipt: null,
    idempotencyKey: hexadecimal(systemBytes.take(16)),
    withdrawalKey: hexadecimal(withdrawal),
    body: {
      study_sha256: hash, level: level.name, consent_version: definition.consent.version,
      withdrawal_sha256: sha256(withdrawal), reports,
    },
  };
}

/** Send what waits. Only an answer of the broker changes the state; without one everything stays as it is. @type {Flush} */
export async function flush(store, send) {
  const waiting = await store.update(({ outbox }) => ({ result: [...outbox.values()].filter(({ state }) => state === "waiting") }));
  const answered = [];
  for (const entry of waiting) answered.push(await setEntry(store, entry.study, await send(entry)));
  return answered;
}

/** @type {SetEntry} */
export function setEntry(store, study, changed) {
  return store.update(({ outbox }) => {
    const entry = Object.assign({}, outbox.get(study), changed);
    return { result: entry, writes: [{ table: "outbox", key: study, value: entry }] };
  });
}
