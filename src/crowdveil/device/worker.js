/** What a worker does, step by step, without any page: join, open a study, accept, protect, send, move, leave. */
import { Offline, Problem, api } from "./api.js";
import { beyond, capOf, carryOver, exportLedger, importLedger, merge, share, spent } from "./ledger.js";
import { commit, flush, setEntry } from "./outbox.js";
import { Refusal, refuseUnless } from "./refusal.js";
import { signed } from "./signature.js";
import { checkEntry, readStudy } from "./study.js";

/** Refusals for which the broker looked whether it has this very submission, and has not. */
const LOOKED = ["over-budget", "no-money", "already-submitted", "idempotency-conflict", "withdrawn"];

const MOST_CAP = 100e9; // the broker's copy takes no higher one

const today = () => new Date().toISOString().slice(0, 10);

/** Where the worker stands. @param {State} state */
export function budget({ me, lines }) {
  const cap = capOf(me?.cap ?? 0), used = spent(lines.values(), since(me));
  return { cap, used, left: beyond(cap, used), share: Math.min(share(used, cap), 1) };
}

/** A cap for each year forgets what earlier years spent. @param {Me} [me] */
const since = (me) => (me?.period === "year" ? `${today().slice(0, 4)}-01-01` : "");

/** One device of one worker; all that it must remember is in its store. */
export class Device {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.sending = Promise.resolve(/** @type {Entry[]} */ ([]));
  }

  load() {
    return this.store.update(({ settings, ledger, outbox, drafts }) => ({
      result: { me: settings.get("me"), lines: ledger, outbox, drafts },
    }));
  }

  /** Without a value it is removed. @type {Put} */
  put(table, key, value) {
    return this.store.update(() => ({ writes: [{ table, key, value }] }));
  }

  /** @param {string} key */
  setting(key) {
    return this.store.update(({ settings }) => ({ result: settings.get(key) }));
  }

  /** @param {Partial<Me>} changed */
  async saveMe(changed) {
    await this.store.update(({ settings }) => ({ writes: setMe({ ...settings.get("me"), ...changed }) }));
    if (changed.cap || changed.level || changed.period) await this.meetMirror();
  }

  /** Null without an account or for an expected error. @type {Ask} */
  async ask(call, expected) {
    const { me } = await this.load();
    return me?.token ? call(me.token).catch(orElse(expected, nothing)) : null;
  }

  /** Joins first without an account. One that is gone is never replaced unasked: its pay would be gone, too. @type {WithToken} */
  async withToken(call) {
    const { me } = await this.load();
    if (!me) throw new Error("start first");
    if (me.token) return known(call)(me.token);
    const key = keyOf(await api.join(me.level, me.cap));
    await this.saveMe(key);
    return call(key.token);
  }

  async renew() {
    const { me } = await this.load();
    if ((me?.renewAfter ?? "") > new Date().toISOString()) return;
    const fresh = await this.ask(known(api.renew), isOfBroker);
    if (fresh) await this.store.update(({ settings }) => {
      const now = settings.get("me");
      return { writes: now?.token === me?.token ? setMe({ ...now, ...keyOf(fresh) }) : [] };
    });
  }

  /** A new account in place of one that is gone; the ledger stays. */
  startAnew() {
    return this.saveMe({ token: undefined, renewAfter: undefined });
  }

  /** Null where nobody can say now. */
  earned() {
    return this.ask(known(api.payments), isOfBroker);
  }

  /** The public key that this device saw first. Another one later is not believed. */
  async brokerKey() {
    const { me } = await this.load(), brokerKey = me?.brokerKey ?? (await api.info()).public_key;
    if (!me?.brokerKey) await this.saveMe({ brokerKey });
    return brokerKey;
  }

  /** The studies on offer; the last list seen where there is no answer. @returns {Promise<Card[]>} */
  async listStudies() {
    const kept = await this.setting("studies"), asked = this.ask(api.myStudies, isUnknown).then((found) => found ?? api.studies());
    const items = await asked.then((found) => found.items, orElse(() => kept !== undefined, () => kept));
    await this.put("settings", "studies", items);
    return items;
  }

  /** A checked study, and what the broker says around it. @param {string} id */
  async openStudy(id) {
    const key = `study ${id}`, kept = await this.setting(key), { outbox } = await this.load();
    try {
      const fresh = await api.study(id), before = kept?.sha256 ?? outbox.get(id)?.body.study_sha256;
      await this.followLog(fresh.log);
      // What was read, agreed to or drawn from never changes.
      refuseUnless(!before || before === fresh.sha256, "study.changed");
      const answer = { ...fresh, brokerKey: await this.brokerKey() }, checked = await checkedStudy(answer, id);
      await this.put("settings", key, answer);
      return checked;
    } catch (error) {
      if (error instanceof Refusal || !kept) throw error;
      return checkedStudy(kept, id);
    }
  }

  /** The public log only grows: every entry seen must still be there, and each must name the one before. @param {LogEntry} wanted */
  async followLog(wanted) {
    const seen = /** @type {string[]} */ ((await this.setting("log")) ?? []);
    for (let more = true; more;) {
      const { items, next } = await api.log(seen.length);
      for (const entry of items) {
        checkEntry(entry, seen.at(-1) ?? "0".repeat(64));
        refuseUnless(seen.push(entry.entry) === entry.index, "study.log");
      }
      more = items.length > 0 && next !== null;
    }
    refuseUnless(seen[wanted?.index - 1] === wanted?.entry, wanted?.index <= seen.length ? "study.rewritten" : "study.log");
    await this.put("settings", "log", seen);
  }

  /** Hold a place at this level and begin a draft. @type {ByLevel} */
  async accept(study, level) {
    await this.meetMirror();
    const { expires } = await this.reserve(study, level);
    await this.put("drafts", study.id, { level, expires, answers: {} });
  }

  /** A place that is held already stays held. @type {ByLevel} */
  reserve({ id, sha256 }, level) {
    return this.withToken((token) => api.reserve(token, id, level, sha256)).catch(orElse(isOffline, () => ({ expires: "" })));
  }

  /** Nothing was drawn: place, money and budget that were held are free again. @param {string} id */
  async giveBack(id) {
    await this.ask((token) => api.cancel(token, id), (error) => isAbsent(error) || isUnknown(error));
    await this.put("drafts", id);
  }

  /** Until the new choice nothing is held, unless that would cost an invitation. @param {Study} study */
  async chooseAgain({ id, definition }) {
    if (definition.selection?.policy === "first-come") await this.giveBack(id).catch(orElse(isOffline, nothing));
    await this.put("drafts", id);
  }

  /** @param {string} id @param {Answers} answers */
  keepAnswers(id, answers) {
    return this.store.update(({ drafts }) => {
      const draft = drafts.get(id), value = { ...draft, answers: Object.fromEntries(answers) };
      return { writes: draft ? [{ table: "drafts", key: id, value }] : [] };
    });
  }

  /** Charge, draw, store. A device that was set back learns first what it has forgotten. @type {Protect} */
  async protect(study, levelName, answers) {
    await this.meetMirror();
    const { me, outbox } = await this.load(), level = study.levels.find((each) => each.name === levelName);
    if (!me || !level) throw new Refusal("study.level", { got: levelName });
    // Reports that would not be taken must not cost anything.
    if (!outbox.has(study.id)) await this.reserve(study, levelName);
    return commit(this.store, study, level, answers, { cap: capOf(me.cap), day: today(), since: since(me) });
  }

  /** Send this draw, now or as soon as there is a network. @param {string} id */
  async release(id) {
    const { outbox } = await this.load();
    // Another tab may have sent it or taken it back.
    if (["drawn", "unknown"].includes(outbox.get(id)?.state ?? "")) await setEntry(this.store, id, { state: "waiting" });
    return this.sendAll();
  }

  sendAll() {
    return this.inTurn(() => flush(this.store, (entry) => this.send(entry)));
  }

  /** One after the other, so that nothing is sent twice. @param {() => Promise<Entry[]>} work */
  inTurn(work) {
    return this.sending = this.sending.then(work, work);
  }

  /** The broker's final "no" is kept; no answer is tried again later. @type {Send} */
  async send(entry) {
    try {
      await this.firstToSend(entry);
      const receipt = await this.withToken((token) => api.submit(token, entry)), { signature, ...content } = receipt;
      return { state: "sent", receipt, genuine: await signed(content, signature, await this.brokerKey()) };
    } catch (error) {
      if (!(error instanceof Problem) || error.status >= 500 || error.status === 429) throw error;
      const receipt = { refused: error.message, code: error.code };
      // A closed study no longer looks whether it has this submission: the reply to it may have been lost.
      return { state: entry.tried && !LOOKED.includes(error.code) ? "unknown" : "refused", receipt };
    }
  }

  /** Where another device has answered, a second draw stays here. @param {Entry} entry */
  async firstToSend({ study, tried }) {
    const { items } = tried ? { items: [] } : await this.withToken(api.myStudies);
    if (items.some((card) => card.id === study && card.status === "submitted")) throw new Problem(409, { type: "already-submitted" });
    await setEntry(this.store, study, { tried: true });
  }

  /** Whatever may have left can be taken back, and is not sent meanwhile. @param {Entry} entry */
  withdraw({ study, withdrawalKey }) {
    return this.inTurn(async () => {
      const { outbox } = await this.load();
      if (outbox.get(study)?.state === "waiting") await setEntry(this.store, study, { state: "unknown", receipt: null });
      const taken = await api.withdraw(study, withdrawalKey).then(() => true, orElse(isAbsent, () => false));
      return [await setEntry(this.store, study, { state: taken ? "withdrawn" : "absent" })];
    });
  }

  /** @param {string} id */
  forget(id) {
    return setEntry(this.store, id, { answers: {} });
  }

  /** For another device; the answers stay. */
  async moveOut() {
    const { me, lines, outbox } = await this.load();
    return exportLedger(lines.values(), { me, outbox: [...outbox.values()].map((entry) => ({ ...entry, answers: {} })) });
  }

  /** No spend forgotten, nothing drawn again, no cap raised, no account replaced by another. @param {string} text */
  async moveIn(text) {
    const { lines, outbox: entries = [], me: other } = importLedger(text);
    refuseUnless(Array.isArray(entries) && (!other || Number.isSafeInteger(other.cap)), "ledger.format");
    const isGone = await this.ask(known(api.me), isOfBroker).then(() => false, () => true);
    const result = await this.store.update(({ ledger, outbox, settings }) => {
      const more = merge(ledger, lines, drawsOf(outbox.values()), drawsOf(entries)), mine = settings.get("me") ?? other;
      const { token, renewAfter } = mine?.token && !(isGone && other?.token) ? mine : other ?? {};
      const me = { ...other, ...mine, token, renewAfter, level: other?.level, cap: Math.min(mine?.cap, other?.cap) };
      /** @type {Write[]} */
      const writes = more.map((value) => ({ table: "ledger", key: value.key, value }));
      for (const value of entries) if (!outbox.has(value.study)) writes.push({ table: "outbox", key: value.study, value });
      if (other) writes.push(...setMe(me));
      return { result: { n: more.length, left: other?.token && other.token !== token }, writes };
    });
    await this.meetMirror();
    return result;
  }

  /** Start no lower than what the broker's copy says was spent, and tell it the cap, where it can be asked. */
  async meetMirror() {
    const told = await this.ask(api.me, isAway);
    const { epsilon_spent_nano: epsilon, rho_spent_nano: rho, epsilon_cap_nano: cap } = told?.budget ?? {};
    if (![epsilon, rho].every(Number.isSafeInteger)) return;
    const { me, earlier } = await this.store.update(({ ledger, settings }) => {
      const me = settings.get("me"), all = spent(ledger.values());
      // ε is exact on both sides; ρ is searched, and a hair more of it alone is nothing forgotten.
      const line = epsilon > all.epsilon ? carryOver(ledger, { epsilon, rho }, today()) : null;
      const result = { me, earlier: beyond(all, spent(ledger.values(), since(me))).epsilon };
      return { result, writes: line ? [{ table: "ledger", key: line.key, value: line }] : [] };
    });
    // The broker's guard never forgets, so it is told the cap on top of what earlier periods spent.
    const wanted = { default_level: me?.level, epsilon_cap_nano: Math.min((me?.cap ?? 0) + earlier, MOST_CAP) };
    if (cap === wanted.epsilon_cap_nano && told.default_level === me?.level) return;
    await this.ask((token) => api.change(token, wanted), isAway);
  }

  async exportData() {
    const { me, lines, outbox, drafts } = await this.load(), broker = await this.ask(api.exportMine, isAway);
    const device = { me: { ...me, token: undefined }, ledger: [...lines.values()], sent: [...outbox.values()], drafts: Object.fromEntries(drafts) };
    return JSON.stringify({ device, broker }, null, 2);
  }

  async leave() {
    await this.ask(api.leave, isUnknown);
    await this.store.clear();
  }
}

/** @param {any} answer @param {string} id */
async function checkedStudy(answer, id) {
  const study = readStudy(answer, answer.log, id), isSigned = await signed(answer.definition, answer.signature, answer.brokerKey);
  refuseUnless(isSigned !== false, "study.signature");
  const problem = !["pilot", "open"].includes(answer.state) ? "not-open" : answer.places === false ? "no-money" : "";
  return { study, isSigned, problem, warnings: answer.warnings ?? [] };
}

/** @type {DrawsOf} */
const drawsOf = (entries) => new Map([...entries].map((entry) => [entry.study, entry.idempotencyKey]));

/** What is not there has no name: canonical text knows no "undefined". @type {SetMe} */
const setMe = (me) => [{ table: "settings", key: "me", value: JSON.parse(JSON.stringify(me)) }];

/** A key to the account lasts a year; halfway a fresh one is fetched. @type {KeyOf} */
function keyOf({ token, expires }) {
  const now = Date.now();
  return { token, renewAfter: new Date((now + (Date.parse(expires) || now)) / 2).toISOString() };
}

/** @type {Expected} */
const isOffline = (error) => error instanceof Offline;

/** The account is gone. @type {Expected} */
const isUnknown = (error) => error instanceof Problem && error.status === 401;

/** @type {Expected} */
const isAway = (error) => isOffline(error) || isUnknown(error);

/** No answer, or no good one. @type {Expected} */
const isOfBroker = (error) => isOffline(error) || error instanceof Problem;

/** @type {Expected} */
const isAbsent = (error) => error instanceof Problem && error.code === "not-found";

const nothing = () => null;

/** @type {OrElse} */
function orElse(expected, instead) {
  return (error) => {
    if (expected(error)) return instead();
    throw error;
  };
}

/** @type {Known} */
const known = (call) => (token) => call(token).catch(orElse(isUnknown, () => { throw new Refusal("account.unknown"); }));
