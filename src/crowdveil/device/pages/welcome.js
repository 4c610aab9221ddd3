/** Before the first study: what happens to an answer, the usual level and the cap. */
import { h } from "../dom.js";
import { date, protectionText, shownUp, t } from "../i18n.js";
import { spent } from "../ledger.js";
import { answerPanel, button, capField, help, howLink, levelChoice, notice, panel, saveMe, text } from "../render.js";

/** @type {Page} */
export async function welcome({ device, state, go, evictedSince }) {
  const { level = "medium", cap = 4e9, period = "life" } = state.left?.me ?? {};
  const chosen = { level, cap: cap / 1e9, period }, steps = h("div.steps");
  const showSteps = () => {
    const isProtected = chosen.level !== "none";
    steps.replaceChildren(
      answerPanel(isProtected, protectionText(isProtected, "welcome.stays")),
      panel("leaves", "send", "review.report", protectionText(isProtected, "welcome.leaves")),
      panel("tells", "eye", "review.conclude", protectionText(isProtected, "welcome.tells")));
  };
  showSteps();
  return [
    text("h1", "welcome.title"), text("p.lead", "welcome.lead"), earlierUse(state, evictedSince),
    text("h2", "welcome.how"), steps,
    levelChoice("welcome.level", chosen, showSteps), capField("welcome.cap", chosen),
    button("welcome.start", () => saveMe(device, chosen, go), "main"), howLink(),
  ];
}

/** What is known here of an earlier use, and what is not. @type {EarlierUse} */
function earlierUse({ left, lines }, evictedSince) {
  if (left) return notice("good", t("welcome.left", { day: date(left.day), spent: shownUp(spent(lines.values()).epsilon) }));
  return evictedSince ? notice("warn", t("welcome.evicted", { day: date(evictedSince) })) : help(t("welcome.again"));
}
