/** The pages of the worker's app: welcome, studies, one study from offer to receipt, my privacy, me. */
import { Problem } from "./api.js";
import { download, h, icon, withValue } from "./dom.js";
import { date, errorText, language, money, problemText, shownDown, shownUp, t } from "./i18n.js";
import { refusal, share, spent, sum, within } from "./ledger.js";
import { Refusal } from "./refusal.js";
import { budgetBar, button, choice, help, levelLine, notice, panel, panels, questionField, radio, text } from "./render.js";
import { visible } from "./study.js";
import { budget } from "./worker.js";

const LEVELS = ["high", "medium", "low", "none"];

/** @type {Page} */
export async function welcome({ device, go }) {
  const chosen = /** @type {Me} */ ({ level: "medium", cap: 4, period: "life" });
  return [
    text("h1", "welcome.title"), text("p.lead", "welcome.lead"),
    text("h2", "welcome.how"), h("div.steps",
      panel("stays", "lock", "review.answer", t("welcome.stays")),
      panel("leaves", "send", "review.report", t("welcome.leaves")),
      panel("tells", "eye", "review.conclude", t("welcome.tells"))),
    levelChoice("welcome.level", chosen), capField("welcome.cap", chosen),
    button("welcome.start", () => save(device, chosen, go), "main"), howLink(),
  ];
}

/** @type {ChoiceOf} */
function levelChoice(legend, chosen) {
  return h("fieldset", text("legend", legend), LEVELS.map((name) =>
    radio("level", name, levelLabel(t(`level.${name}`), t(`level.${name}.help`)), name === chosen.level, () => { chosen.level = name; })));
}

/** @type {LevelLabel} */
const levelLabel = (name, help) => [h("strong", name), h("small", help)];

/** @type {ChoiceOf} */
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

/** @type {Page} */
export async function studies({ device, state }) {
  const items = await device.listStudies(), now = budget(state);
  return [
    text("h1", "studies.title"), budgetBar(now), help(t("studies.left", { left: shownDown(now.left.epsilon), cap: shownDown(now.cap.epsilon) })),
    items.length ? h("ul.cards", items.map((item) => h("li", card(item, state, now.left)))) : text("p.card", "studies.none"),
  ];
}

/** @type {ShowCard} */
function card(item, state, left) {
  const offered = item.levels.find((each) => each.name === state.me?.level) ?? item.levels.at(-1);
  const cost = offered.charge, fits = !cost || cost.epsilon_nano <= left.epsilon || cost.rho_nano <= left.rho;
  const done = state.outbox.get(item.id), label = done ? "studies.see" : state.drafts.has(item.id) ? "studies.continue" : "studies.open";
  return h(done ? "article.card.done" : "article.card",
    h("h2", item.title), text("p.by", "study.by", item), h("p", item.purpose),
    h("dl",
      fact("studies.pay", money(offered.pay_cents)), fact("studies.level", t(`level.${offered.name}`)),
      fact("studies.questions", item.n_questions),
      fact("studies.cost", cost ? `ε ${shownUp(cost.epsilon_nano)}` : t("studies.unprotected"),
        done ? stateOf(done) : cost && t(fits ? "studies.fits" : "studies.tooMuch"))),
    item.places === false && !done && help(t("problem.no-money")),
    tags(item), h("a.button", { href: `#/studies/${item.id}` }, t(label), h("span.hidden", `: ${item.title}`)));
}

/** @type {Fact} */
const fact = (name, value, note) => h("div", text("dt", name), h("dd", value, note && h("small", note)));

/** Only what is surely protected is called so: a card was not checked. @param {Tagged} item */
function tags({ levels, protects_participation: participation, linkable }) {
  const bare = levels.filter((level) => level.protected !== true).length;
  const answers = bare === 0 ? "answers" : bare < levels.length ? "someAnswers" : "notAnswers";
  const names = [answers, participation === true ? "participation" : "notParticipation", linkable === false ? "unlinkable" : "linkable"];
  const good = ["answers", "participation", "unlinkable"];
  return h("ul.tags", names.map((name) => h(good.includes(name) ? "li" : "li.open", t(`tag.${name}`))));
}

/** One study: what was drawn, else the draft, else the offer. @type {StudyPage} */
export async function study(context, id) {
  const { state, device } = context, entry = state.outbox.get(id), draft = state.drafts.get(id);
  try {
    const { study: read, ...around } = await device.openStudy(id);
    const content = entry ? review(context, read, entry) : draft ? answering(context, read, draft) : offer(context, read, around);
    return [h("h1", read.definition.title), ...content];
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const undo = entry ? [help(stateOf(entry)), takeBack(context, entry)] : [draft && giveBack(context, id)];
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
  const now = budget(state), after = h("div"), accept = text("button.main", "study.accept");
  const showAfter = () => {
    const cost = level?.charge ?? spent([]), total = sum(now.used, cost), over = level?.protected && !within(total, now.cap);
    after.replaceChildren(budgetBar(now, share(total, now.cap)));
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
    text("p.by", "study.by", definition),
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
const giveBack = ({ device, go }, id) => button("answer.giveBack", () => go(() => device.giveBack(id), () => t("answer.givenBack")));

/** @type {Review} */
function review(context, study, entry) {
  const { device, act, go, show } = context;
  const { state, receipt } = entry, isHere = state === "drawn" || state === "waiting";
  return [
    state === "sent" && notice("good", text("p", "review.thanks"), help(receiptLine(receipt), entry.genuine && ` · ${t("review.signed")}`)),
    state === "sent" && entry.genuine === false && notice("bad", t("review.forged")),
    ["waiting", "unknown"].includes(state) && notice("warn", stateOf(entry)),
    state === "refused" && notice("bad", stateOf(entry), " ", t("review.spent")),
    ["withdrawn", "absent"].includes(state) && notice("good", stateOf(entry)),
    text("p.lead", "review.title"), text("p", "review.lead"),
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

/** What cannot be undone takes two buttons. @type {AfterAsking} */
function afterAsking(key, work) {
  const sure = button(`${key}Sure`, work, "danger");
  sure.hidden = true;
  return h("div", button(key, () => { sure.hidden = false; sure.focus(); }, "danger"), help(t(`${key}Help`)), sure);
}

/** @param {any} receipt */
const receiptLine = ({ receipt, n_reports: n, pay_cents: pay, day }) =>
  t("review.receipt", { receipt: String(receipt).slice(0, 8), n, pay: money(pay), day: date(day) });

/** @type {Page} */
export async function privacy({ state }) {
  const now = budget(state), { used, cap } = now, lines = [...state.lines.values()].reverse();
  const bare = lines.filter((line) => line.kind === "unprotected"), counted = lines.filter((line) => !bare.includes(line));
  const table = (/** @type {Line[]} */ rows) => h("div.scroll", { tabindex: 0, role: "region", "aria-label": t("privacy.spends") }, h("table",
    h("thead", h("tr", ["study", "cost", "day", "state"].map((head) => h("th", { scope: "col" }, t(`privacy.${head}`))))),
    h("tbody", rows.map(({ kind, key, name, level, epsilon, day }) => h("tr",
      h("th", { scope: "row" }, kind === "carried-over" ? t("privacy.carried") : h("a", { href: `#/studies/${key.split(" ")[0]}` }, name),
        level && h("small", t(`level.${level}`))),
      h("td", kind === "unprotected" ? "∞" : shownUp(epsilon)), h("td", date(day)), h("td", stateOf(state.outbox.get(key))))))));
  const numbers = { spent: shownUp(used.epsilon), cap: shownDown(cap.epsilon), rho: shownUp(used.rho), rhoCap: shownDown(cap.rho) };
  return [
    text("h1", "privacy.title"), budgetBar(now), text("p", "privacy.numbers", numbers), help(t("privacy.promise", numbers)),
    h("details", text("summary", "privacy.exact"), text("p", "privacy.rho", numbers)),
    text("h2", "privacy.spends"), counted.length ? table(counted) : text("p", "privacy.nothing"),
    counted.some((line) => line.kind === "carried-over") && notice("warn", t("privacy.carriedHelp")),
    ...(bare.length ? [text("h2", "privacy.bare"), table(bare)] : []),
  ];
}

/** @param {Entry} [entry] */
function stateOf(entry) {
  const key = entry?.state === "waiting" && entry.tried ? "tried" : entry?.state;
  return entry ? t(`review.${key}`, { detail: problemText(entry.receipt?.code, entry.receipt?.refused ?? "") }) : "";
}

/** @type {Save} */
const save = (device, chosen, go, said) => go(() => device.saveMe({ ...chosen, cap: chosen.cap * 1e9 }), said);

/** @type {Page} */
export async function me({ device, state, act, go, release }) {
  const { level = "medium", cap = 0, period = "life" } = state.me ?? {}, chosen = { level, cap: cap / 1e9, period };
  let brought = "";
  const moved = h("textarea", { readonly: true, rows: 4, "aria-label": t("me.moveText"), hidden: true });
  const oninput = withValue((value) => { brought = value; });
  const lost = (/** @type {unknown} */ error) => notice("warn", errorText(error), afterAsking("me.anew", () => go(() => device.startAnew())));
  const earned = await device.earned().catch(lost);
  const reveal = () => act(async () => { moved.textContent = await device.moveOut(); moved.hidden = false; });
  const take = () => go(() => device.moveIn(brought), ({ n, left }) => `${t("me.imported", { n })} ${left ? t("me.accountLeft") : ""}`);
  return [
    text("h1", "me.title"),
    earned instanceof Node ? earned : earned && h("dl.card", fact("me.balance", money(earned.balance_cents)), fact("me.payee", earned.payee)),
    levelChoice("me.level", chosen), capField("me.cap", chosen), help(t("me.capHelp")),
    choice(t("me.period"), ["life", "year"], period, (value) => { chosen.period = value; }, (value) => t(`me.period.${value}`)),
    help(t("me.periodHelp")),
    button("me.save", () => save(device, chosen, go, () => t("me.saved")), "main"),
    text("h2", "me.move"), help(t("me.moveHelp")), button("me.moveShow", reveal), moved,
    h("label.field", text("span", "me.importText"), h("textarea", { rows: 4, name: "import", autocomplete: "off", oninput })), button("me.import", take),
    text("h2", "me.data"),
    button("me.export", () => act(async () => download("crowdveil-my-data.json", await device.exportData()))), help(t("me.exportHelp")),
    afterAsking("me.delete", () => go(() => device.leave())),
    help(t("me.code", { release: release.name, origin: location.origin }), " ", !release.signed && t("me.codeDevelopment")), howLink(),
  ];
}
