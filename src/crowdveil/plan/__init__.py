"""Planning: what a study can find out, before anybody is asked."""

from crowdveil.plan.charge import Charge, study_charge
from crowdveil.plan.evolution import Prediction, predict
from crowdveil.plan.mix import mix
from crowdveil.plan.planner import Plan, plan
from crowdveil.plan.population import predict_population
from crowdveil.plan.setting import Part, Setting
from crowdveil.plan.skill import SKILLS, Crowd

__all__ = [
    "SKILLS",
    "Charge",
    "Crowd",
    "Part",
    "Plan",
    "Prediction",
    "Setting",
    "mix",
    "plan",
    "predict",
    "predict_population",
    "study_charge",
]
