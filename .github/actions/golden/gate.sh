#!/usr/bin/env bash
# Runs the gate, and leaves its exit code to the last step: reports and journal are kept whatever the verdict is.
set -euo pipefail

reports="$(mktemp -d "$RUNNER_TEMP/golden-reports.XXXXXX")"
command=() given=()
read -r -a command <<<"$PYTHON"
python=("${command[@]}")
# What cannot be read is no run: a gate without the option that was meant may be green where it should not be.
if ! python3 -I -c 'import os, shlex; print(end="".join(f"{word}\0" for word in shlex.split(os.environ["ARGUMENTS"])))' \
  >"$RUNNER_TEMP/golden-arguments" 2>/dev/null; then
  echo "::error title=golden arguments::the input arguments cannot be read: it is not quoted as in a shell"
  exit 4
fi
mapfile -d '' -t given <"$RUNNER_TEMP/golden-arguments"
if [ -n "$BASE" ]; then
  # The base judges: nothing of the change runs outside of the seal, not even a module in the current folder (-P).
  command+=(-P -s -m pytest_golden gate --base "$BASE" --floor "$FLOOR" --)
else
  command+=(-m pytest --golden)
fi
if [ "$ATTEST" = true ]; then
  export GOLDEN_ATTEST="$reports/golden-attestation.json" GOLDEN_ATTEST_KEY=none
fi
if [ "$FLOOR" = accept ]; then
  echo "::notice title=golden floor::$PERSON accepts a weakened floor of this commit"
fi
code=0
# What a later step reads is not for pipelines, whatever passes them variables.
env -u GITHUB_ENV -u GITHUB_PATH -u GITHUB_OUTPUT -u GITHUB_STATE "${command[@]}" --golden-sandbox "$SANDBOX" \
  --golden-json "$reports/golden-report.json" \
  --golden-html "$reports/golden-report.html" \
  --golden-junit "$reports/golden-junit.xml" \
  "${given[@]}" || code=$?
# Where no base judges, a conftest can end pytest with 0 before anything has run. So green is only what has a report that says so.
if [ "$code" = 0 ] && ! python3 -I - "$reports/golden-report.json" "$BASE" 2>/dev/null <<'CHECK'; then
import json, sys
report, base = json.load(open(sys.argv[1], encoding="utf-8")), sys.argv[2]
empty_shard = report["final_status"] == "nothing_ran" and report["gate"]["shard"]
sys.exit(not (report["final_status"] == "passed" or empty_shard) or bool(base and not report["gate"]["floor_base"]))
CHECK
  echo "::error title=golden gate::pytest ended with 0, but left no report of a gate that passed: something in this change keeps it from running"
  code=3
fi
touch "$GITHUB_STEP_SUMMARY"
# A look without a verdict: whatever becomes of it, the gate has ended.
if [ "$DATA_DIFF" = true ] && [ -n "$BASE" ]; then
  own=()
  for word in "${given[@]}"; do
    # Pipelines of the change run in the environment that has its own code.
    if [[ "$word" == --golden-python=* ]]; then own=("--python=${word#*=}"); fi
  done
  env -u GITHUB_ENV -u GITHUB_PATH -u GITHUB_OUTPUT -u GITHUB_STATE GOLDEN_SANDBOX="$SANDBOX" \
    "${python[@]}" -P -s -m pytest_golden diff "$BASE" "${own[@]}" --html "$reports/golden-data.html" ||
    echo "::notice title=golden diff::what the change does to the data could not be told: the log says why"
fi
cp "$GITHUB_STEP_SUMMARY" "$reports/golden-summary.md"
{
  echo "exit-code=$code"
  echo "reports=$reports"
} >>"$GITHUB_OUTPUT"
