#!/usr/bin/env bash
# Runs the gate, and leaves its exit code to the last step: reports and journal are kept whatever the verdict is.
set -euo pipefail

reports="$(mktemp -d "$RUNNER_TEMP/golden-reports.XXXXXX")"
command=() given=() options=(--golden-sandbox "$SANDBOX" --golden-floor "$FLOOR")
read -r -a command <<<"$PYTEST"
mapfile -d '' -t given < <(xargs -r printf '%s\0' <<<"$ARGUMENTS")
if [ -n "$BASE" ]; then
  options+=(--golden-base "$BASE")
fi
code=0
"${command[@]}" --golden "${options[@]}" \
  --golden-json "$reports/golden-report.json" \
  --golden-html "$reports/golden-report.html" \
  --golden-junit "$reports/golden-junit.xml" \
  "${given[@]}" || code=$?
cp "$GITHUB_STEP_SUMMARY" "$reports/golden-summary.md"
{
  echo "exit-code=$code"
  echo "reports=$reports"
} >>"$GITHUB_OUTPUT"
