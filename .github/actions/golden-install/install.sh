#!/usr/bin/env bash
# Installs from the base of a pull request; from the checkout where there is none, or where the base has no golden projects.
set -euo pipefail

place=.
if [ -n "$BRANCH" ] && base="$(git merge-base "refs/remotes/origin/$BRANCH" HEAD)"; then
  git worktree add --quiet --detach "$RUNNER_TEMP/golden-base" "$base"
  if [ -e "$RUNNER_TEMP/golden-base/$FOLDER/golden_projects.yaml" ]; then
    place="$RUNNER_TEMP/golden-base"
  fi
elif [ -n "$BRANCH" ]; then
  echo "::error title=golden install::the base branch $BRANCH is not here: give actions/checkout fetch-depth: 0"
  exit 3
fi
(cd "$place/$FOLDER" && bash -euo pipefail -c "$INSTALL")
# Where pipelines import what the repository builds, they would import it from the base, and whatever the change breaks would be green.
if [ "$place" != . ] && [ -z "$INSTALL_HEAD" ]; then
  found="$(python -I -c 'import importlib.metadata, sys
texts = ((one.metadata["Name"], one.read_text("direct_url.json") or "") for one in importlib.metadata.distributions())
print(*sorted({name for name, text in texts if sys.argv[1] in text}))' "$place")"
  if [ -n "$found" ]; then
    echo "::error title=golden install::$found was installed from the base, so pipelines would not run the change: give install-head too"
    exit 3
  fi
fi
if [ -n "$INSTALL_HEAD" ]; then
  python -m venv "$RUNNER_TEMP/golden-head"
  (
    cd "$FOLDER"
    PATH="$RUNNER_TEMP/golden-head/bin:$PATH"
    env -u GITHUB_ENV -u GITHUB_PATH -u GITHUB_OUTPUT -u GITHUB_STATE bash -euo pipefail -c "$INSTALL_HEAD"
  )
  echo "arguments=--golden-python=$RUNNER_TEMP/golden-head/bin/python" >>"$GITHUB_OUTPUT"
fi
