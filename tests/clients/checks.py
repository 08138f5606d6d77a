"""Runs checks: those that the arguments of the script name, or all. One line per check on stdout; exit 1 when one failed, 2 for
an unknown name."""

import asyncio
import inspect
import sys
import traceback


def main(checks, arguments=((),)):
    """Runs each check once with each of these arguments."""
    known = {check.__name__: check for check in checks}
    names = sys.argv[1:]
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no such check: {', '.join(unknown)}", file=sys.stderr)
        sys.exit(2)
    failed = False
    for name in names or known:
        for values in arguments:
            title = " ".join([name, *values])
            try:
                done = known[name](*values)
                if inspect.iscoroutine(done):
                    asyncio.run(done)
                print(f"ok {title}", flush=True)
            except Exception as error:
                failed = True
                print(f"FAILED {title}: {type(error).__name__}: {error}", flush=True)
                traceback.print_exc()
    sys.exit(int(failed))
