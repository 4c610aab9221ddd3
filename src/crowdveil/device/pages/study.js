/** One study, from the offer over the answers to what was drawn and its receipt. */
import { Problem } from "../api.js";
import { h, icon } from "../dom.js";
import { date, errorText, language, money, protectionText, shownUp, t } from "../i18n.js";
import { refusal, share, spent, sum, within } from "../ledger.js";
import { remedies } from "../outbox.js";
import { Refusal } from "../refusal.js";
import { afterAsking, backLink, budgetBar, button, claimQuestion, help, leaveButton, levelLabel, levelLine, notice, panels, questionField, radio, stateOf, tags, text } from "../render.js";
import { costOf, visible } from "../study.js";
import { budget } from "../worker.js";

/** The broker is not the one that this device met: no reason to lose the ledger. */
const DISTRUST = ["study.rewritten", "study.signature"];

/** One study: what was drawn, else the draft, else the offer. @type {StudyPage} */
export async function study(context, id) {
  const { state, device } = context, entry = state.outbox.get(id), draft = state.drafts.get(id);
  try {
    const { study: read, ...around } = await device.openStudy(id);
    const content = entry ? review(context, read, entry) : draft ? answering(context, read, draft) : offer(context, read, around);
    return [h("h1", read.definition.title), claimQuestion(context), ...content];
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const undo = entry ? [help(stateOf(entry)), takeBack(context, entry)] : [draft && giveBack(context, id)];
    if (DISTRUST.includes(error.key)) undo.push(leaveButton(context));
    return [text("h1", "study.refused"), notice("bad", errorText(error)), ...undo, backLink()];
  }
}

/** The broker's warning in the worker's language. @param {string} said */
function warning(said) {
  const [, tags] = said.match(/ask for (.*): joined/) ?? [];
  return tags ? t("study.warning", { what: tags.split(", ").map((tag) => t(`asks.${tag}`).replace("asks.", "")).join(", ") }) : said;
}

/** @type {Offer} */
function offer({ state, device, go }, study, { isSigned, problem, warnings }) {
  const { definition } = study, usual = state.me?.level;
  // Whoever wants protection must choose to do without.
  let level = study.levels.find((each) => each.name === usual) ?? study.levels.filter((each) => each.protected).at(-1);
  const now = budget(state), after = h("div"), joining = help(), accept = text("button.main", "study.accept");
  const showAfter = () => {
    const cost = level?.charge ?? spent([]), total = sum(now.used, cost), over = level?.protected && !within(total, now.cap);
    after.replaceChildren(budgetBar(now, share(total, now.cap)));
    if (level && over) after.append(notice("bad", errorText(refusal(cost, now.left, remedies(study, level, now.used, now.cap, false)))));
    joining.replaceChildren(protectionText(level?.protected === true, "joining"));
    accept.toggleAttribute("disabled", !level || over || problem !== "");
  };
  showAfter();
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void go(() => device.accept(study, level?.name ?? ""));
  };
  const isProtected = study.levels.some((each) => each.protected);
  const checks = [
    t("study.check.hash"), isSigned && t("study.check.signature"),
    protectionText(isProtected, "check.channels", { n: Object.keys(definition.channels).length }), protectionText(isProtected, "check.charge"),
  ];
  return [
    text("p.by", "study.by", definition),
    problem && notice("warn", t(`problem.${problem}`)),
    warnings.length > 0 && notice("warn", text("h2", "study.warnings"), h("ul", warnings.map((said) => h("li", warning(said))))),
    h("p.written", definition.purpose), tags({ ...definition, levels: study.levels }), joining,
    h("details", text("summary", "study.asked", { n: study.questions.length }), h("ol.written", study.questions.map((question) => h("li", question.text)))),
    notice("good", text("h2", "study.checks"), h("ul", checks.map((said) => said && h("li", said)))),
    isSigned === null && notice("warn", t("study.unsigned")),
    h("form", { onsubmit },
      h("fieldset", text("legend", "study.choose"), study.levels.map((each) => {
        const name = `${t(`level.${each.name}`)}${each.name === usual ? ` (${t("study.default")})` : ""}`;
        return radio("level", each.name, levelLabel(name, levelLine(each)), each === level, () => { level = each; showAfter(); });
      }), help(t("study.levelReveals"))),
      text("h2", "study.budget"), after,
      text("h2", "study.consent"), h("p.written", definition.consent.text),
      h("label.option", h("input", { type: "checkbox", required: true, name: "agree" }), text("span", "study.agree")),
      accept),
  ];
}

/** @type {Answering} */
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
    const now = visible(study, answers).map((question) => question.id);
    shown.forEach((field, id) => { field.hidden = !now.includes(id); });
  };
  follow();
  const level = study.levels.find((each) => each.name === draft.level), isProtected = level?.protected === true;
  const refused = (/** @type {unknown} */ error) => {
    const isQuestion = error instanceof Refusal && error.key === "mirror.ahead";
    if (isQuestion || !(error instanceof Refusal || error instanceof Problem)) throw error;
    trouble.replaceChildren(notice("bad", errorText(error), " ", t("answer.refused")));
  };
  const protect = () => act(() => device.protect(study, draft.level, answers).then(show, refused));
  // Spending on next to nothing is a slip more often than a choice.
  const finish = () => {
    const shownNow = visible(study, answers), total = Math.min(shownNow.length, study.maxAnswers ?? Infinity);
    const given = shownNow.filter(({ id }) => answers.get(id) != null).length;
    const cost = level && 2 * given < total ? costOf(study, level, answers).epsilon : 0;
    if (cost === 0) return protect();
    const numbers = { given, total, epsilon: shownUp(cost) }, sure = button("answer.fewSure", protect, "", numbers);
    trouble.replaceChildren(notice("warn", text("p", "answer.few", numbers), sure, button("answer.fewBack", () => trouble.replaceChildren())));
    return sure.focus();
  };
  const time = draft.expires && new Date(draft.expires).toLocaleTimeString(language(), { timeStyle: "short" });
  return [
    h(isProtected ? "p.lead" : "p.lead.bare", icon(isProtected ? "lock" : "warn"), protectionText(isProtected, "answering")),
    h("p", protectionText(study.protectsParticipation, "skip")),
    study.maxAnswers !== null && text("p", "answer.most", { most: study.maxAnswers }),
    time && help(t("study.late", { time })),
    ...shown.values(), notice("warn", protectionText(isProtected, "once")), trouble,
    button(isProtected ? "protected.finish" : "unprotected.finish", finish, "main"),
    button("answer.back", () => go(() => device.chooseAgain(study))),
    giveBack(context, study.id),
  ];
}

/** @param {Context} context @param {string} id */
const giveBack = ({ device, go }, id) => button("answer.giveBack", () => go(() => device.giveBack(id), () => t("answer.givenBack")));

/** @type {Review} */
function review(context, study, entry) {
  const { device, act, go, show } = context;
  const isProtected = study.levels.find((each) => each.name === entry.level)?.protected === true;
  const { state, receipt } = entry, isHere = state === "drawn" || state === "waiting";
  return [
    state === "sent" && notice("good", h("p", protectionText(isProtected, "review.thanks")), help(receiptLine(receipt), entry.genuine && ` · ${t("review.signed")}`)),
    state === "sent" && entry.genuine === false && notice("bad", t("review.forged")),
    ["waiting", "unknown"].includes(state) && notice("warn", stateOf(entry)),
    state === "refused" && notice("bad", stateOf(entry), " ", protectionText(isProtected, "review.spent")),
    ["withdrawn", "absent"].includes(state) && notice("good", stateOf(entry)),
    text("p.lead", "review.title"), h("p", protectionText(isProtected, "review.lead")),
    ...panels(study, entry),
    h("details", text("summary", "review.raw"), h("pre", { tabindex: 0 }, JSON.stringify(entry.body, null, 1))),
    (isHere || state === "unknown") && button("review.send", () => act(() => device.release(entry.study).finally(show)), "main"),
    takeBack(context, entry),
    !isHere && Object.keys(entry.answers).length > 0 && button("review.forget", () => go(() => device.forget(entry.study))),
    !isHere && backLink(),
  ];
}

/** Whatever may have reached the broker can be taken back. @type {TakeBack} */
function takeBack({ device, go }, entry) {
  const open = entry.tried && !["drawn", "withdrawn", "absent"].includes(entry.state);
  return (open || entry.state === "sent") && afterAsking("review.withdraw", () => go(() => device.withdraw(entry)));
}

/** @param {any} receipt */
const receiptLine = ({ receipt, n_reports: n, pay_cents: pay, day }) =>
  t("review.receipt", { receipt: String(receipt).slice(0, 8), n, pay: money(pay), day: date(day) });
