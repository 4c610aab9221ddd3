"""Planning: what a study can find out, before anybody is asked."""

from crowdveil.plan.crowds import SKILLS, CrowdSkill
from crowdveil.plan.density_evolution import Prediction, predict
from crowdveil.plan.design import CrowdPart, Setting
from crowdveil.plan.level_mix import mix
from crowdveil.plan.planner import Plan, plan
from crowdveil.plan.population import predict_population
from crowdveil.plan.privacy_cost import StudyCharge, expected_answers, study_charge

__all__ = [
    "SKILLS",
    "CrowdPart",
    "CrowdSkill",
    "Plan",
    "Prediction",
    "Setting",
    "StudyCharge",
    "expected_answers",
    "mix",
    "plan",
    "predict",
    "predict_population",
    "study_charge",
]
