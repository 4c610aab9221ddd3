#!/bin/sh
# Run once by the PostgreSQL image, as its superuser: the broker's role and database, and no values in PostgreSQL's log.
set -eu
psql --set=ON_ERROR_STOP=1 --set=password="$BROKER_PASSWORD" --username "${POSTGRES_USER:-postgres}" \
    --dbname postgres <<'SQL'
CREATE ROLE crowdveil LOGIN CREATEROLE PASSWORD :'password';
CREATE DATABASE crowdveil OWNER crowdveil;
ALTER DATABASE crowdveil SET log_min_error_statement = panic;
ALTER DATABASE crowdveil SET log_error_verbosity = terse;
ALTER DATABASE crowdveil SET log_statement = none;
ALTER DATABASE crowdveil SET log_min_duration_statement = -1;
SQL
