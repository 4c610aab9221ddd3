/**
 * The pages of the worker's app: welcome, studies, one study from offer to receipt, my privacy, me.
 */
import { Problem } from "./api.js";
import { download, h, icon, withValue } from "./dom.js";
import { date, errorText, language, money, problemText, shownDown, shownUp, t } from "./i18n.js";
import { refusal, sum, within } from "./ledger.js";
import { Refusal } from "./refusal.js";
import { budgetBar, button, choice, help, levelLine, notice, panel, panels, questionField, radio, text } from "./render.js";
import { visible } from "./study.js";
import { budget } from "./worker.js";
/** @import { Charge, Context, Draft, Entry, Keep, Line, Offer, State, Study } from "./types.js" */

const LEVELS = ["high", "medium", "low", "none"];

/** @param {Context} context */
export function welcome({ device, go }) {
  const chosen = { level: "medium", cap: 4 };
  const start = () => go(() => device.saveMe({ level: chosen.level, cap: chosen.cap * 1e9, period: "life" }));
  return [
    text("h1", "welcome.title"), h("p.lead", t("welcome.lead")),
    text("h2", "welcome.how"), h("div.steps",
      panel("stays", "lock", "review.answer", t("welcome.stays")),
      panel("leaves", "send", "review.report", t("welcome.leaves")),
      panel("tells", "eye", "review.conclude", t("welcome.tells"))),
    levelChoice("welcome.level", chosen), capField("welcome.cap", chosen),
    button("welcome.start", start, "main"), howLink(),
  ];
}

/** @param {string} legend @param {{level: string}} chosen */
function levelChoice(legend, chosen) {
  return h("fieldset", text("legend", legend), LEVELS.map((name) =>
    radio("level", name, levelLabel(t(`level.${name}`), t(`level.${name}.help`)), name === chosen.level, () => { chosen.level = name; })));
}

/** @param {string} name @param {string} help */
const levelLabel = (name, help) => [h("strong", name), h("small", help)];

/** @param {string} label @param {{cap: number}} chosen */
function capField(label, chosen) {
  const shown = h("span.value", { "aria-hidden": "true" }, `ε ${chosen.cap}`);
  const oninput = withValue((value) => { chosen.cap = Number(value); shown.replaceChildren(`ε ${value}`); });
  return h("div.group",
    h("label.field", shown, text("span", label),
      h("input", { type: "range", min: 1, max: 20, step: 0.5, value: chosen.cap, "aria-describedby": "cap-help", oninput })),
    h("p", { id: "cap-help", class: "help" }, t("welcome.capHelp")));
}

const howLink = () => h("p", h("a", { href: t("nav.howPage") }, t("nav.how")));
export const backLink = () => h("p", h("a", { href: "#/" }, t("nav.back")));

/** @param {Context} context */
export async function studies({ device, state }) {
  const items = await device.listStudies(), now = budget(state);
  return [
    text("h1", "studies.title"), budgetBar(now), help(t("studies.left", { left: shownDown(now.left.epsilon), cap: shownDown(now.cap.epsilon) })),
    items.length ? h("ul.cards", items.map((/** @type {any} */ item) => h("li", card(item, state, now.left)))) : h("p.card", t("studies.none")),
  ];
}

/** @param {any} item @param {State} state @param {Charge} left */
function card(item, state, left) {
  const offered = item.levels.find((/** @type {any} */ each) => each.name === state.me?.level) ?? item.levels.at(-1);
  const cost = offered.charge, fits = !cost || cost.epsilon_nano <= left.epsilon || cost.rho_nano <= left.rho;
  const done = state.outbox.get(item.id), label = done ? "studies.see" : state.drafts.has(item.id) ? "studies.continue" : "studies.open";
  return h("article", { class: done ? "card done" : "card" },
    h("h2", item.title), h("p.by", t("study.by", { requester: item.requester })), h("p", item.purpose),
    h("dl",
      fact("studies.pay", money(offered.pay_cents)), fact("studies.level", t(`level.${offered.name}`)),
      fact("studies.questions", item.n_questions),
      fact("studies.cost", cost ? `ε ${shownUp(cost.epsilon_nano)}` : t("studies.unprotected"),
        done ? stateOf(done) : cost && t(fits ? "studies.fits" : "studies.tooMuch"))),
    item.places === false && !done && help(t("problem.no-money")),
    tags(item), h("a.button", { href: `#/studies/${item.id}` }, t(label), h("span.hidden", `: ${item.title}`)));
}

/** @param {string} name @param {string | number} value @param {string | null} [note] */
const fact = (name, value, note) => h("div", text("dt", name), h("dd", value, note && h("small", note)));

/** Only what is surely protected is called so: a card was not checked. @param {any} item */
function tags({ levels, protects_participation: participation, linkable }) {
  const bare = levels.filter((/** @type {any} */ level) => level.protected !== true).length;
  const answers = bare === 0 ? "answers" : bare < levels.length ? "someAnswers" : "notAnswers";
  const names = [answers, participation === true ? "participation" : "notParticipation", linkable === false ? "unlinkable" : "linkable"];
  const open = ["someAnswers", "notAnswers", "notParticipation", "linkable"];
  return h("ul.tags", names.map((name) => h("li", { class: open.includes(name) ? "open" : undefined }, t(`tag.${name}`))));
}

/** One study: what was drawn, else the draft, else the offer. @param {Context} context @param {string} id */
export async function study(context, id) {
  const { state, device } = context;
  try {
    const { study: read, ...around } = await device.openStudy(id);
    const entry = state.outbox.get(id), draft = state.drafts.get(id);
    const content = entry ? review(context, read, entry) : draft ? answering(context, read, draft) : offer(context, read, around);
    return [h("h1", read.definition.title), ...content];
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const entry = state.outbox.get(id), undo = entry ? [help(stateOf(entry)), takeBack(context, entry)] : [state.drafts.has(id) && giveBack(context, id)];
    return [text("h1", "study.refused"), notice("bad", errorText(error)), ...undo, backLink()];
  }
}

/** The broker's warning about what is asked for together, in the worker's language. @param {string} said */
function warning(said) {
  const [, tags] = said.match(/ask for (.*): joined/) ?? [];
  return tags ? t("study.warning", { what: tags.split(", ").map((tag) => t(`asks.${tag}`).replace("asks.", "")).join(", ") }) : said;
}

/** @type {Offer} */
function offer({ state, device, go }, study, { isSigned, problem, warnings }) {
  const { definition } = study, usual = state.me?.level;
  // Whoever wants protection must choose to do without.
  let level = study.levels.find((each) => each.name === usual) ?? study.levels.filter((each) => each.protected).at(-1);
  const now = budget(state), after = h("div"), accept = h("button.main", t("study.accept"));
  const showAfter = () => {
    const cost = level?.charge ?? { epsilon: 0, rho: 0 }, total = sum(now.used, cost);
    const over = level?.protected && !within(total, now.cap);
    after.replaceChildren(budgetBar(now, Math.min(total.epsilon / now.cap.epsilon, total.rho / now.cap.rho)));
    if (over) after.append(notice("bad", errorText(refusal(cost, now.left))));
    accept.toggleAttribute("disabled", !level || over || problem !== "");
  };
  showAfter();
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void go(() => device.accept(study, level?.name ?? ""));
  };
  const checks = [
    t("study.check.hash"), isSigned && t("study.check.signature"),
    t("study.check.channels", { n: Object.keys(definition.channels).length }), t("study.check.charge"),
  ];
  return [
    h("p.by", t("study.by", { requester: definition.requester })),
    problem && notice("warn", t(`problem.${problem}`)),
    warnings.length > 0 && notice("warn", text("h2", "study.warnings"), h("ul", warnings.map((said) => h("li", warning(said))))),
    h("p", definition.purpose), tags({ ...definition, levels: study.levels }), help(t("study.joining")),
    h("details", text("summary", "study.asked", { n: study.questions.length }), h("ol", study.questions.map((question) => h("li", question.text)))),
    notice("good", text("h2", "study.checks"), h("ul", checks.map((said) => said && h("li", said)))),
    isSigned === null && notice("warn", t("study.unsigned")),
    h("form", { onsubmit },
      h("fieldset", text("legend", "study.choose"), study.levels.map((each) => {
        const name = `${t(`level.${each.name}`)}${each.name === usual ? ` (${t("study.default")})` : ""}`;
        return radio("level", each.name, levelLabel(name, levelLine(each)), each === level, () => { level = each; showAfter(); });
      }), help(t("study.levelReveals"))),
      text("h2", "study.budget"), after,
      text("h2", "study.consent"), h("p", definition.consent.text),
      h("label.option", h("input", { type: "checkbox", required: true, name: "agree" }), text("span", "study.agree")),
      accept),
  ];
}

/** @param {Context} context @param {Study} study @param {Draft} draft */
function answering(context, study, draft) {
  const { device, act, go, show } = context;
  const answers = new Map(Object.entries(draft.answers)), trouble = h("div", { "aria-live": "assertive" });
  const shown = new Map(study.questions.map((question) => [question.id, questionField(question, answers.get(question.id), (symbol) => {
    if (symbol === undefined) answers.delete(question.id);
    else answers.set(question.id, symbol);
    follow();
    void device.keepAnswers(study.id, answers);
  })]));
  const follow = () => {
    const now = new Set(visible(study, answers).map((question) => question.id));
    shown.forEach((field, id) => { field.hidden = !now.has(id); });
  };
  follow();
  const refused = (/** @type {unknown} */ error) => {
    if (!(error instanceof Refusal || error instanceof Problem)) throw error;
    trouble.replaceChildren(notice("bad", errorText(error), " ", t("answer.refused")));
  };
  const protect = () => act(() => device.protect(study, draft.level, answers).then(show, refused));
  const time = draft.expires && new Date(draft.expires).toLocaleTimeString(language(), { timeStyle: "short" });
  return [
    h("p.lead", icon("lock"), t("answer.stay")),
    text("p", study.protectsParticipation ? "answer.skipReports" : "answer.skipVisible"),
    study.maxAnswers !== null && text("p", "answer.most", { most: study.maxAnswers }),
    time && help(t("study.late", { time })),
    ...shown.values(), notice("warn", t("answer.once")), trouble,
    button("answer.protect", protect, "main"),
    button("answer.back", () => go(() => device.chooseAgain(study))),
    giveBack(context, study.id),
  ];
}

/** @param {Context} context @param {string} id */
function giveBack({ device, go }, id) {
  return button("answer.giveBack", () => go(() => device.giveBack(id), () => t("answer.givenBack")));
}

/** @param {Context} context @param {Study} study @param {Entry} entry */
function review(context, study, entry) {
  const { device, act, go, show } = context;
  const { state, receipt } = entry, isHere = state === "drawn" || state === "waiting";
  return [
    state === "sent" && notice("good", text("p", "review.thanks"), help(receiptLine(receipt), entry.genuine && ` · ${t("review.signed")}`)),
    state === "sent" && entry.genuine === false && notice("bad", t("review.forged")),
    (state === "waiting" || state === "unknown") && notice("warn", stateOf(entry)),
    state === "refused" && notice("bad", stateOf(entry), " ", t("review.spent")),
    (state === "withdrawn" || state === "absent") && notice("good", stateOf(entry)),
    h("p.lead", t("review.title")), text("p", "review.lead"),
    ...panels(study, entry),
    h("details", text("summary", "review.raw"), h("pre", { tabindex: 0 }, JSON.stringify(entry.body, null, 1))),
    (isHere || state === "unknown") && button("review.send", () => act(() => device.release(entry.study).finally(show)), "main"),
    takeBack(context, entry),
    !isHere && Object.keys(entry.answers).length > 0 && button("review.forget", () => go(() => device.forget(entry.study))),
    !isHere && backLink(),
  ];
}

/** Whatever may have reached the broker can be taken back. @param {Context} context @param {Entry} entry */
function takeBack({ device, go }, entry) {
  const open = entry.tried && !["drawn", "withdrawn", "absent"].includes(entry.state);
  return (open || entry.state === "sent") && afterAsking("review.withdraw", () => go(() => device.withdraw(entry)));
}

/** What cannot be undone takes a second button. @param {string} key @param {() => unknown} work */
function afterAsking(key, work) {
  const sure = button(`${key}Sure`, work, "danger");
  sure.hidden = true;
  return h("div", button(key, () => { sure.hidden = false; sure.focus(); }, "danger"), help(t(`${key}Help`)), sure);
}

/** @param {any} receipt */
function receiptLine(receipt) {
  return t("review.receipt", { receipt: String(receipt.receipt).slice(0, 8), n: receipt.n_reports, pay: money(receipt.pay_cents), day: date(receipt.day) });
}

/** @param {Context} context */
export function privacy({ state }) {
  const now = budget(state), { used, cap } = now, lines = [...state.lines.values()].reverse();
  const counted = lines.filter((line) => line.kind !== "unprotected"), bare = lines.filter((line) => line.kind === "unprotected");
  const row = (/** @type {Line} */ line) => h("tr",
    h("th", { scope: "row" }, line.kind === "carried-over" ? t("privacy.carried") : h("a", { href: `#/studies/${line.key.split(" ")[0]}` }, line.name),
      line.level && h("small", t(`level.${line.level}`))),
    h("td", line.kind === "unprotected" ? "∞" : shownUp(line.epsilon)),
    h("td", date(line.day)), h("td", stateOf(state.outbox.get(line.key))));
  const table = (/** @type {Line[]} */ rows) => h("div.scroll", { tabindex: 0, role: "region", "aria-label": t("privacy.spends") },
    h("table", h("thead", h("tr", ["study", "cost", "day", "state"].map((head) => h("th", { scope: "col" }, t(`privacy.${head}`))))), h("tbody", rows.map(row))));
  const numbers = { spent: shownUp(used.epsilon), cap: shownDown(cap.epsilon), rho: shownUp(used.rho), rhoCap: shownDown(cap.rho) };
  return [
    text("h1", "privacy.title"), budgetBar(now), text("p", "privacy.numbers", numbers), help(t("privacy.promise", numbers)),
    h("details", text("summary", "privacy.exact"), text("p", "privacy.rho", numbers)),
    text("h2", "privacy.spends"), counted.length ? table(counted) : text("p", "privacy.nothing"),
    counted.some((line) => line.kind === "carried-over") && notice("warn", t("privacy.carriedHelp")),
    ...(bare.length ? [text("h2", "privacy.bare"), table(bare)] : []),
  ];
}

/** @param {Entry | undefined} entry */
function stateOf(entry) {
  const key = entry?.state === "waiting" && entry.tried ? "tried" : entry?.state;
  return entry ? t(`review.${key}`, { detail: problemText(entry.receipt?.code, entry.receipt?.refused ?? "") }) : "";
}

/** Which of two accounts this device keeps. @param {any} earned @param {(keep: Keep) => unknown} take */
function accounts({ own, theirs }, take) {
  const one = (/** @type {string} */ key, /** @type {any} */ { balance_cents: cents, payee }, /** @type {Keep} */ keep) =>
    h("div", text("p", `${key}Has`, { balance: money(cents), payee }), button(key, () => take(keep)));
  return notice("warn", text("p", "me.twoHelp"), one("me.keepMine", own, "mine"), one("me.keepOther", theirs, "other"));
}

/** @param {Context} context */
export async function me({ device, state, act, go, release }) {
  const chosen = { level: state.me?.level ?? "medium", cap: (state.me?.cap ?? 0) / 1e9, period: state.me?.period ?? "life" };
  const moved = h("textarea", { readonly: true, rows: 4, "aria-label": t("me.moveText"), hidden: true });
  const brought = /** @type {HTMLTextAreaElement} */ (h("textarea", { rows: 4, name: "import", autocomplete: "off" }));
  const lost = (/** @type {unknown} */ error) => notice("warn", errorText(error), afterAsking("me.anew", () => go(() => device.startAnew())));
  const earned = await device.earned(state.me).catch(lost);
  const save = () => go(() => device.saveMe({ ...chosen, cap: chosen.cap * 1e9 }), () => t("me.saved"));
  const reveal = () => act(async () => { moved.textContent = await device.moveOut(); moved.hidden = false; });
  const two = h("div");
  const ask = (/** @type {any} */ error) => {
    if (error.key === "account.two") two.replaceChildren(accounts(error.values, take));
    throw error;
  };
  const take = (/** @type {Keep | undefined} */ keep) => go(() => device.moveIn(brought.value, keep).catch(ask), (n) => t("me.imported", { n }));
  return [
    text("h1", "me.title"),
    earned instanceof Node ? earned : earned && h("dl.card", fact("me.balance", money(earned.balance_cents)), fact("me.payee", earned.payee)),
    levelChoice("me.level", chosen), capField("me.cap", chosen), help(t("me.capHelp")),
    choice(t("me.period"), ["life", "year"], chosen.period, (value) => { chosen.period = value === "year" ? "year" : "life"; }, (value) => t(`me.period.${value}`)),
    help(t("me.periodHelp")),
    button("me.save", save, "main"),
    text("h2", "me.move"), help(t("me.moveHelp")), button("me.moveShow", reveal), moved,
    h("label.field", h("span", t("me.importText")), brought), button("me.import", () => take(undefined)), two,
    text("h2", "me.data"),
    button("me.export", () => act(async () => download("crowdveil-my-data.json", await device.exportData()))), help(t("me.exportHelp")),
    afterAsking("me.delete", () => go(() => device.leave())),
    help(t("me.code", { release: release.name, origin: location.origin }), " ", !release.signed && t("me.codeDevelopment")), howLink(),
  ];
}
