//! The program: it takes arguments and returns an exit code. All else is in the library, where tests reach it.

/// Measured on forwarded requests: a quarter more requests per second than with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    weirgate::cli::main()
}
