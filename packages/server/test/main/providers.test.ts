import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { FakeBackend } from "../../src/backends/fake/index.ts";
import { prepareBackend } from "../../src/main/backends.ts";
import { parseConfig, type ServerConfig } from "../../src/main/config.ts";
import { assembleBackends } from "../../src/main/providers.ts";
import { SecretSources } from "../../src/secrets/secret-sources.ts";

const FREE = async () => "free" as const;
const secrets = new SecretSources({ definitions: {}, environment: {}, warn: () => {} });

async function config(flags: Record<string, string> = {}): Promise<ServerConfig> {
  const home = await mkdtemp(join(tmpdir(), "sandboxer-providers-"));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  return parseConfig({ flags, env: {}, homeDirectory: home });
}

test("a server offers the bundled backends beside its own, each with its capabilities", async () => {
  const backends = await assembleBackends(await config(), new FakeBackend(), secrets, FREE);
  expect([...backends.keys()]).toEqual(["fake", "docker", "daytona", "compose-ssh", "saas-stub"]);
  expect(backends.get("docker")?.capabilities).toMatchObject({ selfHosted: true, outlivesServer: true });
  expect(backends.get("daytona")?.capabilities).toMatchObject({ selfHosted: false, outlivesServer: true });
});

test("an unhealthy provider reports the reason, instead of failing", async () => {
  const backends = await assembleBackends(await config(), new FakeBackend(), secrets, FREE);
  const health = await backends.get("daytona")?.probe();
  expect(health).toMatchObject({ ok: false, summary: expect.stringContaining("daytona-api-key") });
});

test("a provider with remote snapshots is opened to delete one; the others are not", async () => {
  const backends = await assembleBackends(
    await config({ dockerHost: "unix:///nowhere" }),
    new FakeBackend(),
    secrets,
    FREE,
  );
  const requirements = { format: 1, snapshotName: "s", apiUrl: "https://app.daytona.io/api" };
  const forget = (name: string, kind: string) =>
    backends.get(name)?.forgetSnapshot?.({ kind, members: [], requirements });
  await expect(forget("daytona", "daytona-snapshot")).rejects.toMatchObject({ code: "secret_unavailable" });
  await expect(forget("compose-ssh", "workspace-tar")).rejects.toMatchObject({ code: "image_incompatible" });
  await forget("docker", "docker-image-tar");
});

test("any of them can be the default backend", async () => {
  const prepared = await prepareBackend(await config({ backend: "saas-stub" }), secrets, () => {});
  const opened = await prepared.open("an-instance");
  const { backend } = opened;
  expect(backend.name).toBe("saas-stub");
  expect((await backend.probe()).ok).toBe(true);
  await opened.close();
});

test("an unknown name is refused with a list of the known ones", async () => {
  const refused = prepareBackend(await config({ backend: "dokcer" }), secrets, () => {});
  await expect(refused).rejects.toMatchObject({
    code: "bad_request",
    hint: "Use one of: gvisor, fake, docker, daytona, compose-ssh, saas-stub.",
  });
});

test("an extension with the name of another backend is refused", async () => {
  const settings = await config();
  const manifest = join(settings.dataDirectory, "..", "manifest.json");
  await mkdir(join(settings.dataDirectory, ".."), { recursive: true });
  await writeFile(manifest, JSON.stringify({ extensions: [{ name: "docker", module: "./x.mjs" }] }));
  const assembled = assembleBackends({ ...settings, extensions: manifest }, new FakeBackend(), secrets, FREE);
  await expect(assembled).rejects.toMatchObject({ message: expect.stringContaining("docker") });
});
