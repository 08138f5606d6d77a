# Comments out each table of weirgate.toml that uses a sandbox: an installed server has none until someone asks for it.
function print_table(at) {
    for (at = 1; at <= count; at++) {
        is_option = lines[at] != "" && lines[at] !~ /^#/
        print (uses_sandbox && is_option ? "#" : "") lines[at]
    }
    count = uses_sandbox = 0
}
/^\[/ { print_table() }
{ lines[++count] = $0 }
/^\[.*sandbox/ || /^[^#]*"sandbox"/ { uses_sandbox = 1 }
END { print_table() }
