# Adds up what tests cost: ledger.awk costs.tsv LOG... LEDGER...
#   costs.tsv  suite, seconds by the clock, seconds of processors
#   LOG        output of a target: `test NAME ... ok <SECONDSs>`
#   LEDGER     test, subject, number (tests/common/ledger.rs; `-` for the control planes themselves)

BEGIN { FS = "\t" }

FILENAME ~ /costs\.tsv$/ { order[++suites] = $1; clock[$1] = $2; processors[$1] = $3; next }
FILENAME ~ /\.log$/ {
    if ($0 ~ /^test .* <[0-9.]+s>$/) {
        split($0, words, " ")
        seconds[words[2]] = substr($0, index($0, "<") + 1) + 0
    }
    next
}

$1 != "-" { counted[$1, $2] += $3 }
{ whole[$2] += $3; subjects[$2] }

# Prints the twenty largest of an array, the largest first.
function dearest(values, shown,    name, best) {
    for (shown = 0; shown < 20; shown++) {
        best = ""
        for (name in values) if (!(name in told) && (best == "" || values[name] > values[best])) best = name
        if (best == "") return
        told[best]
        printf "%8.1f %7d %7d %9d %8d %8d  %s\n", values[best], counted[best, "planes"], counted[best, "stages"], \
            counted[best, "rolegates"], counted[best, "kubectl"], counted[best, "commands"], best
    }
}

END {
    print " seconds  planes  stages rolegates  kubectl commands  dearest tests"
    dearest(seconds)
    print ""
    for (subject in subjects) printf "%s %.0f%s", subject, whole[subject], subject ~ /^(cpu|orphaned)/ ? " s, " : ", "
    print "in all"
    print ""
    print "   clock  processors (minutes)  suite"
    for (i = 1; i <= suites; i++) printf "%8.1f  %8.1f              %s\n", clock[order[i]] / 60, processors[order[i]] / 60, order[i]
}
