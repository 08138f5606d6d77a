// Runs checks: those that the arguments of the script name, or all. One line per check on stdout; exit 1 when one failed, 2 for
// an unknown name.

/** Runs each check once with each of these arguments. */
export async function main(checks, calls = [[]]) {
  const asked = process.argv.slice(2);
  const unknown = asked.filter((name) => !(name in checks));
  if (unknown.length > 0) {
    console.error(`no such check: ${unknown.join(", ")}`);
    process.exit(2);
  }
  let failed = false;
  for (const name of asked.length > 0 ? asked : Object.keys(checks)) {
    for (const values of calls) {
      const title = [name, ...values].join(" ");
      try {
        await checks[name](...values);
        console.log(`ok ${title}`);
      } catch (error) {
        failed = true;
        console.log(`FAILED ${title}: ${error.message.split("\n")[0]}`);
        console.error(error);
      }
    }
  }
  // What a failed check has left open would keep the process.
  process.exit(failed ? 1 : 0);
}
