"""crowdveil: ask a crowd, learn the truth, never see anybody's answer.

The names are there at once, what they stand for is loaded when the first of them is used: the command line begins
while nothing heavy is loaded yet, and understands Ctrl-C from then on.
"""

from crowdveil._lazy import lazy_names

TYPE_CHECKING = False  # type checkers take it for True; loading typing takes a while

if TYPE_CHECKING:
    from crowdveil.answers import Answers
    from crowdveil.channel import Channel, identity
    from crowdveil.domain import EMPTY, Choices, Scale
    from crowdveil.entropy import SystemEntropy, entropy_from
    from crowdveil.errors import (
        BudgetError,
        ChannelError,
        CheckError,
        CrowdveilError,
        DomainError,
        FileError,
        InputError,
    )
    from crowdveil.estimate import Estimate
    from crowdveil.files import (
        answers_from,
        load_dataset,
        read_answers,
        read_reports,
        read_truth,
        reports_from,
        write_answers,
        write_estimates,
        write_reports,
    )
    from crowdveil.guarantee import Guarantee
    from crowdveil.inference import (
        Auto,
        ChannelBP,
        ChannelEM,
        DawidSkene,
        Frequency,
        Glad,
        Mace,
        Majority,
        Mean,
        Median,
        OneCoin,
        PopulationMean,
        PrivateDawidSkene,
        WeightedMean,
        WeightedVote,
        method,
    )
    from crowdveil.inference.metrics import score
    from crowdveil.mechanisms import (
        DiscreteGaussian,
        DiscreteLaplace,
        NoPrivacy,
        OneLayer,
        OptimalScale,
        Piecewise,
        RandomizedResponse,
        SubsetSelection,
        mechanism,
    )
    from crowdveil.reports import Reports

__version__ = "0.1.0"

# The module of each name; research mechanisms are in crowdveil.mechanisms only.
_MODULES = {
    "answers": ("Answers",),
    "channel": ("Channel", "identity"),
    "domain": ("EMPTY", "Choices", "Scale"),
    "entropy": ("SystemEntropy", "entropy_from"),
    "errors": (
        "BudgetError",
        "ChannelError",
        "CheckError",
        "CrowdveilError",
        "DomainError",
        "FileError",
        "InputError",
    ),
    "estimate": ("Estimate",),
    "files": (
        "answers_from",
        "load_dataset",
        "read_answers",
        "read_reports",
        "read_truth",
        "reports_from",
        "write_answers",
        "write_estimates",
        "write_reports",
    ),
    "guarantee": ("Guarantee",),
    "inference": (
        "Auto",
        "ChannelBP",
        "ChannelEM",
        "DawidSkene",
        "Frequency",
        "Glad",
        "Mace",
        "Majority",
        "Mean",
        "Median",
        "OneCoin",
        "PopulationMean",
        "PrivateDawidSkene",
        "WeightedMean",
        "WeightedVote",
        "method",
    ),
    "inference.metrics": ("score",),
    "mechanisms": (
        "DiscreteGaussian",
        "DiscreteLaplace",
        "NoPrivacy",
        "OneLayer",
        "OptimalScale",
        "Piecewise",
        "RandomizedResponse",
        "SubsetSelection",
        "mechanism",
    ),
    "reports": ("Reports",),
}

__all__ = [
    "EMPTY",
    "Answers",
    "Auto",
    "BudgetError",
    "Channel",
    "ChannelBP",
    "ChannelEM",
    "ChannelError",
    "CheckError",
    "Choices",
    "CrowdveilError",
    "DawidSkene",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DomainError",
    "Estimate",
    "FileError",
    "Frequency",
    "Glad",
    "Guarantee",
    "InputError",
    "Mace",
    "Majority",
    "Mean",
    "Median",
    "NoPrivacy",
    "OneCoin",
    "OneLayer",
    "OptimalScale",
    "Piecewise",
    "PopulationMean",
    "PrivateDawidSkene",
    "RandomizedResponse",
    "Reports",
    "Scale",
    "SubsetSelection",
    "SystemEntropy",
    "WeightedMean",
    "WeightedVote",
    "answers_from",
    "entropy_from",
    "identity",
    "load_dataset",
    "mechanism",
    "method",
    "read_answers",
    "read_reports",
    "read_truth",
    "reports_from",
    "score",
    "write_answers",
    "write_estimates",
    "write_reports",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, globals(), _MODULES)
