/**
 * The parts that pages are made of: native controls, the budget bar, and the three panels that show what stays, what
 * leaves and what it tells.
 */
import { h, icon, withValue } from "./dom.js";
import { money, percent, problemText, protectionText, shownUp, t } from "./i18n.js";
import { spent } from "./ledger.js";
import { mostSure, symbols } from "./study.js";

const LEVELS = ["high", "medium", "low", "none"];
const MOST_BUTTONS = 12;

/** One sentence of the catalogue. @type {Says} */
export const text = (tag, key, values) => h(tag, t(key, values));

/** @type {Parts} */
export const help = (...content) => h("p.help", ...content);

/** @type {Button} */
export const button = (key, onclick, kind, values) => h("button", { type: "button", class: kind, onclick }, t(key, values));

/** @type {Radio} */
export const radio = (name, value, label, checked, onchange, type = "radio") =>
  h("label.option", h("input", { type, name, value, checked, onchange, autocomplete: "off" }), h("span", label));

/** @type {Choice} */
export function choice(label, values, current, onchoice, words) {
  const options = values.map((value) => h("option", { value, selected: value === current }, words(value)));
  return h("label.field", h("span", label), h("select", { onchange: withValue(onchoice) }, options));
}

/** @type {InWords} */
function inWords(spelled, domain) {
  if (spelled == null) return t("review.empty");
  if (Array.isArray(spelled)) return `{ ${spelled.map((part) => inWords(part, domain)).join(", ")} }`;
  if (domain?.type !== "tick-all") return String(spelled);
  return JSON.parse(String(spelled)).join(", ") || t("review.nothing");
}

/** One question with native controls. @type {QuestionField} */
export function questionField({ domain, id, text: legend }, answer, onAnswer) {
  const all = symbols(domain), field = { id, legend, answer, onAnswer };
  const control = domain.type === "tick-all" ? tickAll : all.length > MOST_BUTTONS ? longList : buttons;
  return h(`fieldset.question.${domain.type}`, h("legend", legend), control(field, domain.boxes ?? all));
}

/** @type {Control} */
function buttons({ id, answer, onAnswer }, all) {
  const radios = all.map((symbol) => radio(id, symbol, symbol, symbol === answer, () => onAnswer(symbol)));
  const skip = radio(id, "", t("answer.skip"), answer === null, () => onAnswer(null));
  return [h("div.options", radios), h("div.skip", skip)];
}

/** @type {Control} */
function tickAll({ id, answer, onAnswer }, boxes) {
  const ticked = new Set(answer ? JSON.parse(answer) : []);
  const given = radio(`${id} given`, "given", t("review.nothing"), answer === "[]", () => tell(), "checkbox");
  const tell = () => {
    const list = boxes.filter((box) => ticked.has(box)), none = given.querySelector("input");
    if (none && list.length) none.checked = false;
    onAnswer(list.length || none?.checked ? JSON.stringify(list) : undefined);
  };
  return [h("div.options", boxes.map((box) => radio(id, box, box, ticked.has(box), () => {
    if (!ticked.delete(box)) ticked.add(box);
    tell();
  }, "checkbox")), given)];
}

/** @type {Control} */
function longList({ id, legend, answer, onAnswer }, all) {
  const onchange = withValue((value) => onAnswer(value === "skip" ? null : all[Number(value)]));
  const options = all.map((symbol, code) => h("option", { value: code, selected: symbol === answer }, symbol));
  return [h("select", { name: id, "aria-label": legend, onchange, autocomplete: "off" },
    h("option", { value: "", disabled: true, selected: answer === undefined }, t("answer.choose")), options,
    h("option", { value: "skip", selected: answer === null }, t("answer.skip")))];
}

/** What stays, what leaves, what it tells, for each question of a draw. @type {Panels} */
export function panels(study, entry) {
  const level = study.levels.find((each) => each.name === entry.level), isProtected = level?.protected === true;
  const absent = Object.keys(entry.answers).length > 0 ? null : t(entry.imported ? "review.elsewhere" : "review.forgotten");
  return entry.body.reports.map(({ question, report }) => {
    const channel = level?.channels.get(question), asked = study.questions.find(({ id }) => id === question);
    if (!channel || !asked) return null;
    return h("section.cell", { "data-question": question },
      h("h2", asked.text),
      answerPanel(isProtected, absent ?? inWords(entry.answers[question], asked.domain)),
      panel("leaves", "send", "review.report", inWords(channel.outputs[report], asked.domain)),
      panel("tells", "eye", "review.conclude", protectionText(isProtected, "review.conclusion", { percent: percent(mostSure(channel, report)) })));
  });
}

/** @type {Panel} */
export const panel = (kind, drawing, title, content) => h(`div.panel.${kind}`, h("h3", icon(drawing), t(title)), h("p", content));

/** The answer itself: only a protected one stays. @type {AnswerPanel} */
export const answerPanel = (isProtected, content) => isProtected
  ? panel("stays", "lock", "protected.review.answer", content)
  : panel("bare", "warn", "unprotected.review.answer", content);

/** The share of the cap that is used, and what a study would add. @type {BudgetBar} */
export function budgetBar(now, after = now.share) {
  const shown = Math.min(after, 1), label = t("privacy.used", { percent: percent(shown) });
  const bar = h("progress.bar", { max: 1000, value: Math.round(shown * 1000), "aria-label": label });
  return h(after > 1 ? "div.budget.over" : "div.budget", bar, h("p", label));
}

/** One level in a line. @param {Level} level */
export function levelLine(level) {
  const worst = Math.max(...[...level.channels.values()].map((channel) => channel.epsilon));
  const numbers = { pay: money(level.pay), epsilon: shownUp(level.charge.epsilon), percent: percent(1 / (1 + Math.exp(-worst))) };
  return protectionText(level.protected, "levelLine", numbers);
}

/** @type {Notice} */
export const notice = (kind, ...content) =>
  h(`div.notice.${kind}`, kind === "bad" && { role: "alert" }, icon(kind === "good" ? "check" : "warn"), h("div", ...content));

/** Whether to count what the broker's copy says beyond this ledger. @type {ClaimQuestion} */
export function claimQuestion({ device, state, go }) {
  if (!state.claim) return null;
  const numbers = { claimed: shownUp(state.claim.epsilon), known: shownUp(spent(state.lines.values()).epsilon) };
  return notice("warn", text("p", "mirror.ask", numbers),
    button("mirror.count", () => go(() => device.countClaim()), "", numbers), button("mirror.dismiss", () => go(() => device.dismissClaim()), "", numbers));
}

/** @type {LeaveButton} */
export const leaveButton = ({ device, go }) => afterAsking("me.leave", () => go(() => device.leaveSite(), () => t("me.left")));

/** @type {ChoiceOf} */
export function levelChoice(legend, chosen, onchoice = () => undefined) {
  return h("fieldset", text("legend", legend), LEVELS.map((name) =>
    radio("level", name, levelLabel(t(`level.${name}`), t(`level.${name}.help`)), name === chosen.level, () => {
      chosen.level = name;
      onchoice();
    })));
}

/** @type {LevelLabel} */
export const levelLabel = (name, help) => [h("strong", name), h("small", help)];

/** @type {ChoiceOf} */
export function capField(label, chosen) {
  const shown = h("span.value", { "aria-hidden": "true" }, `ε ${chosen.cap}`);
  const oninput = withValue((value) => { chosen.cap = Number(value); shown.replaceChildren(`ε ${value}`); });
  return h("div.group",
    h("label.field", shown, text("span", label),
      h("input", { type: "range", min: 1, max: 20, step: 0.5, value: chosen.cap, "aria-describedby": "cap-help", oninput })),
    h("p", { id: "cap-help", class: "help" }, t("welcome.capHelp")));
}

export const howLink = () => h("p", h("a", { href: t("nav.howPage") }, t("nav.how")));
export const backLink = () => h("p", h("a", { href: "#/" }, t("nav.back")));

/** @type {Save} */
export const saveMe = (device, chosen, go, said) => go(() => device.saveMe({ ...chosen, cap: chosen.cap * 1e9 }), said);

/** @type {Fact} */
export const fact = (name, value, note) => h("div", text("dt", name), h("dd", value, note && h("small", note)));

/** Only what is surely protected is called so: a card was not checked. @param {Tagged} item */
export function tags({ levels, protects_participation: participation, linkable }) {
  const bare = levels.filter((level) => level.protected !== true).length;
  const answers = bare === 0 ? "answers" : bare < levels.length ? "someAnswers" : "notAnswers";
  const names = [answers, participation === true ? "participation" : "notParticipation", linkable === false ? "unlinkable" : "linkable"];
  const good = ["answers", "participation", "unlinkable"];
  return h("ul.tags", names.map((name) => h(good.includes(name) ? "li" : "li.open", t(`tag.${name}`))));
}

/** What cannot be undone takes two buttons. @type {AfterAsking} */
export function afterAsking(key, work) {
  const sure = button(`${key}Sure`, work, "danger");
  sure.hidden = true;
  return h("div", button(key, () => { sure.hidden = false; sure.focus(); }, "danger"), help(t(`${key}Help`)), sure);
}

/** @param {Entry} [entry] */
export function stateOf(entry) {
  const key = entry?.state === "waiting" && entry.tried ? "tried" : entry?.state;
  return entry ? t(`review.${key}`, { detail: problemText(entry.receipt?.code, entry.receipt?.refused ?? "") }) : "";
}
