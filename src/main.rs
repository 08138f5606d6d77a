//! The program: arguments in, exit code out. Everything else is in the library, where tests reach it.

fn main() -> std::process::ExitCode {
    weirgate::cli::main()
}
