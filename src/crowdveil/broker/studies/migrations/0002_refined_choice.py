from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="study",
            name="group_size",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="study",
            name="batch_chosen_by",
            field=models.IntegerField(default=0),
        ),
    ]
