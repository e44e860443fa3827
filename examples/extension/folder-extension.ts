/**
 * An extension whose sandboxes are folders of this machine. Nothing is isolated: it shows the hooks, and no more.
 * Its manifest is manifest.yaml beside it.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { access, mkdir, rm } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxExtension } from "@sandboxer/server/extension";

const run = promisify(execFile);

/** The default export is given the `options` of the manifest, and makes the extension. */
export default function folderExtension(options: Readonly<Record<string, unknown>>): SandboxExtension {
  const root = options["root"];
  if (typeof root !== "string") throw new Error("options.root must name a folder");
  const folderOf = (sandboxId: string): string => join(root, sandboxId);

  return {
    name: "ext.folder",
    selfHosted: true,

    async provision({ sandboxId, spec }) {
      const folder = folderOf(sandboxId);
      await mkdir(folder, { recursive: true });
      try {
        const repo = spec.inputs?.["repo"];
        if (repo !== undefined) await run("cp", ["-R", `${repo}/.`, folder]);
      } catch (error) {
        await rm(folder, { recursive: true, force: true });
        throw error;
      }
      return { folder };
    },

    async waitReady({ folder = "" }) {
      await access(folder);
    },

    async teardown({ folder = "" }) {
      await rm(folder, { recursive: true, force: true });
    },

    async find({ sandboxId }) {
      const folder = folderOf(sandboxId);
      return access(folder).then(
        () => ({ folder }),
        () => undefined,
      );
    },

    snapshotKind: "workspace-tar",
    supportsSnapshots: () => true,

    async snapshot({ folder = "" }, { into }, { signal }) {
      await run("tar", ["-C", folder, "-czf", join(into, "folder.tar.gz"), "."], { signal });
      return { taken_at: new Date().toISOString() };
    },

    async restoreFromSnapshot({ sandboxId }, { members }, { signal }) {
      const archive = members.find(({ name }) => name === "folder.tar.gz");
      if (archive === undefined) throw new Error("the snapshot has no folder.tar.gz");
      const folder = folderOf(sandboxId);
      await mkdir(folder, { recursive: true });
      try {
        await run("tar", ["-C", folder, "-xzf", archive.path], { signal });
      } catch (error) {
        await rm(folder, { recursive: true, force: true });
        throw error;
      }
      return { folder };
    },

    async estimateCost() {
      return { perHour: 0, currency: "EUR" };
    },

    async exec({ folder = "" }, { argv, env, workingFolder }) {
      const [program = "", ...rest] = argv;
      const path = process.env["PATH"] ?? "";
      // A group of its own, so that a signal can go to all of it.
      const child = spawn(program, rest, { cwd: workingFolder ?? folder, env: { PATH: path, ...env }, detached: true });
      await once(child, "spawn").catch((cause: unknown) => {
        throw new SandboxerError("file_not_found", `There is no program ${program}, or no such folder.`, { cause });
      });
      const pid = child.pid ?? 0;
      return {
        pid,
        stdin: child.stdin,
        stdout: child.stdout,
        stderr: child.stderr,
        exited: once(child, "close").then(([code, signal]: (number | string | null)[]) => ({
          code: typeof code === "number" ? code : undefined,
          signal: typeof signal === "string" ? constants.signals[signal as NodeJS.Signals] : undefined,
        })),
        signal: async (signal, scope) => {
          process.kill(scope === "group" ? -pid : pid, signal);
        },
        abandon: () => child.kill("SIGKILL"),
      };
    },
    shell: true,
  };
}
