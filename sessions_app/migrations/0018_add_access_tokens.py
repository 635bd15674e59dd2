"""Tokens for the API, and the keys under which its answers are remembered."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import sessions_app.models.ids


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("sessions_app", "0017_index_facets"),
    ]

    operations = [
        migrations.CreateModel(
            name="AccessToken",
            fields=[
                ("id", models.UUIDField(default=sessions_app.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("scopes", models.JSONField(default=list)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("hint", models.CharField(max_length=16)),
                ("created_by", models.CharField(blank=True, max_length=150)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="access_tokens", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(condition=models.Q(("revoked_at__isnull", True)), fields=("name",), name="access_token_name"),
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("fingerprint", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField(default=0)),
                ("body", models.TextField(blank=True)),
                ("location", models.CharField(blank=True, max_length=300)),
                ("created_at", models.DateTimeField(db_index=True)),
            ],
        ),
    ]
