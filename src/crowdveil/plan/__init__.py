"""Planning: what a study can find out, before anybody is asked."""

from crowdveil.plan.charge import StudyCharge, study_charge
from crowdveil.plan.evolution import Prediction, predict
from crowdveil.plan.mix import mix
from crowdveil.plan.planner import Plan, plan
from crowdveil.plan.population import predict_population
from crowdveil.plan.setting import CrowdPart, Setting
from crowdveil.plan.skill import SKILLS, CrowdSkill

__all__ = [
    "SKILLS",
    "CrowdPart",
    "CrowdSkill",
    "Plan",
    "Prediction",
    "Setting",
    "StudyCharge",
    "mix",
    "plan",
    "predict",
    "predict_population",
    "study_charge",
]
