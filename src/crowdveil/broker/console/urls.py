"""The console's addresses."""

from __future__ import annotations

from django.urls import path

from crowdveil.broker.console import assets, plan_preview
from crowdveil.broker.console.views import auth, labels, operator, preview, results, studies

urlpatterns = [
    path("", studies.home),
    path("assets/<str:name>", assets.asset),
    path("sign-in", auth.sign_in_page),
    path("sign-out", auth.sign_out),
    path("language", auth.choose_language),
    path("enrol", auth.enrol_page),
    path("enter/<str:link>", auth.enter),
    path("plan", plan_preview.panel),
    path("preview", preview.preview),
    path("epsilon", studies.epsilon_in_words),
    path("studies/new", studies.edit),
    path("studies/<str:study>", studies.follow),
    path("studies/<str:study>/edit", studies.edit),
    path("studies/<str:study>/progress", studies.live),
    path("studies/<str:study>/results", results.results),
    path("studies/<str:study>/labels/<str:kind>", labels.download),
    path("studies/<str:study>/exports/<int:part>/<str:kind>", results.download),
    path("studies/<str:study>/<str:action>", studies.act),
    path("operator", operator.overview),
    path("operator/invite", operator.invite_somebody),
    path("operator/payouts", operator.make_payout),
    path("operator/payouts/<str:batch>", operator.payout_file),
    path("operator/accounts/<str:account>", operator.change_account),
    path("operator/accounts/<str:account>/reset", operator.reset_account),
    path("<path:address>", auth.nowhere),
]
