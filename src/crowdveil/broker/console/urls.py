"""The console's addresses."""

from __future__ import annotations

from django.urls import path

from crowdveil.broker.console import assets, entering, operating, planning, previewing, showing, studies

urlpatterns = [
    path("", studies.home),
    path("assets/<str:name>", assets.asset),
    path("sign-in", entering.sign_in_page),
    path("sign-out", entering.sign_out),
    path("language", entering.choose_language),
    path("enrol", entering.enrol_page),
    path("enter/<str:link>", entering.enter),
    path("plan", planning.panel),
    path("preview", previewing.preview),
    path("epsilon", studies.epsilon_in_words),
    path("studies/new", studies.edit),
    path("studies/<str:study>", studies.follow),
    path("studies/<str:study>/edit", studies.edit),
    path("studies/<str:study>/progress", studies.live),
    path("studies/<str:study>/results", showing.results),
    path("studies/<str:study>/exports/<int:part>/<str:kind>", showing.download),
    path("studies/<str:study>/<str:action>", studies.act),
    path("operator", operating.overview),
    path("operator/invite", operating.invite_somebody),
    path("operator/payouts", operating.make_payout),
    path("operator/payouts/<str:batch>", operating.payout_file),
    path("operator/accounts/<str:account>", operating.change_account),
    path("operator/accounts/<str:account>/reset", operating.reset_account),
    path("<path:address>", entering.nowhere),
]
