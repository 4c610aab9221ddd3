"""What privacy costs: auctions and offers in which stating one's true cost is best (Kandappu et al. 2015, §4.4.4)."""

from __future__ import annotations

from crowdveil.pricing.bids import Bid, Purchase, parse_amount
from crowdveil.pricing.ghosh_roth import FairQuery, FixedAccuracy
from crowdveil.pricing.level_offers import LevelOffers, offer_per_level
from crowdveil.pricing.single_minded import SingleMinded
from crowdveil.pricing.take_it_or_leave_it import TakeItOrLeaveIt

__all__ = [
    "Bid",
    "FairQuery",
    "FixedAccuracy",
    "LevelOffers",
    "Purchase",
    "SingleMinded",
    "TakeItOrLeaveIt",
    "offer_per_level",
    "parse_amount",
]
