#!/usr/bin/env bash
# Build the bookmarks page, airflow_bookmarks/plugin/www/dist, with the Node.js of .venv. A call with nothing to do
# returns at once. `tools/page.sh check` looks at types and style and runs the page's own tests instead;
# `tools/page.sh is-built` only says whether there is nothing to do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly VENV="${VENV:-.venv}"
readonly PAGE=airflow_bookmarks/plugin/www
readonly BUNDLE="$PAGE/dist/main.js" STAMP="$PAGE/node_modules/.built"
PATH="$PWD/$VENV/bin:$PATH"

# What decides what gets built; the version stands in no file of the page.
fingerprint() {
    { cat docs/openapi.json; find "$PAGE" \( -name node_modules -o -name dist -o -name schema.d.ts \) -prune -o -type f -print | LC_ALL=C sort | xargs cat; } | cksum
}

is_built() {
    [[ -f "$BUNDLE" && -f "$STAMP" && "$(cat "$STAMP")" == "$(fingerprint)" ]]
}

install_packages() {
    local -r stamp="$PAGE/node_modules/.installed" pinned="$PAGE/package-lock.json"
    if [[ ! -f "$stamp" ]] || ! cmp --silent "$pinned" "$stamp"; then
        echo "page: installing what $pinned pins"
        # Not `npm ci`: it asks for the builds of every platform, which not every registry has.
        (cd "$PAGE" && npm install --no-save --silent --no-progress)
        cp "$pinned" "$stamp"
    fi
    (cd "$PAGE" && npm run --silent types)
}

if [[ "${1:-build}" == is-built ]]; then
    is_built && exit 0
    echo "page: $BUNDLE is missing or older than its sources. Run 'make page'." >&2
    exit 1
fi
if [[ "${1:-build}" == check ]]; then
    install_packages
    cd "$PAGE"
    npm run --silent check
    npm run --silent test
    exit 0
fi
is_built && exit 0
install_packages
(cd "$PAGE" && npm run --silent build -- --logLevel warn)
fingerprint >"$STAMP"
echo "page: built $BUNDLE, $(gzip -c "$BUNDLE" | wc -c | awk '{ printf "%.0f", $1 / 1000 }') kB gzipped"
