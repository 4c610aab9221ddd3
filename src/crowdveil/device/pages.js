/**
 * The pages of the worker's app: welcome, studies, one study from offer to receipt, my privacy, me.
 */
import { api } from "./api.js";
import { download, h, icon, withValue } from "./dom.js";
import { languages, money, percent, refusalText, setLanguage, t } from "./i18n.js";
import { refusal, sum, within } from "./ledger.js";
import { shownDown, shownUp } from "./nano.js";
import { Refusal } from "./refusal.js";
import { budgetBar, budgetNumbers, levelLine, notice, panels, questionField, radio } from "./render.js";
import { visible } from "./study.js";
import * as worker from "./worker.js";
/** @import { Child, Charge, Context, Draft, Entry, Line, State, Study } from "./types.js" */

const LEVELS = ["high", "medium", "low", "none"];

/** @param {Context} context */
export function welcome({ store, act, again }) {
  const chosen = { level: "medium", cap: 4 };
  const note = h("p", { id: "cap-help", class: "help" });
  const start = () => act(async () => {
    await worker.saveMe(store, { level: chosen.level, cap: chosen.cap * 1e9, period: "life" });
    await again();
  });
  return [
    h("h1", {}, t("welcome.title")), h("p", { class: "lead" }, t("welcome.lead")),
    levelChoice(t("welcome.level"), chosen),
    capField(t("welcome.cap"), chosen, note), note,
    button("welcome.start", start, "main"), howLink(),
  ];
}

/** @param {string} key @param {() => unknown} onclick @param {string} [kind] */
const button = (key, onclick, kind) => h("button", { type: "button", class: kind, onclick }, t(key));

/** @param {...Child} content */
const help = (...content) => h("p", { class: "help" }, ...content);

/** @param {string} legend @param {{level: string}} chosen */
function levelChoice(legend, chosen) {
  return h("fieldset", {}, h("legend", {}, legend), h("div", { class: "options" }, LEVELS.map((name) =>
    radio("level", name, levelLabel(t(`level.${name}`), t(`level.${name}.help`)), name === chosen.level, () => { chosen.level = name; }))));
}

/** @param {string} name @param {string} help */
const levelLabel = (name, help) => [h("strong", {}, name), h("small", {}, help)];

/** @param {string} label @param {{cap: number}} chosen @param {HTMLElement} note */
function capField(label, chosen, note) {
  const tell = () => note.replaceChildren(t("welcome.capHelp", { epsilon: chosen.cap }));
  const oninput = withValue((value) => { chosen.cap = Number(value); tell(); });
  tell();
  return h("label", { class: "field" }, label,
    h("input", { type: "range", min: 1, max: 20, step: 0.5, value: chosen.cap, "aria-describedby": "cap-help", oninput }));
}

const howLink = () => h("p", {}, h("a", { href: document.documentElement.lang === "de" ? "how-it-protects.de.html" : "how-it-protects.html" }, t("nav.how")));

/** @param {Context} context */
export async function studies({ store, state }) {
  const items = await worker.listStudies(store);
  const now = worker.budget(state);
  return [
    h("h1", {}, t("studies.title")), budgetBar(now),
    items.length ? h("ul", { class: "cards" }, items.map((/** @type {any} */ item) => h("li", {}, card(item, state, now.left)))) : h("p", {}, t("studies.none")),
  ];
}

/** @param {any} item @param {State} state @param {Charge} left */
function card(item, state, left) {
  const offered = item.levels.find((/** @type {any} */ each) => each.name === state.me?.level) ?? item.levels.at(-1);
  const cost = offered.charge, fits = !cost || cost.epsilon_nano <= left.epsilon || cost.rho_nano <= left.rho;
  const done = state.outbox.has(item.id), begun = state.drafts.has(item.id);
  const label = done ? "studies.see" : begun ? "studies.continue" : "studies.open";
  return h("article", { class: "card" },
    h("h2", {}, item.title), h("p", { class: "by" }, t("study.by", { requester: item.requester })), h("p", {}, item.purpose),
    h("dl", {},
      fact(t("studies.pay"), money(offered.pay_cents)), fact(t("studies.level"), t(`level.${offered.name}`)),
      fact(t("studies.questions"), item.n_questions),
      fact(t("studies.cost"), cost ? `ε ${shownUp(cost.epsilon_nano)}` : t("studies.unprotected"), cost && t(fits ? "studies.fits" : "studies.tooMuch"))),
    tags(item), h("a", { class: "button", href: `#/studies/${item.id}` }, t(label), h("span", { class: "hidden" }, `: ${item.title}`)));
}

/** @param {string} name @param {string | number} value @param {string | null} [note] */
function fact(name, value, note) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value, note && h("small", {}, note)));
}

/** @param {any} item */
function tags(item) {
  const names = ["answers", item.protects_participation ? "participation" : "notParticipation", item.linkable ? "linkable" : "unlinkable"];
  return h("ul", { class: "tags" }, names.map((name) => h("li", {}, t(`tag.${name}`))));
}

/** One study: what was drawn, else the draft, else the offer. @param {Context} context @param {string} id */
export async function study(context, id) {
  const { state, store } = context;
  try {
    const { study: read, warnings } = await worker.openStudy(store, id);
    const entry = state.outbox.get(id), draft = state.drafts.get(id);
    const title = h("h1", {}, read.definition.title);
    if (entry) return [title, ...review(context, read, entry)];
    return [title, ...(draft ? answering(context, read, draft) : offer(context, read, warnings))];
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return [h("h1", {}, t("study.refused")), notice("bad", refusalText(error))];
  }
}

/** @param {Context} context @param {Study} study @param {string[]} warnings */
function offer({ state, store, act, again }, study, warnings) {
  const { definition } = study, usual = state.me?.level;
  let level = study.levels.find((each) => each.name === usual) ?? study.levels.at(-1);
  const now = worker.budget(state), after = h("div", {});
  const showAfter = () => {
    const cost = level?.charge ?? { epsilon: 0, rho: 0 }, total = sum(now.used, cost);
    const over = level?.protected && !within(total, now.cap);
    after.replaceChildren(budgetBar(now, Math.min(total.epsilon / now.cap.epsilon, total.rho / now.cap.rho)));
    if (over) after.append(notice("bad", refusalSentence(refusal(level?.name ?? "", cost, now.left))));
    accept.toggleAttribute("disabled", over);
  };
  const accept = h("button", { class: "main" }, t("study.accept"));
  showAfter();
  const agree = h("input", { type: "checkbox", required: true, name: "agree" });
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void act(async () => { await worker.accept(store, study, level?.name ?? ""); await again(); });
  };
  return [
    h("p", { class: "by" }, t("study.by", { requester: definition.requester })),
    warnings.length > 0 && notice("warn", h("h2", {}, t("study.warnings")), h("ul", {}, warnings.map((text) => h("li", {}, text)))),
    h("h2", {}, t("study.purpose")), h("p", {}, definition.purpose), tags(definition), help(t("study.joining")),
    h("details", {}, h("summary", {}, t("studies.questions")), h("ol", {}, study.questions.map(({ text }) => h("li", {}, text)))),
    notice("good", h("h2", {}, t("study.checks")), h("ul", {},
      h("li", {}, t("study.check.hash")), h("li", {}, t("study.check.channels", { n: Object.keys(definition.channels).length })), h("li", {}, t("study.check.charge")))),
    h("form", { onsubmit },
      h("fieldset", {}, h("legend", {}, t("study.choose")), h("div", { class: "options" }, study.levels.map((each) =>
        radio("level", each.name, levelLabel(`${t(`level.${each.name}`)}${each.name === usual ? ` (${t("study.default")})` : ""}`, levelLine(each)),
          each === level, () => { level = each; showAfter(); }))), help(t("study.levelReveals"))),
      h("h2", {}, t("study.budget")), after,
      h("h2", {}, t("study.consent")), h("p", {}, definition.consent.text), h("label", { class: "option" }, agree, h("span", {}, t("study.agree"))),
      accept),
  ];
}

/** @param {Context} context @param {Study} study @param {Draft} draft */
function answering({ store, act, again }, study, draft) {
  const answers = new Map(Object.entries(draft.answers)), fields = h("div", {}), trouble = h("div", { "aria-live": "assertive" });
  const shown = new Map(study.questions.map((question) => [question.id, questionField(question, answers.get(question.id), (symbol) => {
    if (symbol === undefined) answers.delete(question.id);
    else answers.set(question.id, symbol);
    follow();
    void worker.keepAnswers(store, study.id, answers);
  })]));
  fields.append(...shown.values());
  const follow = () => {
    const now = new Set(visible(study, answers).map((question) => question.id));
    shown.forEach((field, id) => { field.hidden = !now.has(id); });
  };
  follow();
  const protect = () => act(async () => {
    try {
      await worker.protect(store, study, draft.level, answers);
      await again();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      trouble.replaceChildren(notice("bad", refusalSentence(error), " ", t("answer.refused")));
    }
  });
  const time = draft.expires && new Date(draft.expires).toLocaleTimeString(document.documentElement.lang, { timeStyle: "short" });
  return [
    h("p", { class: "lead" }, icon("lock"), t("answer.stay")),
    h("p", {}, t(study.protectsParticipation ? "answer.skipReports" : "answer.skipVisible")),
    study.maxAnswers !== null && h("p", {}, t("answer.most", { most: study.maxAnswers })),
    time && help(t("study.late", { time })),
    fields, notice("warn", t("answer.once")), trouble,
    button("answer.protect", protect, "main"),
    button("answer.back", () => act(() => worker.giveUp(store, study.id).then(again))),
  ];
}

/** A refusal of the ledger counts in nano-units; people read ε. @param {Refusal} refusal */
function refusalSentence(refusal) {
  const { needed, left, neededRho, leftRho } = refusal.values;
  if (refusal.key !== "ledger.refused") return refusalText(refusal);
  return refusalText(new Refusal(refusal.key, {
    needed: shownUp(Number(needed)), left: shownDown(Number(left)), neededRho: shownUp(Number(neededRho)), leftRho: shownDown(Number(leftRho)),
  }));
}

/** @param {Context} context @param {Study} study @param {Entry} entry */
function review({ store, act, again }, study, entry) {
  const { state, receipt } = entry, isHere = state === "drawn" || state === "waiting";
  const step = (/** @type {string} */ key, /** @type {() => Promise<unknown>} */ work, kind = "") =>
    button(key, () => act(() => work().finally(again)), kind);
  return [
    h("p", { class: "lead" }, t("review.title")), h("p", {}, t("review.lead")),
    ...panels(study, entry),
    h("details", {}, h("summary", {}, t("review.raw")), h("pre", { tabindex: 0 }, JSON.stringify(entry.body, null, 1))),
    state === "waiting" && notice("warn", stateOf(entry)),
    isHere && step("review.send", () => worker.release(store, entry.study), "main"),
    state === "sent" && notice("good", h("p", {}, t("review.thanks")), help(receiptLine(receipt))),
    state === "refused" && notice("bad", stateOf(entry)),
    state === "withdrawn" && notice("good", stateOf(entry)),
    state === "sent" && h("div", { class: "row" }, step("review.withdraw", () => worker.withdraw(store, entry)), h("small", {}, t("review.withdrawHelp"))),
    !isHere && Object.keys(entry.answers).length > 0 && step("review.forget", () => worker.forget(store, entry.study)),
  ].flat();
}

/** @param {any} receipt */
function receiptLine(receipt) {
  return t("review.receipt", { receipt: String(receipt.receipt).slice(0, 8), n: receipt.n_reports, pay: money(receipt.pay_cents), day: receipt.day });
}

/** @param {Context} context */
export function privacy({ state }) {
  const now = worker.budget(state), lines = [...state.lines.values()].reverse();
  const counted = lines.filter((line) => line.kind !== "unprotected"), bare = lines.filter((line) => line.kind === "unprotected");
  const heads = ["study", "level", "cost", "day", "state"];
  const row = (/** @type {Line} */ line) => h("tr", {},
    h("th", { scope: "row" }, line.kind === "carried-over" ? t("privacy.carried") : h("a", { href: `#/studies/${line.key}` }, line.name)),
    h("td", {}, line.level && t(`level.${line.level}`)), h("td", {}, line.kind === "unprotected" ? "∞" : shownUp(line.epsilon)),
    h("td", {}, line.day), h("td", {}, stateOf(state.outbox.get(line.key))));
  const table = (/** @type {typeof lines} */ rows) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t("privacy.spends") },
    h("table", {}, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, t(`privacy.${head}`))))), h("tbody", {}, rows.map(row))));
  return [
    h("h1", {}, t("privacy.title")), budgetBar(now), h("p", {}, budgetNumbers(now)),
    help(t("privacy.promise", { cap: shownDown(now.cap.epsilon) })),
    h("h2", {}, t("privacy.spends")), counted.length ? table(counted) : h("p", {}, t("privacy.nothing")),
    counted.some((line) => line.kind === "carried-over") && notice("warn", t("privacy.carriedHelp")),
    bare.length > 0 && [h("h2", {}, t("privacy.bare")), table(bare)],
  ].flat();
}

/** @param {Entry | undefined} entry */
function stateOf(entry) {
  return entry ? t(`review.${entry.state}`, { detail: entry.receipt?.refused ?? "" }) : "";
}

/** @param {Context} context */
export async function me({ store, state, act, again, say, release }) {
  const chosen = { level: state.me?.level ?? "medium", cap: (state.me?.cap ?? 0) / 1e9, period: state.me?.period ?? "life", language: document.documentElement.lang };
  const note = h("p", { id: "cap-help", class: "help" }), moved = h("textarea", { readonly: true, rows: 4, "aria-label": t("me.moveText"), hidden: true });
  const brought = /** @type {HTMLTextAreaElement} */ (h("textarea", { rows: 4, name: "import" }));
  const earned = state.me?.token ? await api.payments(state.me.token).catch(() => null) : null;
  const save = () => act(async () => {
    const { cap, ...rest } = chosen;
    await worker.saveMe(store, { ...rest, cap: cap * 1e9 });
    await setLanguage(chosen.language);
    await again();
    say(t("me.saved"));
  });
  const show = () => act(async () => { moved.textContent = await worker.moveOut(store); moved.hidden = false; });
  const take = () => act(async () => { const n = await worker.moveIn(store, brought.value); await again(); say(t("me.imported", { n })); });
  const leave = () => act(async () => { await worker.leave(store); await again(); });
  const sure = button("me.deleteSure", leave, "danger");
  sure.hidden = true;
  return [
    h("h1", {}, t("me.title")),
    earned && h("p", {}, t("me.balance", { amount: money(earned.balance_cents), payee: earned.payee })),
    levelChoice(t("me.level"), chosen), capField(t("me.cap"), chosen, note), note, help(t("me.capHelp")),
    choice(t("me.period"), ["life", "year"], chosen.period, (value) => { chosen.period = value === "year" ? "year" : "life"; }, (value) => t(`me.period.${value}`)),
    help(t("me.periodHelp")),
    choice(t("me.language"), languages(), chosen.language, (value) => { chosen.language = value; }, languageName),
    button("me.save", save, "main"),
    h("h2", {}, t("me.move")), help(t("me.moveHelp")), button("me.moveShow", show), moved,
    h("label", { class: "field" }, t("me.importText"), brought), button("me.import", take),
    h("h2", {}, t("me.data")),
    button("me.export", () => act(async () => download("crowdveil-my-data.json", await worker.exportData(store)))),
    button("me.delete", () => { sure.hidden = false; sure.focus(); }), help(t("me.deleteHelp")), sure,
    help(t("me.code", { release: release.name, origin: location.origin }), " ", !release.signed && t("me.codeDevelopment")), howLink(),
  ];
}

/** @param {string} name */
const languageName = (name) => new Intl.DisplayNames([name], { type: "language" }).of(name) ?? name;

/** @param {string} label @param {string[]} values @param {string} current @param {(value: string) => void} onchoice @param {(value: string) => string} inWords */
function choice(label, values, current, onchoice, inWords) {
  return h("label", { class: "field" }, label, h("select", { onchange: withValue(onchoice) }, values.map((value) => h("option", { value, selected: value === current }, inWords(value)))));
}
