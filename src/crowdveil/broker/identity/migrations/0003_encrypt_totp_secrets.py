"""Encrypt the secrets of authenticators that were stored as they are."""

from typing import Any

from django.db import migrations, models

from crowdveil.broker.identity.totp_secrets import encrypt_plain_secrets


def encrypt(apps: Any, schema_editor: Any) -> None:
    encrypt_plain_secrets(apps.get_model("identity", "Account"))


class Migration(migrations.Migration):
    dependencies = [("identity", "0002_sources")]
    operations = [
        migrations.AlterField("account", "totp_secret", models.CharField(blank=True, max_length=128)),
        migrations.RunPython(encrypt, migrations.RunPython.noop, elidable=False),
    ]
