"""`crowdveil` as a user starts it, but for one thing: passwords are hashed quickly, since tests make hundreds."""

from __future__ import annotations

from django.contrib.auth.hashers import ScryptPasswordHasher

from crowdveil.cli import main

ScryptPasswordHasher.work_factor = 2
main()
