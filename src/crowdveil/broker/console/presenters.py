"""What a question's estimate says, beside what somebody would say who had not asked."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from crowdveil.broker.console.charts import needle_chart, shares_chart
from crowdveil.broker.console.i18n.formatting import localized, option_words, percent
from crowdveil.broker.results.information import half_widths
from crowdveil.broker.studies.questions import Question


def reading(result: dict[str, Any], asked: dict[str, Any], part: dict[str, Any], goal: str) -> dict[str, Any]:
    """One question for the results page: its text, charts, the estimate in words, and whether the reports can tell."""
    kind = asked["domain"]["type"]
    tells = result.get("informative", True)
    return result | {
        "text": asked["text"],
        "type": kind,
        "part": part,
        "charts": _charts(result, asked["domain"], goal),
        "needle": _needle(result, asked["domain"]),
        "estimate": _estimate(result, kind, goal),
        "comparison": _comparison(result, asked, goal),
        "tells": tells,
        "needed": "" if tells else _needed(part.get("needed")),
    }


def _needed(needed: dict[str, Any] | None) -> str:
    """What the planner says it would take."""
    n_workers, epsilon = (needed or {}).get("n_workers"), (needed or {}).get("epsilon")
    values = {"n": f"{n_workers or 0:,}".replace(",", "\u202f"), "epsilon": localized(f"{epsilon or 0:g}")}
    if n_workers and epsilon:
        told = _("To be twice as precise as a guess takes about %(n)s people, or ε %(epsilon)s with as many as now.")
    elif n_workers:
        told = _("To be twice as precise as a guess takes about %(n)s people.")
    elif epsilon:
        told = _("To be twice as precise as a guess takes ε %(epsilon)s with as many people as now.")
    else:
        return ""
    return told % values


def _charts(result: dict[str, Any], domain: dict[str, Any], goal: str) -> list[dict[str, Any]]:
    """Per-box shares before those of whole tick vectors; the latter are many and only for who wants them.

    Where the mean or the boxes cannot be told, the many levels or combinations cannot either, and are not drawn.
    """
    drawn = []
    if result.get("boxes"):
        chart = shares_chart(result["boxes"], 0.5)
        name = f"{result['question']}-boxes"
        drawn.append({"name": name, "caption": _("Share that ticked each box"), "chart": chart, "folded": False})
        drawn[-1] |= {"measure": _("Share"), "picked": len(result["boxes"]) > 1}
    detailed = domain["type"] != "choices"
    if result["shares"] and (result.get("informative", True) or not detailed):
        label = partial(option_words, kind=domain["type"])
        chart = shares_chart(result["shares"], 1 / len(result["shares"]), label)
        name, folded = f"{result['question']}-shares", bool(result.get("boxes"))
        drawn.append({"name": name, "caption": _caption(folded, goal), "chart": chart, "folded": folded})
        drawn[-1] |= {
            "measure": _("Probability") if goal == "truth" else _("Share"),
            "picked": domain["type"] != "scale",
        }
    return drawn


def _caption(combinations: bool, goal: str) -> str:
    if goal == "truth":
        return _("Probability of being the right answer")
    return _("Share of each combination") if combinations else _("Estimated shares")


def _needle(result: dict[str, Any], domain: dict[str, Any]) -> Any:
    if domain["type"] != "scale" or not isinstance(result["value"], int | float):
        return None
    return needle_chart(result["value"], result["low"], result["high"], domain)


def _estimate(result: dict[str, Any], kind: str, goal: str) -> dict[str, str] | None:
    """The value and its interval as text; None where there is nothing to say."""
    if result["value"] is None:
        return None
    if kind == "scale":
        return {
            "value": localized(f"{result['value']:.2f}"),
            "interval": _between(result, lambda number: f"{number:.2f}"),
        }
    if result.get("boxes"):
        top = max(result["boxes"], key=lambda box: box["share"])
        return {"value": f"{top['option']}: {percent(top['share'])}", "interval": _between(top, percent)}
    value = option_words(str(result["value"]), kind)
    if result["confidence"] is not None:
        said = _("%(value)s, right with probability %(share)s") if goal == "truth" else _("%(value)s: %(share)s")
        value = said % {"value": value, "share": percent(result["confidence"])}
    return {"value": value, "interval": _between(result, percent)}


def _between(result: dict[str, Any], spelled: Any) -> str:
    low, high = result["low"], result["high"]
    return "" if low is None or high is None else localized(f"{spelled(low)} – {spelled(high)}")


def _comparison(result: dict[str, Any], asked: dict[str, Any], goal: str) -> str:
    """The estimate's uncertainty beside that of not asking at all."""
    on_scale = asked["domain"]["type"] == "scale"
    domain = Question.model_validate(asked | {"gold": None}).domain.domain()
    if (widths := half_widths(result, domain, goal)) is None:
        if goal == "truth" and result["shares"]:
            return _("A guess without asking would be right with probability %(share)s.") % {
                "share": percent(1 / len(result["shares"]))
            }
        return ""
    spelled = [localized(f"±\u202f{width:.2f}") if on_scale else f"±\u202f{percent(width)}" for width in widths]
    return _("Uncertainty: %(found)s; a guess without asking: %(guess)s.") % {
        "found": spelled[0],
        "guess": spelled[1],
    }
