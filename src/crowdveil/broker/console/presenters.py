"""What a question's estimate says, beside what somebody would say who had not asked."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from crowdveil.broker.console.charts import needle_chart, shares_chart
from crowdveil.broker.console.i18n.formatting import localized, option_words, percent
from crowdveil.broker.studies.questions import Question
from crowdveil.domain import Scale
from crowdveil.inference.uncertainty.summaries import QUANTILE
from crowdveil.plan.population import prior_spread

# An interval this near to that of a guess tells nothing worth a decision.
_NO_NEWS = 0.9


def reading(result: dict[str, Any], asked: dict[str, Any], part: dict[str, Any], goal: str) -> dict[str, Any]:
    """One question for the results page: its text, charts, the estimate in words, and whether the reports can tell."""
    kind = asked["domain"]["type"]
    return result | {
        "text": asked["text"],
        "type": kind,
        "part": part,
        "charts": _charts(result, asked["domain"]),
        "needle": _needle(result, asked["domain"]),
        "estimate": _estimate(result, kind, goal),
        "comparison": _comparison(result, asked, goal),
        "tells": tells(result, asked, part, goal),
    }


def _charts(result: dict[str, Any], domain: dict[str, Any]) -> list[dict[str, Any]]:
    """Per-box shares before those of whole tick vectors; the latter are many and only for who wants them."""
    drawn = []
    if result.get("boxes"):
        chart = shares_chart(result["boxes"], 0.5)
        name = f"{result['question']}-boxes"
        drawn.append({"name": name, "caption": _("Share that ticked each box"), "chart": chart, "folded": False})
    if result["shares"]:
        label = partial(option_words, kind=domain["type"])
        chart = shares_chart(result["shares"], 1 / len(result["shares"]), label)
        caption = _("Share of each combination") if result.get("boxes") else _("Estimated shares")
        name = f"{result['question']}-shares"
        drawn.append({"name": name, "caption": caption, "chart": chart, "folded": bool(result.get("boxes"))})
    return drawn


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


def half_widths(result: dict[str, Any], asked: dict[str, Any], goal: str) -> tuple[float, float] | None:
    """Half the interval found and half the interval of a guess, in the question's own unit; of boxes the widest."""
    if result.get("boxes"):
        return max((box["high"] - box["low"]) / 2 for box in result["boxes"]), 0.5
    if result["low"] is None or result["high"] is None or (goal == "truth" and asked["domain"]["type"] != "scale"):
        return None
    domain = Question.model_validate(asked | {"gold": None}).domain.domain()
    widest = domain.range / 2 if isinstance(domain, Scale) else 0.5
    return (result["high"] - result["low"]) / 2, min(QUANTILE * prior_spread(domain), widest)


def _comparison(result: dict[str, Any], asked: dict[str, Any], goal: str) -> str:
    """The estimate's uncertainty beside that of not asking at all."""
    on_scale = asked["domain"]["type"] == "scale"
    if (widths := half_widths(result, asked, goal)) is None:
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


def tells(result: dict[str, Any], asked: dict[str, Any], part: dict[str, Any], goal: str) -> bool:
    """Whether the reports say more than a guess does."""
    if result["value"] is None or (part["floor"] is not None and not part["floor"]["informative"]):
        return False
    widths = half_widths(result, asked, goal)
    return widths is None or widths[0] < _NO_NEWS * widths[1]
