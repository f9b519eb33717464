from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel("Account", [("id", models.AutoField(primary_key=True)), ("name", models.CharField(max_length=50))]),
        migrations.CreateModel("Label", [("id", models.AutoField(primary_key=True)), ("name", models.CharField(max_length=50))]),
        migrations.CreateModel(
            "Entry",
            [
                ("id", models.BigAutoField(primary_key=True)),
                ("account", models.ForeignKey("ledger.account", models.CASCADE)),
                ("before", models.ForeignKey("ledger.entry", models.CASCADE, null=True)),
                ("labels", models.ManyToManyField("ledger.label")),
                ("amount", models.IntegerField()),
            ],
        ),
    ]
