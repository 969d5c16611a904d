#!/usr/bin/env bash
# versions.sh VERSION...: runs these tests on the API server, scheduler and controllers of other versions of Kubernetes, as 1.33.
# With UPDATE_DOCS=1 it writes a row for each version into docs/compatibility.md.
set -euo pipefail

bin=$PWD/target/controlplane/bin
page=docs/compatibility.md
own=$(sed -n 's|^[[:space:]]*k8s.io/kubernetes v\([0-9.]*\).*|\1|p' tests/controlplane/go.mod | head -n 1)

# before VERSION: the minor version before it, from which an upgrade comes, if it can be built.
before() {
    local before=1.$((${1#1.} - 1))
    [[ ! -f tests/controlplane/versions/$before.mod ]] || echo "$before"
}

# What is tried, by which test, from which version on.
tried() {
    cat <<'END'
installation|install::agreement::the_api_server_accepts_every_field_of_every_way|1.30
installation|install::deadlock::with_all_replicas_gone_nothing_that_is_needed_to_come_back_is_refused|1.30
doctor|lifecycle::doctor::a_healthy_installation_and_one_fault_after_another|1.30
segments|e2e::story::story_1_serves_with_nine_segments_and_completes_when_room_comes|1.30
rollout|rollouts::lockstep::prefill_waits_until_decode_has_caught_up|1.30
rollback|rollouts::rollbacks::a_version_that_does_not_get_ready_goes_back_with_the_other_role_until_the_next_edit|1.30
placement|placement::whatever_is_placed_is_bound_where_it_was_to_go|1.30
elastic groups|elastic::scaling::two_stateful_sets_go_up_to_ten_segments_and_back_to_three_in_their_ratio|1.30
recovery|recovery::losses::a_segment_that_loses_a_pod_is_made_anew_as_a_whole_and_the_others_stay|1.30
containment|install::containment::a_stolen_token_does_no_more_than_rolegate_does|1.30
guard|policies::guard::a_hold_is_opened_only_with_the_right_to|1.30
guard|policies::guard::a_held_pod_stays_who_it_is|1.30
outage|e2e::outage::while_nobody_answers_objects_are_deleted_labelled_and_annotated_all_the_same|1.30
twins|policies::twins::twins_agree_with_the_rules|1.33
hold|policies::hold::a_group_comes_up_under_policies_webhook_and_loop|1.36
upgrade|e2e::api_server::a_run_goes_on_while_the_control_plane_is_upgraded|1.30
devices|devices::the_scheduler_agrees_about_devices|1.37
uninstall|lifecycle::uninstall::nothing_is_held_after_it|1.30
uninstall|install::releases::an_uninstall_lets_go_of_what_is_held_with_rights_that_go_with_it|1.30
END
}

# record VERSION ROW: replaces the version's row of the table, or adds it; rows stay in order.
record() {
    [[ -n "${UPDATE_DOCS:-}" ]] || return 0
    awk -v version="$1" -v row="$2" '
        /^<!-- figures: versions -->$/ { inside = 1 }
        inside && /^\| [0-9]/ {
            split($0, cells, " ")
            if (cells[2] == version) next
            if (!written && cells[2] > version) { print row; written = 1 }
        }
        inside && /^<!-- end of figures -->$/ { if (!written) print row; inside = 0; written = 1 }
        { print }
    ' "$page" >"$page.new"
    mv "$page.new" "$page"
}

status=0
cargo test --locked --test live --no-run
for version in "$@"; do
    if [[ "$own" == "$version".* ]]; then
        patch=$own
        unset ROLEGATE_KUBERNETES
    else
        tests/controlplane/build.sh "versions/$version" "$bin"
        patch=$(sed -n 's|^\(require\)\?[[:space:]]*k8s.io/kubernetes v\([0-9.]*\).*|\2|p' "tests/controlplane/versions/$version.mod" | head -n 1)
        export ROLEGATE_KUBERNETES=$version
    fi
    list=$(tried | awk -F'|' -v version="$version" '$3 <= version')
    ROLEGATE_KUBERNETES_BEFORE=$(before "$version")
    export ROLEGATE_KUBERNETES_BEFORE
    if [[ -n "$ROLEGATE_KUBERNETES_BEFORE" ]]; then
        tests/controlplane/build.sh "versions/$ROLEGATE_KUBERNETES_BEFORE" "$bin"
    else
        list=$(grep -v '^upgrade|' <<<"$list")
    fi
    mapfile -t tests < <(cut -d'|' -f2 <<<"$list")
    log=target/versions-$version.log
    cargo test --locked --test live -- --include-ignored --test-threads="${THREADS:-3}" --exact "${tests[@]}" 2>&1 | tee "$log" || true
    bad=()
    while IFS='|' read -r what name _; do
        [[ "$(sed -n "s/^test $name \(- .*\)\?\.\.\. \(ok\|FAILED\).*/\2/p" "$log")" == ok ]] || bad+=("$what (\`$name\`)")
    done <<<"$list"
    text=$(printf '%s, ' "${bad[@]}")
    text=${text%, }
    good=$((${#tests[@]} - ${#bad[@]}))
    row="| $version | v$patch | $(date +%F) | $good of ${#tests[@]} | ${bad[*]:+$text} |"
    echo "$row"
    record "$version" "$row"
    [[ ${#bad[@]} -eq 0 ]] || status=1
done
exit $status
