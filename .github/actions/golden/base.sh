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
export GIT_TERMINAL_PROMPT=0
if ! git fetch --quiet --no-tags "${depth[@]}" origin "+refs/heads/$BRANCH:$ref"; then
  echo "::warning title=golden base::the base branch cannot be fetched: give actions/checkout fetch-depth: 0"
fi
