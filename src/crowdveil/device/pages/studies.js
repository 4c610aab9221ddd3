/** The studies on offer, as cards with pay and price at the worker's usual level. */
import { h } from "../dom.js";
import { money, shownDown, shownUp, t } from "../i18n.js";
import { budgetBar, claimQuestion, fact, help, stateOf, tags, text } from "../render.js";
import { budget } from "../worker.js";

/** @type {Page} */
export async function studies(context) {
  const { device, state } = context, items = await device.listStudies(), now = budget(state);
  return [
    text("h1", "studies.title"), claimQuestion(context), budgetBar(now), help(t("studies.left", { left: shownDown(now.left.epsilon), cap: shownDown(now.cap.epsilon) })),
    items.length ? h("ul.cards", items.map((item) => h("li", card(item, state, now.left)))) : text("p.card", "studies.none"),
  ];
}

/** @type {ShowCard} */
function card(item, state, left) {
  const offered = item.levels.find((each) => each.name === state.me?.level) ?? item.levels.at(-1);
  const cost = offered.charge, fits = !cost || cost.epsilon_nano <= left.epsilon || cost.rho_nano <= left.rho;
  const done = state.outbox.get(item.id), label = done ? "studies.see" : state.drafts.has(item.id) ? "studies.continue" : "studies.open";
  return h(done ? "article.card.done" : "article.card",
    h("h2", item.title), text("p.by", "study.by", item), h("p.written", item.purpose),
    h("dl",
      fact("studies.pay", money(offered.pay_cents)), fact("studies.level", t(`level.${offered.name}`)),
      fact("studies.questions", item.n_questions),
      fact("studies.cost", cost ? `ε ${shownUp(cost.epsilon_nano)}` : t("studies.unprotected"),
        done ? stateOf(done) : cost && t(fits ? "studies.fits" : "studies.tooMuch"))),
    item.places === false && !done && help(t("problem.no-money")),
    tags(item), h("a.button", { href: `#/studies/${item.id}` }, t(label), h("span.hidden", `: ${item.title}`)));
}
