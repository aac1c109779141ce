#!/usr/bin/env bash
# Gives the ref to compare with, and fetches it where it is not here. What cannot be fetched the gate refuses by itself.
set -euo pipefail

if [ -n "$GIVEN" ]; then
  echo "ref=$GIVEN" >>"$GITHUB_OUTPUT"
  exit 0
elif [ -z "$BRANCH" ]; then
  echo "golden: no pull request and no base given, so the floor is not compared"
  exit 0
fi
ref="refs/remotes/origin/$BRANCH"
echo "ref=$ref" >>"$GITHUB_OUTPUT"
if git rev-parse --verify --quiet "$ref^{commit}" >/dev/null; then
  exit 0
fi
depth=()
if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
  depth=(--depth=1)
fi
# A checkout without persisted credentials cannot read a private repository. Never on the command line, which others can see.
server="${GITHUB_SERVER_URL:-https://github.com}"
header="http.$server/.extraheader"
# The empty one takes away what the checkout may have left: GitHub refuses a request with two of them.
export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0="$header" GIT_CONFIG_VALUE_0="" GIT_CONFIG_KEY_1="$header"
GIT_CONFIG_VALUE_1="AUTHORIZATION: basic $(printf 'x-access-token:%s' "$TOKEN" | base64 | tr -d '\n')"
export GIT_CONFIG_VALUE_1
if ! git fetch --quiet --no-tags "${depth[@]}" origin "+refs/heads/$BRANCH:$ref"; then
  echo "::warning title=golden base::the base branch cannot be fetched: give actions/checkout fetch-depth: 0"
fi
