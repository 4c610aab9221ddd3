from typing import Any

from django.db import migrations, models


def keep_what_was_shown_last(apps: Any, schema_editor: Any) -> None:
    """The newest batch of a closed study is its last: making another one would show who withdrew since."""
    here = schema_editor.connection.alias
    studies, batches = (apps.get_model(*name).objects.using(here) for name in (("studies", "Study"), ("results", "Batch")))
    for study in studies.filter(state__in=("closed", "published")).values_list("id", flat=True):
        last = batches.filter(study=study).order_by("-number").first()
        if last is not None:
            batches.filter(id=last.id).update(final=True)


class Migration(migrations.Migration):
    dependencies = [
        ("results", "0001_initial"),
        ("studies", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="batch",
            name="final",
            field=models.BooleanField(default=False),
        ),
        migrations.RunPython(keep_what_was_shown_last, migrations.RunPython.noop),
    ]
