import type { Instruction } from "../programs/instruction.ts";
import { fromText, toText } from "./byte-string.ts";
import { pathOf, textOf } from "./evaluate.ts";
import { FileFault } from "./file-fault.ts";
import type { Interior, Outcome } from "./interior.ts";
import type { MachineProcess } from "./machine-process.ts";
import { prepared, writeOutput } from "./write-output.ts";

type FileInstruction = Extract<Instruction, { op: "file" | "list" | "open" }>;

export function executeFileInstruction(
  instruction: FileInstruction,
  process: MachineProcess,
  machine: Interior,
): Outcome {
  process.record.status = 0;
  if (instruction.op === "open") {
    const path = pathOf(instruction.path, process, machine);
    if (path !== "/dev/null") machine.files.write(path, Buffer.alloc(0), { append: instruction.append });
  } else if (instruction.op === "list") {
    const names = [...machine.files.list(pathOf(instruction.path, process, machine)).keys()];
    const visible = names.filter((name) => !name.startsWith(".")).toSorted();
    const lines = visible.map((name) => `${fromText(name)}\n`).join("");
    writeOutput(instruction.to, prepared(instruction.to, lines, process), process, machine);
  } else {
    changeFiles(instruction, process, machine);
  }
  return "done";
}

function changeFiles(
  instruction: Extract<FileInstruction, { op: "file" }>,
  process: MachineProcess,
  machine: Interior,
): void {
  const { files } = machine;
  const paths = instruction.paths.map((path) => pathOf(path, process, machine));
  const [first, second] = [paths[0] ?? "", paths[1] ?? ""];
  switch (instruction.verb) {
    case "mkdir":
      for (const path of paths) files.makeFolder(path, { parents: instruction.force });
      return;
    case "touch":
      for (const path of paths) files.write(path, Buffer.alloc(0), { append: true });
      return;
    case "mv":
      files.rename(first, second);
      return;
    case "ln":
      files.makeLink(
        toText(instruction.paths[0] === undefined ? "" : textOf(instruction.paths[0], process, machine)),
        second,
      );
      return;
    case "rm":
      for (const path of paths) remove(path, instruction.force, machine);
  }
}

function remove(path: string, force: boolean, machine: Interior): void {
  try {
    machine.files.remove(path, { recursive: force });
  } catch (thrown) {
    if (!(force && thrown instanceof FileFault && thrown.errno === "ENOENT")) throw thrown;
  }
}
