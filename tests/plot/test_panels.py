"""Panels show every series, their baselines and the claimed ε."""

from __future__ import annotations

import pytest

from crowdveil.errors import InputError
from crowdveil.plot import Panel, Series, panels


def test_claimed_epsilons_are_drawn_hollow_beside_the_exact_ones() -> None:
    panel = Panel(
        "t", "exact ε", "MAE", [Series("RR", [1.0, 2.0], [3.0, 2.0], claimed=[0.5, 1.0])], {"no privacy": 1.0}
    )
    axes = panels([panel], caption="c").axes[0]
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_xdata()) for line in hollow] == [[0.5, 1.0]]
    assert "no privacy" in axes.get_legend_handles_labels()[1]


def test_a_method_keeps_its_colour_in_every_panel() -> None:
    first = Panel("a", "x", "y", [Series("LP", [1], [1]), Series("RR", [1], [2])])
    second = Panel("b", "x", "y", [Series("RR", [1], [2])])
    figure = panels([first, second], caption="c")
    assert figure.axes[0].lines[1].get_color() == figure.axes[1].lines[0].get_color()


def test_a_series_needs_one_y_for_each_x() -> None:
    with pytest.raises(InputError, match="one y for each x"):
        Series("RR", [1.0, 2.0], [1.0])
    with pytest.raises(InputError, match="at least one panel"):
        panels([], caption="")


def test_a_claim_that_is_exact_keeps_its_filled_mark() -> None:
    panel = Panel("t", "exact ε", "MAE", [Series("RR", [1.0, 4.0], [3.0, 2.0], claimed=[1.0, 2.0])], log_x=True)
    axes = panels([panel], caption="c").axes[0]
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_xdata()) for line in hollow] == [[2.0]]
    assert list(axes.get_xticks()) == [1.0, 2.0, 4.0]


def test_the_legend_lists_series_before_baselines_in_the_order_given() -> None:
    bars = [Series("before", [0], [1], kind="bars"), Series("share", [0], [0.5], kind="points")]
    figure = panels([Panel("t", "x", "y", bars, {"coin": 0.5}, categories=["a"])], caption="c")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["before", "share", "coin"]


def test_an_error_of_nothing_is_not_hidden_by_the_axis() -> None:
    axes = panels([Panel("t", "x", "y", [Series("a", [1, 2], [0.0, 1.0])])], caption="c").axes[0]
    assert axes.get_ylim()[0] < 0
