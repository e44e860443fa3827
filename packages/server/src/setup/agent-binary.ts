import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { AGENT_DIRECTORY, type SetupContext } from "./context.ts";
import { inScratchDirectory } from "./scratch.ts";
import { findProgram, hashFile, installFile, isExecutable } from "./files.ts";
import { tellingLine, runCommand } from "./run-command.ts";
import { runStep, type StepResult } from "./step.ts";

const PROGRAM = "sandboxer-agent";
export const COMPILER_REMEDY = "apt-get install gcc libc6-dev make";

export interface AgentBinary {
  readonly path: string;
  readonly sha256: string;
}

/** The program that is PID 1 of a sandbox: a prebuilt one, one compiled earlier from the same sources, or compiled now. */
export async function prepareAgent(context: SetupContext): Promise<AgentBinary> {
  const agent = await runStep(context.report, {
    name: "agent",
    message: "Preparing the agent",
    timeoutMs: 120_000,
    signal: context.signal,
    work: async (signal): Promise<StepResult<AgentBinary>> => {
      const present = await findAgent(context);
      if (present !== undefined) return { value: present, message: `Agent at ${present.path}` };
      const compiled = await compileAgent(context, signal);
      return { value: compiled, message: `Agent compiled to ${compiled.path}` };
    },
  });
  return agent as AgentBinary;
}

/** Looks for an agent without building one. */
export async function findAgent(
  context: Pick<SetupContext, "agentDirectory" | "cacheDirectory">,
): Promise<AgentBinary | undefined> {
  const agentDirectory = context.agentDirectory ?? AGENT_DIRECTORY;
  const candidates = [join(agentDirectory, "prebuilt", `linux-${process.arch}`, PROGRAM)];
  if (existsSync(join(agentDirectory, "src")))
    candidates.push(await compiledAgentPath(context.cacheDirectory, agentDirectory));
  const path = candidates.find(isExecutable);
  return path === undefined ? undefined : { path, sha256: await hashFile(path) };
}

export function findCompiler(searchPath: string): { make: string; compiler: string } | undefined {
  const make = findProgram("make", searchPath);
  const compiler = ["cc", "gcc", "clang"]
    .map((name) => findProgram(name, searchPath))
    .find((path) => path !== undefined);
  return make === undefined || compiler === undefined ? undefined : { make, compiler };
}

async function compileAgent(context: SetupContext, signal: AbortSignal): Promise<AgentBinary> {
  const agentDirectory = context.agentDirectory ?? AGENT_DIRECTORY;
  const tools = findCompiler(context.searchPath);
  if (tools === undefined) {
    throw new SandboxerError(
      "backend_unavailable",
      "The agent must be compiled, but a C compiler and make are not installed.",
      {
        hint: `Run: ${COMPILER_REMEDY}`,
      },
    );
  }
  const target = await compiledAgentPath(context.cacheDirectory, agentDirectory);
  return inScratchDirectory(context.cacheDirectory, async (directory) => {
    const argv = [tools.make, "-C", agentDirectory, `OUT=${directory}`, `CC=${tools.compiler}`] as const;
    const result = await runCommand(argv, { signal });
    if (result.code !== 0) {
      throw new SandboxerError("backend_unavailable", `The agent does not compile: ${tellingLine(result)}`, {
        hint: `Run: ${COMPILER_REMEDY}. Then run \`make -C ${agentDirectory}\` to see the compiler's messages.`,
        details: { stderr: result.stderr },
      });
    }
    await installFile(join(directory, PROGRAM), target, 0o755);
    return { path: target, sha256: await hashFile(target) };
  });
}

async function compiledAgentPath(cacheDirectory: string, agentDirectory: string): Promise<string> {
  return join(cacheDirectory, "agents", await hashSources(agentDirectory), PROGRAM);
}

async function hashSources(agentDirectory: string): Promise<string> {
  const entries = await readdir(join(agentDirectory, "src"), { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const hash = createHash("sha256").update(process.arch);
  for (const path of [...paths.toSorted(), join(agentDirectory, "Makefile")]) {
    const content = await readFile(path);
    hash.update(`\0${path.slice(agentDirectory.length)}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}
