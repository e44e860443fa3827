/** Python code that leaves a process behind with that many random bytes, and ends when it has them. */
export function leaveHeap(megabytes: number): string {
  return leaveBehind(`import os, time
heap = [os.urandom(1000000) for _ in range(${megabytes})]
open("/tmp/held", "w")
time.sleep(1e6)`);
}

/** The contents of a changing heap. */
export type HeapKind = "random bytes" | "Python objects";

/** As {@link leaveHeap}; the process changes one percent of its memory on request. */
export function leaveChangingHeap(kind: HeapKind, megabytes: number): string {
  return leaveBehind(`import gc, os, random, time
gc.disable()
${HEAPS[kind](megabytes)}
open("/tmp/held", "w")
while True:
  time.sleep(0.02)
  if os.path.exists("/tmp/change"):
    os.remove("/tmp/change")
    change()
    open("/tmp/changed", "w")`);
}

/** Python code that requests the change, and ends when it is done. */
export const CHANGE_HEAP = `import os, time
if os.path.exists("/tmp/changed"): os.remove("/tmp/changed")
open("/tmp/change", "w")
while not os.path.exists("/tmp/changed"): time.sleep(0.02)`;

const OBJECT_BYTES = 570;

/**
 * Changes are spread over the whole heap, the hardest case for blocks: single pages of random bytes, single objects
 * among many. Python's collector is off, because it would write to every object.
 */
const HEAPS: Readonly<Record<HeapKind, (megabytes: number) => string>> = {
  "random bytes": (megabytes) => `heap = [bytearray(random.randbytes(1 << 20)) for _ in range(${megabytes})]
def change():
  for page in random.sample(range(len(heap) * 256), len(heap) * 256 // 100):
    at = page % 256 * 4096
    heap[page // 256][at:at + 4096] = random.randbytes(4096)`,
  "Python objects": (megabytes) => `def made(number):
  return {"id": number, "name": f"user {number}", "mail": f"user-{number * 7919 % 1000003}@example.org", "score": random.random(), "tags": [f"t{number % 97}", f"u{number % 89}"]}
heap = [made(number) for number in range(${Math.round((megabytes * 1_000_000) / OBJECT_BYTES)})]
def change():
  for number in random.sample(range(len(heap)), len(heap) // 100):
    heap[number]["score"] = random.random()
    heap[number]["name"] = f"changed {number}"`,
};

/** Where a process that was left behind notes how long it did not run, in ms, one line each time. */
export const SILENCES = "/tmp/silences";

/** Python code that leaves such a process behind. It looks at the time every millisecond. */
export function leaveTicker(): string {
  return leaveBehind(`import gc, time
gc.disable()
log = open("${SILENCES}", "a", buffering=1)
open("/tmp/held", "w")
last = time.perf_counter()
while True:
  time.sleep(0.001)
  silence = time.perf_counter() - last
  if silence > 0.005: log.write(f"{silence * 1000:.1f}\\n")
  last = time.perf_counter()`);
}

function leaveBehind(holder: string): string {
  return [
    "import os, subprocess, sys, time",
    'if os.path.exists("/tmp/held"): os.remove("/tmp/held")',
    `subprocess.Popen([sys.executable, "-c", ${JSON.stringify(holder)}], start_new_session=True,`,
    "  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)",
    'while not os.path.exists("/tmp/held"): time.sleep(0.02)',
  ].join("\n");
}
