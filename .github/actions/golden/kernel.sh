#!/usr/bin/env bash
# Ubuntu 24.04 forbids unprivileged user namespaces, of which the overlay and the seal are made.
set -euo pipefail
switch=kernel.apparmor_restrict_unprivileged_userns

if [ "$(sysctl -n "$switch" 2>/dev/null || echo 0)" != 1 ]; then
  echo "golden: this kernel does not restrict unprivileged user namespaces, nothing is to be set"
elif [ "$(id -u)" = 0 ] && sysctl -q -w "$switch=0" 2>/dev/null; then
  echo "::notice title=golden sandbox::$switch was set to 0 for this job: the seal is made of user namespaces"
elif command -v sudo >/dev/null && sudo -n sysctl -q -w "$switch=0" 2>/dev/null; then
  echo "::notice title=golden sandbox::$switch was set to 0 for this job by sudo: the seal is made of user namespaces"
else
  echo "::warning title=golden sandbox::$switch cannot be set to 0 here (no sudo, or a container): pipelines run in a private copy, without a seal"
fi
