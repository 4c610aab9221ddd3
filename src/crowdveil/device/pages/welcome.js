/** Before the first study: what happens to an answer, the usual level and the cap. */
import { h } from "../dom.js";
import { t } from "../i18n.js";
import { button, capField, howLink, levelChoice, panel, saveMe, text } from "../render.js";

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
    button("welcome.start", () => saveMe(device, chosen, go), "main"), howLink(),
  ];
}
