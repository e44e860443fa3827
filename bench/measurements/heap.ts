/** Python code that leaves a process behind which holds that many random bytes, and ends when it has them. */
export function leaveHeap(megabytes: number): string {
  const holder = `import os, time; heap = [os.urandom(1000000) for _ in range(${megabytes})]; open("/tmp/held", "w"); time.sleep(1e6)`;
  return [
    "import os, subprocess, sys, time",
    `subprocess.Popen([sys.executable, "-c", ${JSON.stringify(holder)}], start_new_session=True,`,
    "  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)",
    'while not os.path.exists("/tmp/held"): time.sleep(0.02)',
  ].join("\n");
}
