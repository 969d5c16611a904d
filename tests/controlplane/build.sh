#!/bin/sh
# Builds the control plane's binaries and the tools of tests: build.sh [rig|addons|tools|promtool|all|neighbours[/NAME]|versions/MINOR] [OUTDIR]
# See README.md. Does nothing, quickly, when OUTDIR is up to date.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
what=${1:-all}
out=${2:-$here/../../target/controlplane/bin}

say() { echo "controlplane: $*" >&2; }
die() { say "$*"; exit 1; }

case $what in
rig | addons | tools | promtool) targets=$what ;;
all) targets="rig addons tools" ;;
neighbours) targets=$(cd "$here" && ls -d neighbours/*/ | sed 's|/$||') ;;
neighbours/*) targets=$what && [ -f "$here/$what/programs" ] || die "there is no $what" ;;
versions/*) targets=$what && [ -f "$here/$what.mod" ] || die "there is no $what" ;;
*) die "usage: build.sh [rig|addons|tools|promtool|all|neighbours[/NAME]|versions/MINOR] [OUTDIR]" ;;
esac

command -v go >/dev/null || die "the Go toolchain is not installed (go.mod says which version is needed)"
command -v flock >/dev/null || die "flock (package util-linux) is not installed"

# A toolchain of another version is not downloaded behind the user's back, and
# the versions are those of go.mod and go.sum whatever the environment says.
export CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off GOFLAGS=
# Compilers live for seconds: one that collects less of its garbage takes a tenth less time.
export GOGC="${GOGC:-400}"
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"

# stamp_of TARGET covers everything the result depends on. The tools are a module of their own, as each neighbour is; what
# is needed for neighbours alone may change in this script without a build of all the others.
stamp_of() {
	{
		go version
		case $1 in
		tools | promtool) find tools -type f ;;
		neighbours/*) find "$1" -type f ;;
		versions/*) find versions/main.go "$1.mod" "$1.sum" ;;
		*) find . \( -path ./tools -o -path ./neighbours -o -path ./versions \) -prune -o -type f -print ;;
		esac | grep -E '(\.go|\.tmpl|/go\.(mod|sum)|/programs|/files|^versions/.*)$' | LC_ALL=C sort | xargs sha256sum
		sed -n '/^go_build()/,/^}/p' build.sh
	} | sha256sum | cut -d' ' -f1
}

# flags_of GO.MOD: Kubernetes' version is given at link time; without it kubectl
# and /version would speak of v0.0.0.
flags_of() {
	version=$(sed -n 's|^\(require\)\{0,1\}[[:space:]]*k8s.io/kubernetes \(v[0-9.]*\).*|\2|p' "$1" | head -n 1)
	[ -n "$version" ] || die "$1 does not name a version of k8s.io/kubernetes"
	major=${version#v}
	minor=${major#*.}
	major=${major%%.*}
	minor=${minor%%.*}
	ldflags="-s -w"
	for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		ldflags="$ldflags -X $p.gitVersion=$version -X $p.gitMajor=$major -X $p.gitMinor=$minor -X $p.gitTreeState=clean"
	done
}
flags_of go.mod

# go_build NAME DIR PACKAGE [TAGS]: shows how far a long build is.
go_build() {
	log=$out/.$1.build.log
	start=$(date +%s)
	# Nobody debugs these: without DWARF the compilers take a seventh less time.
	go build -C "$2" -v -mod=readonly -buildvcs=false -trimpath -gcflags=all=-dwarf=false -tags "${4:-}" -ldflags "$ldflags" \
		-o "$out/.$1.new" "$3" 2>"$log" &
	pid=$!
	trap 'kill $pid 2>/dev/null || :; exit 130' INT TERM
	ticks=0
	while kill -0 $pid 2>/dev/null; do
		sleep 0.5
		ticks=$((ticks + 1))
		if [ $((ticks % 30)) -eq 0 ]; then
			say "building $1: $(($(date +%s) - start)) s, $(grep -cv '^go: ' "$log" || :) packages compiled"
		fi
	done
	status=0
	wait $pid || status=$?
	trap - INT TERM
	if [ $status -ne 0 ]; then
		grep -v '^[a-zA-Z0-9./_-]*$' "$log" | tail -n 30 >&2
		die "building $1 failed (full output: $log)"
	fi
	mv "$out/.$1.new" "$out/$1"
	say "built $1 in $(($(date +%s) - start)) s ($(grep -cv '^go: ' "$log" || :) packages compiled)"
}

# copy_files FROM-DIR TO-DIR PATTERN...: files of other projects which are
# needed at run time are taken from their modules and not kept in this repository.
copy_files() {
	from=$1 to=$2
	shift 2
	rm -rf "$to"
	mkdir -p "$to"
	for pattern in "$@"; do
		for f in "$from"/$pattern; do
			[ -f "$f" ] || die "$f is missing"
			install -m 644 "$f" "$to/"
		done
	done
}

module_dir() {
	# No build brings a module of which only files are needed.
	go mod download "$1" && dir=$(go list -mod=readonly -m -f '{{.Dir}}' "$1") && [ -n "$dir" ] ||
		die "module $1 is not available"
	echo "$dir"
}

copy_addon_files() {
	dir=$(module_dir github.com/cert-manager/cert-manager)
	copy_files "$dir/deploy/crds" "$out/cert-manager/crds" '*.yaml'
	dir=$(module_dir sigs.k8s.io/lws)
	copy_files "$dir/config/crd/bases" "$out/lws/crds" '*.yaml'
	copy_files "$dir/config/webhook" "$out/lws/webhook" manifests.yaml mutating-patch.yaml validating-patch.yaml
}

# build_neighbour neighbours/NAME: what its file `programs` lists (name, package) and its file `files` (module, folder in it,
# folder under OUTDIR/neighbours/NAME, patterns); lines that begin with # are comments.
build_neighbour() {
	mkdir -p "$out/$1"
	grep -v '^#' "$1/programs" | while read -r name package; do
		go_build "$name" "$1" "$package" </dev/null
		mv "$out/$name" "$out/$1/$name"
	done
	[ ! -f "$1/files" ] || grep -v '^#' "$1/files" | while read -r module from to patterns; do
		dir=$(cd "$1" && module_dir "$module" </dev/null)
		# shellcheck disable=SC2086 # patterns are several
		copy_files "$dir/$from" "$out/$1/$to" $patterns
	done
}

# build_version versions/MINOR: the programs of Kubernetes of another version, each with modules of its own (MINOR.mod) but
# the same few lines.
build_version() {
	mkdir -p "$out/versions"
	flags_of "$1.mod"
	GOFLAGS=-modfile=${1#versions/}.mod
	go_build "kubernetes-${1#versions/}" versions .
	mv "$out/kubernetes-${1#versions/}" "$out/$1"
}

for t in $targets; do
	binaries=$t
	case $t in
	tools) binaries=helm ;;
	neighbours/*) binaries=$(sed -n "s|^\([^# ][^ ]*\) .*|$t/\1|p" "$t/programs") ;;
	esac
	mark=$out/.$(echo "$t" | tr / -)
	stamp=$(stamp_of "$t")
	(
		# A second build waits for the first one and then finds its result.
		flock 9
		missing=
		for b in $binaries; do [ -x "$out/$b" ] || missing=$b; done
		if [ -z "$missing" ] && [ "$(cat "$mark.stamp" 2>/dev/null)" = "$stamp" ]; then
			exit 0
		fi
		rm -f "$mark.stamp"
		case $t in
		tools) go_build helm tools helm.sh/helm/v4/cmd/helm ;;
		# Without the clients of clouds, which only service discovery needs.
		promtool) go_build promtool tools github.com/prometheus/prometheus/cmd/promtool remove_all_sd ;;
		neighbours/*) build_neighbour "$t" ;;
		versions/*) build_version "$t" ;;
		*) go_build "$t" . "./cmd/$t" ;;
		esac
		[ "$t" != addons ] || copy_addon_files
		echo "$stamp" >"$mark.stamp"
	) 9>"$mark.lock"
done
