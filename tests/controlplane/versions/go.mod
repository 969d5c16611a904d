// Marks the folder as a module. What is built is in MINOR.mod, for each version its own.
module rolegate.dev/tests/controlplane/versions

go 1.26.0
