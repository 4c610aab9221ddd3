"""crowdveil: ask a crowd, learn the truth, never see anybody's answer."""

from crowdveil.answers import Answers
from crowdveil.channel import Channel, identity
from crowdveil.domain import EMPTY, Choices, Scale
from crowdveil.entropy import SystemEntropy, entropy_from
from crowdveil.errors import BudgetError, ChannelError, CheckError, CrowdveilError, DomainError, FileError, InputError
from crowdveil.estimate import Estimate
from crowdveil.guarantee import Guarantee
from crowdveil.reports import Reports

__version__ = "0.1.0"

__all__ = [
    "EMPTY",
    "Answers",
    "BudgetError",
    "Channel",
    "ChannelError",
    "CheckError",
    "Choices",
    "CrowdveilError",
    "DomainError",
    "Estimate",
    "FileError",
    "Guarantee",
    "InputError",
    "Reports",
    "Scale",
    "SystemEntropy",
    "entropy_from",
    "identity",
]
