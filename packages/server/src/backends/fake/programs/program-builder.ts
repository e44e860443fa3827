import type { Instruction, Language, Program, Target } from "./instruction.ts";

/** Collects instructions; places are labels until `finish` puts numbers for them. */
export class ProgramBuilder {
  readonly #instructions: Instruction[] = [];
  readonly #places: number[] = [];
  #slots = 0;
  #errors: Target | undefined;
  readonly #loops: { readonly again: number; readonly after: number }[] = [];

  emit(instruction: Instruction): void {
    this.#instructions.push(this.#errors === undefined ? instruction : { ...instruction, errors: this.#errors });
  }

  /** The body's error messages go to this target. */
  withErrors(errors: Target, body: () => void): void {
    const before = this.#errors;
    this.#errors = errors;
    body();
    this.#errors = before;
  }

  label(): number {
    return this.#places.push(-1) - 1;
  }

  place(label: number): void {
    this.#places[label] = this.#instructions.length;
  }

  /** A name that no program can use. */
  slot(): string {
    return `%${this.#slots++}`;
  }

  /** A body that `break` and `continue` act on. */
  loop(again: number, after: number, body: () => void): void {
    this.#loops.push({ again, after });
    body();
    this.#loops.pop();
  }

  leaveLoop(how: "break" | "continue"): void {
    const loop = this.#loops.at(-1);
    if (loop === undefined) throw new SyntaxError(`'${how}' outside loop`);
    this.emit({ op: "jump", to: how === "break" ? loop.after : loop.again });
  }

  finish(language: Language): Program {
    const resolve = (label: number): number => this.#places[label] ?? -1;
    const instructions = this.#instructions.map((instruction): Instruction => {
      if (instruction.op === "open") return { ...instruction, orElse: resolve(instruction.orElse) };
      if (instruction.op === "listen") return { ...instruction, announced: resolve(instruction.announced) };
      return "to" in instruction && typeof instruction.to === "number"
        ? ({ ...instruction, to: resolve(instruction.to) } as Instruction)
        : instruction;
    });
    return { language, instructions };
  }
}
