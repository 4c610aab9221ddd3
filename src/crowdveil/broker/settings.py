"""The Django settings, read from the environment that `crowdveil serve` prepares."""

from __future__ import annotations

import os
import re
from pathlib import Path

import django

from crowdveil.broker.db.config import database_settings
from crowdveil.errors import InputError

DATA_DIR = Path(os.environ.get("CROWDVEIL_DATA_DIR", "crowdveil-data")).resolve()
DATABASES = {"default": database_settings(os.environ.get("CROWDVEIL_DATABASE", ""), DATA_DIR)}
SECRET_KEY = os.environ.get("CROWDVEIL_SECRET_KEY", "")
DEBUG = False
DEMO = os.environ.get("CROWDVEIL_DEMO") == "1"
ALLOWED_HOSTS = os.environ.get("CROWDVEIL_HOSTS", "localhost,127.0.0.1,[::1]").split(",")
# Believed only where the operator says that a proxy of theirs sets it.
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if os.environ.get("CROWDVEIL_BEHIND_PROXY") == "1" else None
)
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS if host not in ("localhost", "127.0.0.1", "[::1]")]

INSTALLED_APPS = [
    "crowdveil.broker.identity",
    "crowdveil.broker.studies",
    "crowdveil.broker.ledger",
    "crowdveil.broker.payments",
    "crowdveil.broker.submissions",
    "crowdveil.broker.pools",
    "crowdveil.broker.results",
    "crowdveil.broker.audit_log",
    "crowdveil.broker.webhooks",
]
MIDDLEWARE = [
    "crowdveil.broker.middleware.request_log.StructuredLog",
    "crowdveil.broker.middleware.security_headers.SecurityHeaders",
    "crowdveil.broker.middleware.body_limit.BodyLimit",
    "crowdveil.broker.compute_pool.RequestTimeLimit",
    "crowdveil.broker.api.problems.ProblemForMethod",
    "django.middleware.common.CommonMiddleware",
]
ROOT_URLCONF = "crowdveil.broker.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
APPEND_SLASH = False
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LANGUAGE_COOKIE_DAYS = 365
# The second for what is wrong with a password.
LOCALE_PATHS = [Path(__file__).parent / "locale", Path(django.__file__).parent / "contrib" / "auth" / "locale"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent / "console" / "templates"],
        "OPTIONS": {
            "context_processors": ["django.template.context_processors.request"],
            "libraries": {"console": "crowdveil.broker.console.template_filters"},
        },
    }
]
CSRF_COOKIE_SAMESITE = "Strict"
CSRF_COOKIE_PATH = "/console/"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "crowdveil.broker.console.access.csrf_failure"

# Argon2 would be one more dependency; scrypt is in the standard library and memory hard.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher"]
_VALIDATORS = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_VALIDATORS}.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": f"{_VALIDATORS}.CommonPasswordValidator"},
    {"NAME": f"{_VALIDATORS}.NumericPasswordValidator"},
    {"NAME": f"{_VALIDATORS}.UserAttributeSimilarityValidator", "OPTIONS": {"user_attributes": ["name"]}},
]
DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
# The editor posts a dozen fields for each of up to 200 questions.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5000
LOGGING_CONFIG = None

# Privacy and money.
DELTA = "0.000001"
DEFAULT_EPSILON_CAP_NANO = 4_000_000_000
COMMISSION_BASIS_POINTS = int(os.environ.get("CROWDVEIL_COMMISSION_BASIS_POINTS", "1000"))
# An ISO 4217 code; amounts are kept in hundredths of it.
CURRENCY = os.environ.get("CROWDVEIL_CURRENCY", "EUR")
if not re.fullmatch("[A-Z]{3}", CURRENCY):
    raise InputError(f"CROWDVEIL_CURRENCY must be an ISO 4217 code; got {CURRENCY!r}", fix="set it to EUR, for example")
WORKER_TOKEN_DAYS = 365
SESSION_TOKEN_HOURS = 12
# Requests a minute and token; sign-ups a minute and address. 0 switches a limit off.
RATE_LIMIT = int(os.environ.get("CROWDVEIL_RATE_LIMIT", "600"))
SIGN_UP_LIMIT = int(os.environ.get("CROWDVEIL_SIGN_UP_LIMIT", "60"))
BEHIND_PROXY = os.environ.get("CROWDVEIL_BEHIND_PROXY") == "1"
WEBHOOKS_TO_PRIVATE_ADDRESSES = os.environ.get("CROWDVEIL_WEBHOOKS_TO_PRIVATE_ADDRESSES") == "1"
