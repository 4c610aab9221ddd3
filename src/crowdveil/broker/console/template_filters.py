"""Filters for the console's templates."""

from __future__ import annotations

from django import template

from crowdveil.broker.console.i18n import formatting, translate

register = template.Library()
register.filter("day", formatting.day)
register.filter("money", formatting.money)
register.filter("percent", formatting.percent)
register.filter("word", formatting.word)
register.filter("localize_numbers", formatting.localize_numbers)
register.filter("render_sentence", translate.render_sentence)
