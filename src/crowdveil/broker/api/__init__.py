"""The JSON API: thin, typed, documented by OpenAPI 3.1; every refusal is a problem+json."""
