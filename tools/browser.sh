#!/usr/bin/env bash
# Have a Chromium for the tests of the page: one that is there, else, as root, that of the system's packages. Where none
# can be had those tests are skipped, and say so; with CI or REQUIRE_CHROMIUM in the environment they fail.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

found() {
    "${VENV:-.venv}/bin/python" -c 'import sys; from tests.ui.chromium import find; sys.exit(find() is None)'
}

# Whoever holds the lock of packages, such as the same step of another clone, is waited for.
install() {
    [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null || return 1
    echo "browser: installing the package chromium"
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install --yes --quiet --no-install-recommends chromium
}

found && exit 0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ install || { apt-get update && install; }; } >"$log" 2>&1 || tail -n 3 "$log" >&2
found && exit 0
echo "browser: no Chromium is on PATH or in \$CHROMIUM, and none was installed: the tests of the page will be skipped." \
    "Install one ('apt-get install chromium', 'brew install --cask chromium'), or name its program with CHROMIUM=." >&2
