/**
 * The parts that pages are made of: native controls for questions, the budget bar, and the three panels that show
 * what stays, what leaves and what it tells.
 */
import { h, icon, withValue } from "./dom.js";
import { money, percent, shownUp, t } from "./i18n.js";
import { mostSure, symbols } from "./study.js";
/** @import { Budget, Child, Choice, Entry, Field, InWords, Level, Panel, Question, Radio, Study, Values } from "./types.js" */

const MOST_BUTTONS = 12;

/** An element that says one sentence of the catalogue. @type {(tag: string, key: string, values?: Values) => HTMLElement} */
export const text = (tag, key, values) => h(tag, t(key, values));

/** @param {...(Child | Child[])} content */
export const help = (...content) => h("p.help", ...content);

/** @param {string} key @param {() => unknown} onclick @param {string} [kind] */
export const button = (key, onclick, kind) => h("button", { type: "button", class: kind, onclick }, t(key));

/** @type {Radio} */
export function radio(name, value, label, checked, onchange, type = "radio") {
  return h("label.option", h("input", { type, name, value, checked, onchange, autocomplete: "off" }), h("span", label));
}

/** @type {Choice} */
export function choice(label, values, current, onchoice, words) {
  const options = values.map((value) => h("option", { value, selected: value === current }, words(value)));
  return h("label.field", h("span", label), h("select", { onchange: withValue(onchoice) }, options));
}

/** @type {InWords} */
function inWords(spelled, domain) {
  if (spelled === null || spelled === undefined) return t("review.empty");
  if (Array.isArray(spelled)) return `{ ${spelled.map((part) => inWords(part, domain)).join(", ")} }`;
  if (domain?.type !== "tick-all") return String(spelled);
  return JSON.parse(String(spelled)).join(", ") || t("review.nothing");
}

/**
 * One question with native controls. Calls back with the symbol answered, or undefined for a skip.
 * @param {Question} question @param {Field["answer"]} answer @param {Field["onAnswer"]} onAnswer
 */
export function questionField({ domain, id, text: legend }, answer, onAnswer) {
  const all = symbols(domain), field = { id, legend, answer, onAnswer };
  const control = domain.type === "tick-all" ? tickAll : all.length > MOST_BUTTONS ? longList : buttons;
  return h("fieldset", { class: `question ${domain.type}` }, h("legend", legend), control(field, domain.boxes ?? all));
}

/** @param {Field} field @param {string[]} all */
function buttons({ id, answer, onAnswer }, all) {
  const radios = all.map((symbol) => radio(id, symbol, symbol, symbol === answer, () => onAnswer(symbol)));
  const skip = radio(id, "", t("answer.skip"), answer === undefined, () => onAnswer(undefined));
  return [h("div.options", radios), h("div.skip", skip)];
}

/** @param {Field} field @param {string[]} boxes */
function tickAll({ id, answer, onAnswer }, boxes) {
  const ticked = new Set(answer === undefined ? [] : JSON.parse(answer));
  const given = radio(`${id} given`, "given", t("review.nothing"), answer === "[]", () => tell(), "checkbox");
  const tell = () => {
    const list = boxes.filter((box) => ticked.has(box)), none = given.querySelector("input");
    if (none && list.length) none.checked = false;
    onAnswer(list.length || none?.checked ? JSON.stringify(list) : undefined);
  };
  const toggle = (/** @type {string} */ box) => () => {
    if (!ticked.delete(box)) ticked.add(box);
    tell();
  };
  return [h("div.options", boxes.map((box) => radio(id, box, box, ticked.has(box), toggle(box), "checkbox")), given)];
}

/** @param {Field} field @param {string[]} all */
function longList({ id, legend, answer, onAnswer }, all) {
  const onchange = withValue((value) => onAnswer(value === "" ? undefined : all[Number(value)]));
  const options = all.map((symbol, code) => h("option", { value: code, selected: symbol === answer }, symbol));
  return [h("select", { name: id, "aria-label": legend, onchange, autocomplete: "off" }, h("option", { value: "" }, t("answer.skip")), options)];
}

/**
 * What stays | what leaves | what anyone could conclude, for each question of a draw.
 * @param {Study} study @param {Entry} entry
 */
export function panels(study, entry) {
  const level = study.levels.find((each) => each.name === entry.level);
  const forgotten = Object.keys(entry.answers).length === 0 && entry.state !== "drawn" && entry.state !== "waiting";
  return entry.body.reports.map((/** @type {any} */ { question, report }) => {
    const channel = level?.channels.get(question), asked = study.questions.find(({ id }) => id === question);
    if (!channel || !asked) return null;
    const conclusion = level?.protected ? t("review.sure", { percent: percent(mostSure(channel, report)) }) : t("review.bare");
    return h("section.cell", { "data-question": question },
      h("h2", asked.text),
      panel("stays", "lock", "review.answer", forgotten ? t("review.forgotten") : inWords(entry.answers[question], asked.domain)),
      panel("leaves", "send", "review.report", inWords(channel.outputs[report], asked.domain)),
      panel("tells", "eye", "review.conclude", conclusion));
  });
}

/** @type {Panel} */
export function panel(kind, drawing, title, content) {
  return h("div", { class: `panel ${kind}` }, h("h3", icon(drawing), t(title)), h("p", content));
}

/** The share of the cap that is used, and what a study would add. @param {Budget} now @param {number} [after] */
export function budgetBar(now, after = now.share) {
  const shown = Math.min(after, 1), label = t("privacy.used", { percent: percent(shown) });
  const bar = h("progress.bar", { max: 1000, value: Math.round(shown * 1000), "aria-label": label });
  return h("div", { class: after > 1 ? "budget over" : "budget" }, bar, h("p", label));
}

/** One level in a line. @param {Level} level */
export function levelLine(level) {
  if (!level.protected) return t("study.levelBare", { pay: money(level.pay) });
  const worst = Math.max(...[...level.channels.values()].map((channel) => channel.epsilon));
  const sure = 1 / (1 + Math.exp(-worst));
  return t("study.levelLine", { pay: money(level.pay), epsilon: shownUp(level.charge.epsilon), percent: percent(sure) });
}

/** @param {string} kind @param {...(Child | Child[])} content */
export function notice(kind, ...content) {
  return h("div", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : undefined }, icon(kind === "good" ? "check" : "warn"), h("div", ...content));
}
