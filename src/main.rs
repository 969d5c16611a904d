//! The `rolegate` command.

use std::process::ExitCode;

/// A review is a thousand small allocations: an eighth less processor time than with the allocator of glibc, for 12 MiB
/// more memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    rolegate::cli::run()
}
