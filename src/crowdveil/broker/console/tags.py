"""Filters for the console's templates."""

from __future__ import annotations

from django import template

from crowdveil.broker.console import speech, words

register = template.Library()
register.filter("day", words.day)
register.filter("money", words.money)
register.filter("percent", words.percent)
register.filter("word", words.word)
register.filter("localized", words.localized)
register.filter("spoken", speech.spoken)
