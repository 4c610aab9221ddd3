/**
 * The parts that pages are made of: native controls for questions, the budget bar, and the three panels that show
 * what stays, what leaves and what it tells.
 */
import { h, icon, withValue } from "./dom.js";
import { money, percent, t } from "./i18n.js";
import { shownDown, shownUp } from "./nano.js";
import { mostSure, symbols } from "./study.js";
/** @import { Budget, Child, Entry, Level, OnAnswer, Question, Study } from "./types.js" */

const MOST_BUTTONS = 12;

/** @param {unknown} spelled  a symbol of a channel: ∅, an option, a level, ticked boxes or a subset @param {any} [domain] @returns {string} */
export function inWords(spelled, domain) {
  if (spelled === null || spelled === undefined) return t("review.empty");
  if (Array.isArray(spelled)) return `{ ${spelled.map((part) => inWords(part, domain)).join(", ")} }`;
  if (domain?.type !== "tick-all") return String(spelled);
  return JSON.parse(String(spelled)).join(", ") || t("review.nothing");
}

/**
 * One question with native controls. Calls back with the symbol answered, or undefined for a skip.
 * @param {Question} question @param {string | undefined} answer @param {OnAnswer} onAnswer
 */
export function questionField(question, answer, onAnswer) {
  const { domain, id, text } = question;
  const legend = h("legend", {}, text);
  if (domain.type === "tick-all") return h("fieldset", { class: "question" }, legend, tickAll(id, domain.boxes, answer, onAnswer));
  const all = symbols(domain);
  if (all.length > MOST_BUTTONS) return h("fieldset", { class: "question" }, legend, longList(id, all, answer, onAnswer, text));
  const shape = domain.type === "scale" ? "options scale" : "options";
  const radios = all.map((symbol) => radio(id, symbol, symbol, symbol === answer, () => onAnswer(symbol)));
  return h("fieldset", { class: "question" }, legend, h("div", { class: shape }, radios), skip(id, answer, onAnswer));
}

/** @param {string} name @param {string} value @param {Child | Child[]} label @param {boolean} checked @param {() => void} onchange @param {string} [type] */
export function radio(name, value, label, checked, onchange, type = "radio") {
  return h("label", { class: "option" }, h("input", { type, name, value, checked, onchange }), h("span", {}, label));
}

/** @param {string} id @param {string | undefined} answer @param {OnAnswer} onAnswer */
function skip(id, answer, onAnswer) {
  return h("div", { class: "options skip" }, radio(id, "", t("answer.skip"), answer === undefined, () => onAnswer(undefined)));
}

/** @param {string} id @param {string[]} boxes @param {string | undefined} answer @param {OnAnswer} onAnswer */
function tickAll(id, boxes, answer, onAnswer) {
  const ticked = new Set(answer === undefined ? [] : JSON.parse(answer));
  const given = radio(`${id} given`, "given", t("review.nothing"), answer === "[]", () => tell(), "checkbox");
  const tell = () => {
    const list = boxes.filter((box) => ticked.has(box));
    const none = given.querySelector("input");
    if (none && list.length) none.checked = false;
    onAnswer(list.length || none?.checked ? JSON.stringify(list) : undefined);
  };
  const toggle = (/** @type {string} */ box) => () => {
    if (!ticked.delete(box)) ticked.add(box);
    tell();
  };
  return h("div", { class: "options" }, boxes.map((box) => radio(id, box, box, ticked.has(box), toggle(box), "checkbox")), given);
}

/** @param {string} id @param {string[]} all @param {string | undefined} answer @param {OnAnswer} onAnswer @param {string} label */
function longList(id, all, answer, onAnswer, label) {
  const choose = withValue((value) => onAnswer(value === "" ? undefined : all[Number(value)]));
  const options = all.map((symbol, code) => h("option", { value: code, selected: symbol === answer }, symbol));
  return h("select", { name: id, "aria-label": label, onchange: choose }, h("option", { value: "" }, t("answer.skip")), options);
}

/**
 * What stays | what leaves | what anyone could conclude, for each question of a draw.
 * @param {Study} study @param {Entry} entry
 */
export function panels(study, entry) {
  const level = study.levels.find((each) => each.name === entry.level);
  const reports = new Map(entry.body.reports.map((/** @type {any} */ report) => [report.question, report.report]));
  const forgotten = Object.keys(entry.answers).length === 0 && entry.state !== "drawn" && entry.state !== "waiting";
  return study.questions.filter(({ id }) => reports.has(id)).map(({ id, text, domain }) => {
    const channel = level?.channels.get(id), report = Number(reports.get(id));
    if (!channel) return null;
    const conclusion = level?.protected ? t("review.sure", { percent: percent(mostSure(channel, report)) }) : t("review.bare");
    return h("section", { class: "cell", "data-question": id },
      h("h2", {}, text),
      panel("stays", "lock", t("review.answer"), forgotten ? t("review.forgotten") : inWords(entry.answers[id], domain)),
      panel("leaves", "send", t("review.report"), inWords(channel.outputs[report], domain)),
      panel("tells", "eye", t("review.conclude"), conclusion));
  });
}

/** @param {string} kind @param {"lock" | "send" | "eye"} drawing @param {string} title @param {string} content */
function panel(kind, drawing, title, content) {
  return h("div", { class: `panel ${kind}` }, h("h3", {}, icon(drawing), title), h("p", {}, content));
}

/** The share of the cap that is used, and what a study would add. @param {Budget} now @param {number} [after] */
export function budgetBar(now, after = now.share) {
  const shown = Math.min(after, 1);
  const bar = h("progress", { class: "bar", max: 1000, value: Math.round(shown * 1000), "aria-label": t("privacy.used", { percent: percent(shown) }) });
  return h("div", { class: after > 1 ? "budget over" : "budget" }, bar, h("p", {}, t("privacy.used", { percent: percent(shown) })));
}

/** One level in a line. @param {Level} level */
export function levelLine(level) {
  if (!level.protected) return t("study.levelBare", { pay: money(level.pay) });
  const worst = Math.max(...[...level.channels.values()].map((channel) => channel.epsilon));
  const sure = 1 / (1 + Math.exp(-worst));
  return t("study.levelLine", { pay: money(level.pay), epsilon: shownUp(level.charge.epsilon), percent: percent(sure) });
}

/** @param {Budget} budget */
export function budgetNumbers({ cap, used }) {
  return t("privacy.numbers", {
    spent: shownUp(used.epsilon), cap: shownDown(cap.epsilon), rho: shownUp(used.rho), rhoCap: shownDown(cap.rho),
  });
}

/** @param {string} kind @param {...(Child | Child[])} content */
export function notice(kind, ...content) {
  return h("div", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : undefined }, icon(kind === "good" ? "check" : "warn"), h("div", {}, ...content));
}
