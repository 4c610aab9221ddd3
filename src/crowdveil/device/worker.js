/**
 * What a worker does, step by step, without any page: join, open a study, accept, protect, send, move, leave.
 */
import { Offline, Problem, api } from "./api.js";
import { beyond, capOf, carryOver, exportLedger, importLedger, merge, spent } from "./ledger.js";
import { commit, flush, setEntry } from "./outbox.js";
import { Refusal, refuseUnless } from "./refusal.js";
import { signed } from "./signature.js";
import { checkEntry, readStudy } from "./study.js";
/** @import { AccountAfter, DrawsOf, Entry, LogEntry, Me, MoveIn, State, Store, Study, Table, WithToken, Write } from "./types.js" */

/** Refusals for which the broker looked whether it has this very submission, and has not. */
const LOOKED = ["over-budget", "no-money", "already-submitted", "idempotency-conflict", "withdrawn"];

/** The broker's copy takes no higher cap. */
const MOST_CAP = 100e9;

export const today = () => new Date().toISOString().slice(0, 10);

/** Where the worker stands; `share` is of the ceiling that has more room. @param {State} state */
export function budget({ me, lines }) {
  const cap = capOf(me?.cap ?? 0), used = spent(lines.values(), since(me));
  const share = Math.min(used.epsilon / cap.epsilon, cap.rho ? used.rho / cap.rho : Infinity);
  return { cap, used, left: beyond(cap, used), share: Math.min(share, 1) };
}

/** A cap for each year forgets what earlier years spent; the page says what that means. @param {Me | undefined} me */
function since(me) {
  return me?.period === "year" ? `${today().slice(0, 4)}-01-01` : "";
}

/** One device of one worker; everything it must remember is in its store. */
export class Device {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.sending = Promise.resolve(/** @type {Entry[]} */ ([]));
  }

  /** Everything the device knows. @returns {Promise<State>} */
  load() {
    return this.store.update(({ settings, ledger, outbox, drafts }) => ({
      result: { me: settings.get("me"), lines: ledger, outbox, drafts },
    }));
  }

  /** @param {Table} table @param {string} key @param {unknown} value  undefined removes it */
  put(table, key, value) {
    return this.store.update(() => ({ writes: [{ table, key, value }] }));
  }

  /** @param {string} key @returns {Promise<any>} */
  setting(key) {
    return this.store.update(({ settings }) => ({ result: settings.get(key) }));
  }

  /** @param {Partial<Me>} changed */
  async saveMe(changed) {
    await this.store.update(({ settings }) => {
      const value = defined({ ...settings.get("me"), ...changed });
      return { writes: [{ table: "settings", key: "me", value }] };
    });
    if (changed.cap || changed.level || changed.period) await this.meetMirror();
  }

  /** Joins first where there is no account yet. One that is gone is never replaced unasked: its pay would be gone, too. @type {WithToken} */
  async withToken(call) {
    const { me } = await this.load();
    if (!me) throw new Error("start first");
    if (me.token) return call(me.token).catch(orElse(isUnknown, accountGone));
    const { token, expires } = await api.join(me.level, me.cap);
    await this.saveMe({ token, renewAfter: halfway(expires) });
    return call(token);
  }

  /** A key to the account lasts a year; halfway a fresh one is fetched. */
  async renew() {
    const { me } = await this.load();
    if (!me?.token || (me.renewAfter ?? "") > new Date().toISOString()) return;
    const fresh = await api.renew(me.token).catch(orElse(isUnknown, accountGone)).catch(orElse(isOfBroker, () => null));
    if (!fresh) return;
    await this.store.update(({ settings }) => {
      const now = settings.get("me"), value = { ...now, token: fresh.token, renewAfter: halfway(fresh.expires) };
      return { writes: now?.token === me.token ? [{ table: "settings", key: "me", value }] : [] };
    });
  }

  /** Begin a new account in place of one that is gone; the ledger stays. */
  startAnew() {
    return this.saveMe({ token: undefined, renewAfter: undefined });
  }

  /** What was earned and by whom; null where nobody can say now. @param {Me | undefined} me */
  async earned(me) {
    return me?.token ? api.payments(me.token).catch(orElse(isUnknown, accountGone)).catch(orElse(isOfBroker, () => null)) : null;
  }

  /** The broker's public key: the one this device saw first. Another one later is not believed. @returns {Promise<string>} */
  async brokerKey() {
    const known = (await this.setting("me"))?.brokerKey;
    if (known) return known;
    const { public_key: brokerKey } = await api.info();
    await this.saveMe({ brokerKey });
    return brokerKey;
  }

  /** The studies on offer; the last list seen where there is no answer. */
  async listStudies() {
    const { me } = await this.load(), kept = await this.setting("studies");
    const asked = me?.token ? api.myStudies(me.token).catch(orElse(isUnknown, api.studies)) : api.studies();
    const items = await asked.then((found) => found.items, orElse(() => kept !== undefined, () => kept));
    await this.put("settings", "studies", items);
    return items;
  }

  /** A checked study, whether its signature could be checked, and what the broker says around it. @param {string} id */
  async openStudy(id) {
    const key = `study ${id}`, kept = await this.setting(key), { outbox } = await this.load();
    const known = kept?.sha256 ?? outbox.get(id)?.body.study_sha256;
    try {
      const fresh = await api.study(id);
      await this.followLog(fresh.log);
      // What was read, agreed to or drawn from stays what it was: an opened study never changes.
      if (known && known !== fresh.sha256) throw new Refusal("study.changed");
      const answer = { ...fresh, brokerKey: await this.brokerKey() }, checked = await this.checkedStudy(answer, id);
      await this.put("settings", key, answer);
      return checked;
    } catch (error) {
      if (error instanceof Refusal || !kept) throw error;
      return this.checkedStudy(kept, id);
    }
  }

  /** @param {any} answer @param {string} id */
  async checkedStudy(answer, id) {
    const study = readStudy(answer, answer.log, id);
    const isSigned = await signed(answer.definition, answer.signature, answer.brokerKey);
    if (isSigned === false) throw new Refusal("study.signature");
    const problem = !["pilot", "open"].includes(answer.state) ? "not-open" : answer.places === false ? "no-money" : "";
    return { study, isSigned, problem, warnings: /** @type {string[]} */ (answer.warnings ?? []) };
  }

  /** The public log only grows: every entry seen once must still be there, and each must name the one before. @param {LogEntry} wanted */
  async followLog(wanted) {
    const seen = /** @type {string[]} */ ((await this.setting("log")) ?? []);
    for (let more = true; more;) {
      const { items, next } = await api.log(seen.length);
      for (const entry of items) {
        checkEntry(entry, seen.at(-1) ?? "0".repeat(64));
        if (entry.index !== seen.length + 1) throw new Refusal("study.log");
        seen.push(entry.entry);
      }
      more = items.length > 0 && next !== null;
    }
    if (seen[wanted?.index - 1] !== wanted?.entry) throw new Refusal(wanted?.index <= seen.length ? "study.rewritten" : "study.log");
    await this.put("settings", "log", seen);
  }

  /** Hold a place at this level and begin a draft. @param {Study} study @param {string} level */
  async accept(study, level) {
    await this.meetMirror();
    const { expires } = await this.reserve(study, level);
    await this.put("drafts", study.id, { level, expires, answers: {} });
  }

  /** A place that is held already stays held. @param {Study} study @param {string} level @returns {Promise<{expires: string}>} */
  reserve({ id, sha256 }, level) {
    return this.withToken((token) => api.reserve(token, id, level, sha256)).catch(orElse(isOffline, () => ({ expires: "" })));
  }

  /** Nothing was drawn: the place, the money and the budget that were held are free again. @param {string} id */
  async giveBack(id) {
    const { me } = await this.load();
    if (me?.token) await api.cancel(me.token, id).catch(orElse((error) => isAbsent(error) || isUnknown(error), () => null));
    await this.put("drafts", id, undefined);
  }

  /** A new choice takes the place of the old one; until then nothing is held, unless that would cost an invitation. @param {Study} study */
  async chooseAgain({ id, definition }) {
    if (definition.selection?.policy === "first-come") await this.giveBack(id).catch(orElse(isOffline, () => null));
    await this.put("drafts", id, undefined);
  }

  /** @param {string} id @param {Map<string, string>} answers */
  keepAnswers(id, answers) {
    return this.store.update(({ drafts }) => {
      const draft = drafts.get(id), value = { ...draft, answers: Object.fromEntries(answers) };
      return { writes: draft ? [{ table: "drafts", key: id, value }] : [] };
    });
  }

  /** Charge, draw, store. A device that was set back learns first what it has forgotten. @param {Study} study @param {string} levelName @param {Map<string, string>} answers */
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

  /** One after the other, so that nothing is sent twice. */
  sendAll() {
    return this.inTurn(() => this.sendWaiting());
  }

  /** @param {() => Promise<Entry[]>} work */
  inTurn(work) {
    return this.sending = this.sending.then(work, work);
  }

  /** The broker's final "no" is kept; no answer is tried again later. */
  sendWaiting() {
    return flush(this.store, async (entry) => {
      try {
        await this.firstToSend(entry);
        const receipt = await this.withToken((token) => api.submit(token, entry)), { signature, ...content } = receipt;
        return { state: "sent", receipt, genuine: await signed(content, signature, await this.brokerKey()) };
      } catch (error) {
        if (!(error instanceof Problem) || error.status >= 500 || error.status === 429) throw error;
        const receipt = { refused: error.message, code: error.code };
        // A study that is closed no longer looks whether it has this submission: the reply to it may have been lost.
        return { state: entry.tried && !LOOKED.includes(error.code ?? "") ? "unknown" : "refused", receipt };
      }
    });
  }

  /** Where another device has answered, a second draw stays here. @param {Entry} entry */
  async firstToSend({ study, tried }) {
    const { items } = tried ? {} : await this.withToken(api.myStudies);
    const there = items?.some((/** @type {any} */ card) => card.id === study && card.status === "submitted");
    if (there) throw new Problem(409, { type: "already-submitted" });
    await setEntry(this.store, study, { tried: true });
  }

  /** Whatever may have left can be taken back, and is not sent meanwhile. @param {Entry} entry */
  withdraw({ study, withdrawalKey }) {
    return this.inTurn(async () => {
      const { outbox } = await this.load();
      if (outbox.get(study)?.state === "waiting") await setEntry(this.store, study, { state: "unknown", receipt: null });
      /** @type {Entry["state"]} */
      const state = await api.withdraw(study, withdrawalKey).then(() => "withdrawn", orElse(isAbsent, () => "absent"));
      return [await setEntry(this.store, study, { state })];
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

  /** No spend forgotten, nothing drawn again, no cap raised, no account lost. @type {MoveIn} */
  async moveIn(text, keep) {
    const { lines, outbox: entries = [], me: other } = importLedger(text);
    refuseUnless(Array.isArray(entries) && (!other || Number.isSafeInteger(other.cap)), "ledger.format");
    const account = await this.accountAfter(other, keep);
    const added = await this.store.update(({ ledger, outbox, settings }) => {
      const more = merge(ledger, lines, drawsOf(outbox.values()), drawsOf(entries)), mine = settings.get("me") ?? other;
      const me = defined({ ...other, ...mine, ...account, level: other?.level, cap: Math.min(mine?.cap, other?.cap) });
      /** @type {Write[]} */
      const writes = more.map((value) => ({ table: "ledger", key: value.key, value }));
      for (const value of entries) if (!outbox.has(value.study)) writes.push({ table: "outbox", key: value.study, value });
      if (other) writes.push({ table: "settings", key: "me", value: me });
      return { result: more.length, writes };
    });
    await this.meetMirror();
    return added;
  }

  /** The only account there is, else the one that the worker chose. Two keys may be of one account. @type {AccountAfter} */
  async accountAfter(other, keep) {
    const { me: mine } = await this.load(), keyOf = (/** @type {Me | undefined} */ me) => ({ token: me?.token, renewAfter: me?.renewAfter });
    if (!mine?.token || !other?.token || mine.token === other.token) return keyOf(mine?.token ? mine : other);
    const [own, theirs] = await Promise.all([mine.token, other.token].map((token) => api.payments(token).catch(orElse(isUnknown, () => null))));
    if (!theirs || own?.payee === theirs.payee) return keyOf(mine);
    if (own && !keep) throw new Refusal("account.two", { own, theirs });
    return keyOf(own && keep === "mine" ? mine : other);
  }

  /** Start no lower than what the broker's copy says was spent, and have that copy know the cap, where it can be asked. */
  async meetMirror() {
    const { me } = await this.load();
    const told = me?.token && await api.me(me.token).catch(orElse(isAway, () => null));
    if (!me?.token || !told) return;
    const { epsilon_spent_nano: epsilon, rho_spent_nano: rho, epsilon_cap_nano: cap } = told.budget;
    if (![epsilon, rho].every(Number.isSafeInteger)) return;
    await this.store.update(({ ledger }) => {
      // ε is exact on both sides; ρ is searched, and a hair more of it alone is nothing forgotten.
      const line = epsilon > spent(ledger.values()).epsilon ? carryOver(ledger, { epsilon, rho }, today()) : null;
      return { writes: line ? [{ table: "ledger", key: line.key, value: line }] : [] };
    });
    const { lines } = await this.load(), earlier = beyond(spent(lines.values()), spent(lines.values(), since(me))).epsilon;
    // The broker's guard never forgets, so it is told the cap on top of what earlier periods spent.
    const wanted = { default_level: me.level, epsilon_cap_nano: Math.min(me.cap + earlier, MOST_CAP) };
    if (cap === wanted.epsilon_cap_nano && told.default_level === me.level) return;
    await api.change(me.token, wanted).catch(orElse(isAway, () => null));
  }

  /** Everything about me: from this device and from the broker. */
  async exportData() {
    const { me, lines, outbox, drafts } = await this.load();
    const broker = me?.token ? await api.exportMine(me.token).catch(orElse(isAway, () => null)) : null;
    const device = { me: { ...me, token: undefined }, ledger: [...lines.values()], sent: [...outbox.values()], drafts: Object.fromEntries(drafts) };
    return JSON.stringify({ device, broker }, null, 2);
  }

  async leave() {
    const { me } = await this.load();
    if (me?.token) await api.leave(me.token).catch(orElse(isUnknown, () => null));
    await this.store.clear();
  }
}

/** @type {DrawsOf} */
const drawsOf = (entries) => new Map([...entries].map((entry) => [entry.study, entry.idempotencyKey]));

/** @param {unknown} error */
const isOffline = (error) => error instanceof Offline;

/** The broker does not know this account any more. @param {unknown} error */
const isUnknown = (error) => error instanceof Problem && error.status === 401;

/** Nobody there who knows this account. @param {unknown} error */
const isAway = (error) => isOffline(error) || isUnknown(error);

/** No answer, or no good one. @param {unknown} error */
const isOfBroker = (error) => error instanceof Offline || error instanceof Problem;

const accountGone = () => { throw new Refusal("account.unknown"); };

/** @param {string} expires */
function halfway(expires) {
  const now = Date.now();
  return new Date(now + ((Date.parse(expires) || now) - now) / 2).toISOString();
}

/** What is not there has no name: canonical text knows no "undefined". @param {Me} me */
const defined = (me) => Object.fromEntries(Object.entries(me).filter(([, value]) => value !== undefined));

/** @param {unknown} error */
const isAbsent = (error) => error instanceof Problem && error.code === "not-found";

/** @param {(error: unknown) => boolean} expected @param {() => any} instead */
function orElse(expected, instead) {
  return (/** @type {unknown} */ error) => {
    if (expected(error)) return instead();
    throw error;
  };
}
