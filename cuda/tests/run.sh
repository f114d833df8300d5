#!/bin/bash
# Runs C tests, some of them side by side, shows what each says when it has ended, and counts.
#
#   run.sh TITLE absent|failed COUNT TEST...
#
# COUNT: how many at once. A test ends with 0 passed, 1 failed, 77 no device, which is told of apart
# (absent) or as any failure; one that hangs for SECONDS_PER_TEST has failed.
set -euo pipefail

if [ "$1" = --one ]; then # what xargs calls for each
    folder=$2 test=$3 status=0
    timeout "$SECONDS_PER_TEST" "$test" >"$folder/${test//\//_}" 2>&1 || status=$?
    echo "$status" >"$folder/${test//\//_}.status"
    exec flock "$folder" cat "$folder/${test//\//_}"
fi

title=$1 of_absent=$2 count=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '%s\n' "$@" | xargs -P "$count" -I TEST bash "$0" --one "$folder" TEST

passed=0 absent='' failed=''
for test in "$@"; do
    status=$(cat "$folder/${test//\//_}.status" 2>/dev/null || echo 'none')
    if [ "$status" = 0 ]; then
        passed=$((passed + 1))
    elif [ "$status" = 77 ] && [ "$of_absent" = absent ]; then
        absent+=" ${test##*/}"
    else
        failed+=" $test (status $status)"
    fi
done
echo "$title: $passed passed${absent:+; no device for:$absent}${failed:+; FAILED:$failed}"
[ -z "$failed" ]
