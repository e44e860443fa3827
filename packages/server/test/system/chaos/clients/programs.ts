import { FIRST_NUMBER } from "../checker/history.ts";

/**
 * The programs in a sandbox of a chaos run, in the part of bash that the fake backend supports. `log` has the numbers,
 * `last` the newest; the background process keeps all of them in its memory, writes the newest that it knows into
 * `memory`, and reports in `broken` if the file does not match its memory.
 */
export const PREPARE = [
  `printf '.%s' ${FIRST_NUMBER} > log`,
  `echo ${FIRST_NUMBER} > last`,
  `echo ${FIRST_NUMBER} > memory`,
  "touch broken",
].join("; ");

/** How often a step looks whether the background process has seen it. */
const LOOKS = 3_000;

export function backgroundProgram(pauseSeconds: number): string {
  return [
    // As PREPARE has left them: by the time that this reads, a step may be half-way.
    `all=.${FIRST_NUMBER}`,
    `known=${FIRST_NUMBER}`,
    "while true; do",
    "number=$(cat last)",
    'if [ "$number" != "$known" ]; then',
    "present=$(cat log)",
    'if [ "$present" != "$all.$number" ]; then echo "memory $all, file $present, number $number" >> broken; fi',
    "all=$present",
    "known=$number",
    "echo $number > memory.new",
    "mv memory.new memory",
    "fi",
    `sleep ${pauseSeconds}`,
    "done",
  ].join("\n");
}

const SHOW = "cat log; echo; cat broken";

/** Writes the number, waits until the background process has seen it, and shows everything. One at a time. */
export function stepProgram(number: number): string {
  return [
    "while true; do if mkdir lock 2>/dev/null; then break; fi; sleep 0.02; done",
    `printf '.%s' ${number} >> log`,
    `echo ${number} > last.new`,
    "mv last.new last",
    "looks=0",
    `while [ "$(cat memory)" != ${number} ]; do`,
    "looks=$((looks+1))",
    `if [ $looks -gt ${LOOKS} ]; then echo silent; exit 3; fi`,
    "sleep 0.02",
    "done",
    SHOW,
    "rm -rf lock",
  ].join("\n");
}

export const READ = SHOW;

/** The parsed output of {@link SHOW}. */
export function readShown(stdout: string): { readonly log: readonly number[]; readonly broken: string } {
  const [first = "", ...rest] = stdout.split("\n");
  return { log: first.split(".").slice(1).map(Number), broken: rest.join("\n").trim() };
}
