/** What a worker does, step by step, without any page: join, open a study, accept, protect, send, move, leave. */
import { Problem, api, isAbsent, isAway, isOfBroker, isOffline, isUnknown, nothing, orElse } from "./api.js";
import { beyond, capOf, carryOver, exportLedger, share, spent } from "./ledger.js";
import { commit, flush, setEntry } from "./outbox.js";
import { Refusal, refuseUnless } from "./refusal.js";
import { signed } from "./signature.js";
import { chargeOf, checkEntry, readStudy } from "./study.js";
import { planTakeover, readMoved, waitForWorker } from "./takeover.js";

/** Refusals for which the broker looked whether it has this very submission, and has not. */
const LOOKED = ["over-budget", "no-money", "already-submitted", "idempotency-conflict", "withdrawn"];

const RHO_TOLERANCE = 1.001; // it is searched; two browsers may stop a little apart
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
      result: { me: settings.get("me"), lines: ledger, outbox, drafts, claim: settings.get("claim"), left: settings.get("left") },
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

  /** Whoever had left this site comes back to the same account; the broker's key is believed anew. @param {Partial<Me>} changed */
  async saveMe(changed) {
    await this.store.update(({ settings }) => {
      const { brokerKey, ...before } = settings.get("left")?.me ?? {};
      return { writes: [...setMe({ ...before, ...settings.get("me"), ...changed }), { table: "settings", key: "left" }] };
    });
    if (changed.cap || changed.level || changed.period) await this.meetMirror();
  }

  /** Null without an account or for an expected error. @type {Ask} */
  async ask(call, expected) {
    const { me } = await this.load();
    return me?.token ? this.retryRenewed(call, me.token).catch(orElse(expected, nothing)) : null;
  }

  /** Null where nobody can say now; an account that is gone is said. @type {AskKnown} */
  askKnown(call) {
    return known(() => this.ask(call, (error) => isOfBroker(error) && !isUnknown(error)))("");
  }

  /** Joins first without an account. One that is gone is never replaced unasked: its pay would be gone, too. @type {WithToken} */
  async withToken(call) {
    const { me } = await this.load();
    if (!me) throw new Error("start first");
    if (me.token) return known((token) => this.retryRenewed(call, token))(me.token);
    const key = keyOf(await api.join(me.level, me.cap));
    await this.saveMe(key);
    return call(key.token);
  }

  /** A key that the broker takes for expired is good for fetching a fresh one: tried once, then the call again. @type {RetryRenewed} */
  async retryRenewed(call, token) {
    try {
      return await call(token);
    } catch (error) {
      if (!isUnknown(error)) throw error;
      const fresh = await this.renewKey(token).catch(orElse(isUnknown, nothing));
      if (!fresh) throw error;
      return call(fresh);
    }
  }

  /** The key in place of this one; another call or tab may have fetched it already. @param {string} token */
  async renewKey(token) {
    const { me } = await this.load();
    if (me?.token && me.token !== token) return me.token;
    const fresh = keyOf(await api.renew(token));
    await this.store.update(({ settings }) => {
      const now = settings.get("me");
      return { writes: now?.token === token ? setMe({ ...now, ...fresh }) : [] };
    });
    return fresh.token;
  }

  async renew() {
    const { me } = await this.load();
    if (!me?.token || (me.renewAfter ?? "") > new Date().toISOString()) return;
    await known((token) => this.renewKey(token))(me.token).catch(orElse(isOfBroker, nothing));
  }

  /** A new account in place of one that is gone; the ledger stays. */
  startAnew() {
    return this.saveMe({ token: undefined, renewAfter: undefined });
  }

  /** Null where nobody can say now. */
  earned() {
    return this.askKnown(api.payments);
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
    await this.checkMirror();
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
    await this.checkMirror();
    const { me, outbox, drafts } = await this.load(), level = study.levels.find((each) => each.name === levelName);
    if (!me || !level) throw new Refusal("study.level", { got: levelName });
    // Reports that would not be taken must not cost anything.
    if (!outbox.has(study.id)) await this.reserve(study, levelName);
    const isHeld = (drafts.get(study.id)?.expires ?? "") > new Date().toISOString();
    return commit(this.store, study, level, answers, { cap: capOf(me.cap), day: today(), since: since(me), isHeld });
  }

  /** Send this draw, now or as soon as there is a network. @param {string} id */
  async release(id) {
    const { outbox } = await this.load(), entry = outbox.get(id);
    if (entry?.imported) await this.checkCharged(entry);
    // Another tab may have sent it or taken it back.
    if (["drawn", "unknown"].includes(entry?.state ?? "")) await setEntry(this.store, id, { state: "waiting" });
    return this.sendAll();
  }

  /** A draw that came in a text leaves only if the ledger here has a charge for all of it. @param {Entry} entry */
  async checkCharged({ study: id, body }) {
    const { study } = await this.openStudy(id), { lines } = await this.load();
    const level = study.levels.find((each) => each.name === body.level), channels = body.reports.map(({ question }) => level?.channels.get(question));
    const used = channels.flatMap((channel, i) => (channel && channel.sha256 === body.reports[i]?.channel ? [channel] : []));
    const cost = chargeOf(level?.protected ? used : [], study);
    const charged = spent([...lines.values()].filter(({ key }) => key.split(" ")[0] === id));
    const isKnown = level !== undefined && used.length === channels.length && body.study_sha256 === study.sha256 && lines.has(id);
    refuseUnless(isKnown && cost.epsilon <= charged.epsilon && cost.rho <= charged.rho * RHO_TOLERANCE, "ledger.uncharged");
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

  /** What taking over a text would change here. @param {string} text */
  async planMoveIn(text) {
    const moved = readMoved(text), isGone = await this.isAccountGone();
    return this.store.update((rows) => ({ result: planTakeover(rows, moved, isGone) }));
  }

  /** No spend forgotten, nothing drawn again, no cap raised, no level lowered, no account replaced by another. @param {string} text */
  async moveIn(text) {
    const moved = readMoved(text), isGone = await this.isAccountGone();
    const result = await this.store.update((rows) => {
      const plan = planTakeover(rows, moved, isGone);
      return { result: plan, writes: [...plan.writes, ...(plan.me ? setMe(plan.me) : [])] };
    });
    await this.meetMirror();
    return result;
  }

  isAccountGone() {
    return this.askKnown(api.me).then(() => false, () => true);
  }

  /** Ask what the broker's copy says was spent, and tell it the cap, where it can be asked. */
  async meetMirror() {
    const told = await this.ask(api.me, isAway);
    const { epsilon_spent_nano: epsilon, rho_spent_nano: rho, epsilon_cap_nano: cap } = told?.budget ?? {};
    if (![epsilon, rho].every(Number.isSafeInteger)) return;
    const { me, earlier } = await this.store.update(({ ledger, settings }) => {
      const me = settings.get("me"), all = spent(ledger.values());
      // ε is exact on both sides; ρ is searched, and a hair more of it alone is nothing forgotten.
      const isAhead = epsilon - all.epsilon > (settings.get("dismissed") ?? 0);
      const result = { me, earlier: beyond(all, spent(ledger.values(), since(me))).epsilon };
      return { result, writes: [{ table: "settings", key: "claim", value: isAhead ? { epsilon, rho } : undefined }] };
    });
    // The broker's guard never forgets, so it is told the cap on top of what earlier periods spent.
    const wanted = { default_level: me?.level, epsilon_cap_nano: Math.min((me?.cap ?? 0) + earlier, MOST_CAP) };
    if (cap === wanted.epsilon_cap_nano && told.default_level === me?.level) return;
    await this.ask((token) => api.change(token, wanted), isAway);
  }

  /** One reply could use up the budget for good: before a larger sum is counted, the worker is asked. */
  async checkMirror() {
    await this.meetMirror();
    const { claim } = await this.load();
    refuseUnless(!claim, "mirror.ahead");
  }

  /** Start no lower than what the broker's copy says was spent. */
  countClaim() {
    return this.store.update(({ ledger, settings }) => {
      const claim = settings.get("claim"), line = claim ? carryOver(ledger, claim, today()) : null;
      /** @type {Write[]} */
      const writes = line ? [{ table: "ledger", key: line.key, value: line }] : [];
      return { writes: [...writes, { table: "settings", key: "claim" }] };
    });
  }

  /** Not asked again until the broker's copy is ahead by still more. */
  dismissClaim() {
    return this.store.update(({ ledger, settings }) => {
      const ahead = (settings.get("claim")?.epsilon ?? 0) - spent(ledger.values()).epsilon;
      return { writes: [{ table: "settings", key: "dismissed", value: ahead }, { table: "settings", key: "claim" }] };
    });
  }

  async exportData() {
    const { me, lines, outbox, drafts } = await this.load(), broker = await this.ask(api.exportMine, isAway);
    const device = { me: { ...me, token: undefined }, ledger: [...lines.values()], sent: [...outbox.values()], drafts: Object.fromEntries(drafts) };
    return JSON.stringify({ device, broker }, null, 2);
  }

  /** Stop here and keep what was spent and drawn: a later return counts on from it. Nothing is sent meanwhile. */
  async leaveSite() {
    const { drafts } = await this.load();
    for (const id of drafts.keys()) await this.giveBack(id).catch(orElse(isOfBroker, nothing));
    await this.store.update((rows) => {
      const forgotten = [...rows.settings.keys()].filter((key) => key !== "language" && key !== "left");
      return { writes: [
        ...forgotten.map((key) => ({ table: /** @type {const} */ ("settings"), key })),
        ...[...rows.drafts.keys()].map((key) => ({ table: /** @type {const} */ ("drafts"), key })),
        ...[...rows.outbox].map(([key, entry]) => ({ table: /** @type {const} */ ("outbox"), key, value: waitForWorker(entry) })),
        { table: "settings", key: "left", value: { day: today(), me: rows.settings.get("me") } },
      ] };
    });
  }

  async deleteEverything() {
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

/** What is not there has no name: canonical text knows no "undefined". @type {SetMe} */
const setMe = (me) => [{ table: "settings", key: "me", value: JSON.parse(JSON.stringify(me)) }];

/** A key to the account lasts a year; halfway a fresh one is fetched. @type {KeyOf} */
function keyOf({ token, expires }) {
  const now = Date.now();
  return { token, renewAfter: new Date((now + (Date.parse(expires) || now)) / 2).toISOString() };
}

/** @type {Known} */
const known = (call) => (token) => call(token).catch(orElse(isUnknown, () => { throw new Refusal("account.unknown"); }));
