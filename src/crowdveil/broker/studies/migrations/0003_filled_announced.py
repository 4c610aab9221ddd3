from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0002_refined_choice"),
    ]

    operations = [
        migrations.AddField(
            model_name="study",
            name="filled_announced",
            field=models.BooleanField(default=False),
        ),
    ]
