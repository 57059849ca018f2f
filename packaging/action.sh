#!/usr/bin/env bash
# The measurement of the GitHub Action (action.yml): one interleaved run of `narrows try`. Its table goes to the job's summary, its
# verdicts become annotations, and the exit code is that of the run: 3 if a condition of INPUT_FAIL_IF is met or cannot be judged, 4
# if one is inconclusive.
#
# It can be run by hand, with `narrows` in PATH and these variables:
#   INPUT_COMMAND       what to compare, one command or URL a line; with a base it is one command, in the builds of two commits
#   INPUT_BASE          the commit that others are set beside; empty: see PULL_REQUEST_BASE
#   INPUT_HEAD          the commit to judge [default: PULL_REQUEST_HEAD, or HEAD]
#   INPUT_BUILD         the command that builds a commit
#   INPUT_FIGURE        what to compare, as in `try --figure`
#   INPUT_FAIL_IF       conditions, as in `try --fail-if`
#   INPUT_ARGS          more arguments of `try`, quoted as in a shell; nothing in them is expanded
#   PULL_REQUEST_BASE, PULL_REQUEST_HEAD  the commits of a pull request: the base is where the second left the first
#   GITHUB_STEP_SUMMARY, GITHUB_OUTPUT    the files that GitHub reads; without them, the table is printed and nothing else
set -euo pipefail

die() {
    echo "::error title=narrows::$*" >&2
    exit 2
}

# commit NAME: the full hash, so that no name can be taken for an option.
commit() {
    git rev-parse --verify --quiet --end-of-options "$1^{commit}" ||
        die "there is no commit $1 here: check out with fetch-depth: 0, so that both commits are there"
}

arms=()
while IFS= read -r line; do
    [ -z "${line//[[:space:]]/}" ] || arms+=("$line")
done <<<"${INPUT_COMMAND:-}"
[ ${#arms[@]} -gt 0 ] || die "the input command is empty: give a command such as ./server --port {port}"

words=()
base=${INPUT_BASE:-}
if [ -n "$base" ] || { [ -n "${PULL_REQUEST_BASE:-}" ] && [ ${#arms[@]} = 1 ]; }; then
    head=$(commit "${INPUT_HEAD:-${PULL_REQUEST_HEAD:-HEAD}}")
    if [ -z "$base" ]; then
        base=$(commit "$PULL_REQUEST_BASE")
        base=$(git merge-base "$base" "$head") || die "the base and the head have no commit in common"
    fi
    base=$(commit "$base")
    words+=(--git "$base..$head")
    [ -z "${INPUT_BUILD:-}" ] || words+=(--build "$INPUT_BUILD")
fi
[ ${#words[@]} -gt 0 ] || [ -z "${INPUT_BUILD:-}${INPUT_HEAD:-}" ] ||
    die "the inputs build and head need a base, and one command: set the input base"
[ -z "${INPUT_FIGURE:-}" ] || words+=(--figure "$INPUT_FIGURE")
[ -z "${INPUT_FAIL_IF:-}" ] || words+=(--fail-if "$INPUT_FAIL_IF")
# xargs knows quotes, and unlike eval it runs nothing.
more=$(xargs -r printf '%s\n' <<<"${INPUT_ARGS:-}") || die "the input args has a quote without its end"
while IFS= read -r word; do
    [ -z "$word" ] || words+=("$word")
done <<<"$more"

store=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/narrows.XXXXXX")/narrows.db
code=0
narrows try "${words[@]}" --store "$store" --quiet --format github -- "${arms[@]}" || code=$?
# A run that never began has left no store, and said why.
if [ -f "$store" ] && narrows report last --store "$store"; then
    narrows report last --store "$store" --format markdown >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
    echo "store=$store" >>"${GITHUB_OUTPUT:-/dev/null}"
fi
rmdir "$(dirname "$store")" 2>/dev/null || true # Nothing is in it if there was no run.
exit $code
