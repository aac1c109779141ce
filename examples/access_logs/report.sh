#!/bin/sh
# Turns a web server's access log into a report by day and section of the site.
# Reads data/ beside this script; writes report.tsv and top_pages.tsv into the working folder.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tab=$(printf '\t')

# One line of JSON for each step, for whoever gave us a file to write them to.
step() {
    [ -z "${GOLDEN_STEPS:-}" ] || printf '{"name": "%s", "type": "action", "rows": %d}\n' "$1" "$2" >>"$GOLDEN_STEPS"
}

fail() {
    echo "report.sh: $1" >&2
    exit 1
}

rows() {
    wc -l <"$1" | tr -d ' '
}

# Parse: day, path without its query, status, bytes, visitor. Crawlers are left out, broken lines are put aside.
awk -v OFS="$tab" -v broken="$work/broken" '
    BEGIN {
        split("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec", names, " ")
        for (i in names) month[names[i]] = sprintf("%02d", i)
    }
    NF < 12 || $4 !~ /^\[[0-9][0-9]\/[A-Z][a-z][a-z]\/[0-9]+:/ || $9 !~ /^[1-5][0-9][0-9]$/ { print > broken; next }
    /[Bb]ot\// { next }
    {
        day = substr($4, 9, 4) "-" month[substr($4, 5, 3)] "-" substr($4, 2, 2)
        path = $7
        sub(/\?.*/, "", path)
        print day, path, $9, ($10 == "-" ? 0 : $10), $1
    }
' "$here/data/access.log" >"$work/requests"
touch "$work/broken"
step parse "$(rows "$work/requests")"

total=$(rows "$here/data/access.log")
broken=$(rows "$work/broken")
[ "$total" -gt 0 ] || fail "the log is empty"
[ $((broken * 100)) -lt "$total" ] || fail "$broken of $total lines are broken, more than 1 %"

# Join each request with the section of its page; a path that is no page is "other".
sort -t "$tab" -k 2,2 "$work/requests" >"$work/by_path"
sort -t "$tab" -k 1,1 "$here/data/pages.tsv" >"$work/pages"
join -t "$tab" -1 2 -2 1 -a 1 -e other -o 1.1,2.2,1.3,1.4,1.5,1.2 "$work/by_path" "$work/pages" >"$work/joined"
[ "$(rows "$work/joined")" -eq "$(rows "$work/requests")" ] || fail "data/pages.tsv names a page twice"
step join "$(rows "$work/joined")"

# Sum by day and section.
{
    printf 'day\tsection\trequests\tvisitors\tbytes\terrors\n'
    awk -F "$tab" -v OFS="$tab" '
        {
            key = $1 OFS $2
            requests[key]++
            bytes[key] += $4
            errors[key] += ($3 >= 500)
            if (!seen[key, $5]++) visitors[key]++
        }
        END { for (key in requests) print key, requests[key], visitors[key], bytes[key], errors[key] }
    ' "$work/joined" | sort
} >report.tsv
step summarise "$(rows report.tsv)"

awk -F "$tab" '$3 < 400 { print $6 }' "$work/joined" | sort | uniq -c | sort -k 1,1nr -k 2 | head -n 5 |
    awk -v OFS="$tab" '{ print $2, $1 }' >top_pages.tsv
step rank "$(rows top_pages.tsv)"

# The report must account for every request.
counted=$(awk -F "$tab" 'NR > 1 { sum += $3 } END { print sum }' report.tsv)
[ "$counted" -eq "$(rows "$work/requests")" ] || fail "the report counts $counted requests, the log has $(rows "$work/requests")"
echo "$counted requests, $broken broken lines, $(($(rows report.tsv) - 1)) rows in report.tsv"
