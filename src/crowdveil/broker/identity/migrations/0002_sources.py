import crowdveil.broker.ids
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('identity', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Source',
            fields=[
                ('id', models.CharField(default=crowdveil.broker.ids.random_id, editable=False, max_length=32, primary_key=True, serialize=False)),
                ('digest', models.CharField(max_length=64)),
                ('failed_sign_ins', models.IntegerField(default=0)),
                ('locked_until', models.DateTimeField(null=True)),
                ('familiar', models.BooleanField(default=False)),
                ('expires', models.DateTimeField()),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sources', to='identity.account')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('account', 'digest'), name='one_source_per_account')],
            },
        ),
    ]
