#!/usr/bin/env bash
# Have PostgreSQL and MariaDB for tests of databases: those that are there, else, as root, those of the system's packages.
# Where they can't be had those tests are skipped, and say so; with CI or REQUIRE_DATABASES in the environment they fail.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

found() {
    "${VENV:-.venv}/bin/python" -c 'import sys; from tools.servers import has_databases; sys.exit(not has_databases())'
}

# Whoever holds the lock of packages, such as the same step of another clone, is waited for.
install() {
    [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null || return 1
    echo "databases: installing the packages of PostgreSQL and MariaDB"
    # Without this file the package of PostgreSQL makes and starts a server of its own.
    mkdir -p /etc/postgresql-common/createcluster.d
    echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/airflow-bookmarks.conf
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install --yes --quiet --no-install-recommends \
        postgresql mariadb-server-core mariadb-client-core
}

found && exit 0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ install || { apt-get update && install; }; } >"$log" 2>&1 || tail -n 3 "$log" >&2
found && exit 0
echo "databases: PostgreSQL or MariaDB is missing, and was not installed: the tests of databases will be skipped." \
    "Install both ('apt-get install postgresql mariadb-server-core mariadb-client-core'," \
    "'brew install postgresql mariadb')." >&2
