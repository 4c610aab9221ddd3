"""What mean and median share: a centre of each question's numbers, found at once, and an interval around it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from crowdveil.estimate import Estimate
from crowdveil.inference.base import WithoutIteration
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.estimation import from_columns
from crowdveil.inference.models.question_level import CentreModel, Found
from crowdveil.inference.protocols import Closing, Columns, Context, Parameters, Rows, Statistics
from crowdveil.inference.uncertainty.information_floor import number_judgement, number_tally
from crowdveil.reports import Reports


@dataclass(frozen=True, slots=True, kw_only=True)
class Centring(WithoutIteration):
    """A method that says where the centres are; with `as_answers` the channel's noise is left in, as the papers do."""

    numeric: ClassVar[bool] = True
    max_iter: ClassVar[int] = 1

    as_answers: bool = False

    @abstractmethod
    def centres(self, rows: Rows, context: Context) -> Found:
        """The centres, and how they vary."""

    def model(self, context: Context) -> CentreModel:
        return CentreModel(context, self)

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        return from_columns(self, reports, self.model(table_context(reports)).at_once(reports))

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        return number_tally(rows, columns, context, as_answers=self.as_answers)

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        return Closing(judgement=number_judgement(tally, context))
