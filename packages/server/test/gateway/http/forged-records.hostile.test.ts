import { createHash } from "node:crypto";
import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Head } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { INSTANCE, PEER_HEADER, PeerSecret } from "../../../src/gateway/access/peer-secret.ts";
import { E2bTokens } from "../../../src/gateway/e2b/tokens.ts";
import { RecordSeals } from "../../../src/seals/record-seals.ts";
import { sealRecords } from "../../../src/seals/seal-records.ts";
import { SecretSources } from "../../../src/secrets/secret-sources.ts";
import { DirectoryStore } from "../../../src/store/directory/directory-store.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { openPeerSecret } from "../../../src/store/peer-secret.ts";
import { withSeals } from "../../../src/seals/sealed-store.ts";
import { newKey, serverKeys } from "../../checkpoints/keys/key-lab.ts";
import { catalogOf } from "../../profiles/catalog-of.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";
import { HEADER } from "./encryption-lab.ts";
import { SandboxClient } from "./processes/support.ts";
import { HttpClient } from "./support.ts";

const WORK = { name: "profile.work", backends: ["fake"], isolation: "none", secret_refs: { TOKEN: "github" } };
const MASTER = newKey();
const KEYS = serverKeys(new Map([["master", MASTER]]), "master");
const SEALED = { masterKeys: KEYS, requireSealed: true };
const secrets = new SecretSources({
  definitions: { github: { environment: "GITHUB" }, master: { environment: "MASTER" } },
  environment: { GITHUB: "s3cret-value", MASTER: MASTER.reveal() },
  warn: () => {},
});

/** Anyone with access to the store can change a head. */
async function forge(server: TestServer, sandboxId: string, change: (head: Head) => Head): Promise<void> {
  const store = await DirectoryStore.open(server.storeFolder ?? "");
  const key = `${sandboxId}/metadata.json`;
  const cell = await store.readCell(key);
  const head = JSON.parse(Buffer.from(cell?.body ?? []).toString()) as Head;
  const swapped = await store.swapCell(key, cell?.version, Buffer.from(JSON.stringify(change(head))));
  expect(swapped.outcome).toBe("written");
}

async function stored(server: TestServer, body: object = {}, options = {}): Promise<SandboxClient> {
  const http = new HttpClient(server);
  const { body: made } = await http.call<{ id: string }>("POST", "/v1/sandboxes", body, options);
  const box = new SandboxClient(server, made.id);
  await box.exec({ shell: `echo ${made.id} > file` });
  expect((await box.call("POST", "/checkpoint")).status).toBe(200);
  return box;
}

async function refusal(box: SandboxClient, headers = {}) {
  const { status, body } = await box.call("POST", "/resume", undefined, headers);
  return { status, ...body.error };
}

describe("forgeries by someone with access to the store, but without the servers' key", () => {
  test("a head that requests a secret gets only those that the server's own profile allows", async () => {
    const server = await startTestServer({ profiles: catalogOf(WORK), secrets });
    const box = await stored(server, { profile: "profile.work" });
    await forge(server, box.id, (head) => ({ ...head, spec: { ...head.spec, secretRefs: { TOKEN: "master" } } }));
    await box.call("POST", "/resume");
    expect((await box.exec({ shell: "echo $TOKEN" })).stdout).toBe("s3cret-value\n");
    await box.call("POST", "/checkpoint");
    await forge(server, box.id, (head) => ({ ...head, spec: { ...head.spec, secretRefs: { MORE: "master" } } }));
    expect(await refusal(box)).toMatchObject({ status: 503, code: "secret_unavailable" });
  });

  test("a head with the image of another sandbox is refused", async () => {
    const server = await startTestServer();
    const [mine, other] = [await stored(server), await stored(server)];
    let checkpoint: Head["checkpoint"] = null;
    await forge(server, other.id, (head) => ((checkpoint = head.checkpoint), head));
    await forge(server, mine.id, (head) => ({ ...head, checkpoint }));
    const folders = [other, mine].map(({ id }) => join(server.storeFolder ?? "", id, "checkpoints"));
    await cp(folders[0] ?? "", folders[1] ?? "", { recursive: true });
    expect(await refusal(mine)).toMatchObject({
      code: "image_damaged",
      message: expect.stringContaining(`it was saved from the sandbox ${other.id}`),
    });
  });

  test("a head that has lost its client's key is not opened with that key", async () => {
    const server = await startTestServer();
    const box = await stored(server, {}, HEADER);
    await forge(server, box.id, (head) => ({ ...head, about: { ...head.about, encryption: null } as Head["about"] }));
    expect(await refusal(box, HEADER.headers)).toMatchObject({ status: 403, code: "wrong_key" });
  });

  test("a head of an earlier epoch is refused by a server that has seen a later one", async () => {
    const server = await startTestServer();
    const box = await stored(server);
    let old: Head | undefined;
    await forge(server, box.id, (head) => (old = head));
    await box.call("POST", "/resume");
    await box.call("POST", "/checkpoint");
    await forge(server, box.id, () => old as Head);
    expect(await refusal(box)).toMatchObject({ code: "image_damaged", message: expect.stringContaining("epoch") });
  });
});

/** A sandbox with the state of the first of its two forks, and the second. All are paused. */
async function promoted(options: TestServerOptions) {
  const server = await startTestServer(options);
  const original = await SandboxClient.create(server, { enable_checkpoint: true });
  const { body } = await original.call<{ items: { id: string }[] }>("POST", "/fork", { count: 2 });
  const [winner, other] = body.items.map(({ id }) => new SandboxClient(server, id));
  if (winner === undefined || other === undefined) throw new Error("There are no forks.");
  await winner.exec({ shell: "echo won > file" });
  expect((await original.call("POST", "/promote", { winner: winner.id })).status).toBe(200);
  for (const box of [original, other]) expect((await box.call("POST", "/checkpoint")).status).toBe(200);
  return { server, original, other };
}

test("a promoted sandbox resumes from its own image, and is refused that of another fork", async () => {
  const { server, original, other } = await promoted({ masterKeys: KEYS });
  expect((await original.call("POST", "/resume")).status).toBe(200);
  expect((await original.exec({ shell: "cat file" })).stdout).toBe("won\n");
  await original.call("POST", "/checkpoint");
  let checkpoint: Head["checkpoint"] = null;
  await forge(server, other.id, (head) => ((checkpoint = head.checkpoint), head));
  await forge(server, original.id, (head) => ({ ...head, checkpoint }));
  const folders = [other, original].map(({ id }) => join(server.storeFolder ?? "", id, "checkpoints"));
  await cp(folders[0] ?? "", folders[1] ?? "", { recursive: true });
  expect(await refusal(original)).toMatchObject({ code: "image_damaged" });
});

test("the secret of the servers, read in the store, opens no sandbox of a server with a key", async () => {
  const server = await startTestServer({ masterKeys: KEYS });
  const { id } = await SandboxClient.create(server);
  const found = new PeerSecret(await openPeerSecret(await openStore(server.storeFolder ?? "")));
  const status = async (path: string, headers: Record<string, string>): Promise<number> =>
    (await fetch(server.httpUrl + path, { headers })).status;
  const byToken = (token: string) => status("/e2b/envs", { "e2b-sandbox-id": id, "x-access-token": token });
  expect(await byToken(new E2bTokens(() => found).of("envd", id))).toBe(401);
  expect(await byToken(server.e2bToken(id))).toBe(200);
  expect(await status("/internal/instance", { [PEER_HEADER]: found.proofOf(INSTANCE) })).toBe(403);
});

describe("records that are sealed", () => {
  const token_hash = createHash("sha256").update("mine").digest("hex");

  test("are read unchanged, and refused by name after any change", async () => {
    const server = await startTestServer(SEALED);
    const box = await stored(server);
    expect((await box.call("POST", "/resume")).status).toBe(200);
    expect((await box.call("POST", "/checkpoint")).status).toBe(200);
    await forge(server, box.id, (head) => ({ ...head, token_hash }));
    expect(await refusal(box)).toMatchObject({ code: "image_damaged", message: expect.stringContaining(box.id) });
    const list = await new HttpClient(server).call<{ items: unknown[]; damaged: object[] }>("GET", "/v1/sandboxes");
    expect(list.body).toMatchObject({ items: [], damaged: [{ id: box.id }] });
  });

  test("cover the promotion of a sandbox: nobody else can name the forks that it ends", async () => {
    const { server, original, other } = await promoted(SEALED);
    const ends = [{ sandbox_id: other.id, epoch: 1 }];
    await forge(
      server,
      original.id,
      (head) => ({ ...head, promotion: { ...(head.promotion as object), ends } }) as Head,
    );
    expect(await refusal(original)).toMatchObject({ message: expect.stringContaining("no valid seal") });
    expect((await other.call("POST", "/resume")).status).toBe(200);
  });

  test("are bound to their place: the head of one sandbox is not that of another", async () => {
    const server = await startTestServer(SEALED);
    const [mine, other] = [await stored(server), await stored(server)];
    let head: Head | undefined;
    await forge(server, other.id, (present) => (head = present));
    await forge(server, mine.id, () => head as Head);
    expect(await refusal(mine)).toMatchObject({ message: expect.stringContaining("no valid seal") });
  });

  test("are added to a store by one call, even beside a live server", async () => {
    const [open, masterKeys] = [await startTestServer(), KEYS];
    const box = await stored(open);
    const store = open.storeFolder ?? "";
    const unsealed: TestServerOptions = { store, masterKeys };
    const [strict, server] = [
      await startTestServer({ ...unsealed, requireSealed: true }),
      await startTestServer(unsealed),
    ];
    const there = new SandboxClient(strict, box.id);
    expect(await refusal(there)).toMatchObject({ message: expect.stringContaining("no valid seal") });
    const running = await SandboxClient.create(server);
    const seals = RecordSeals.with([MASTER]);
    if (seals === undefined) throw new Error("There is a key.");
    const sealedStore = withSeals(await openStore(store), { seals, required: false });
    const sealing = await sealRecords(sealedStore, seals, { apply: true });
    expect(sealing.failed).toEqual([]);
    expect(sealing.sealed).toBeGreaterThan(0);
    // The first server has no key, so its own record stays as it is.
    const again = await sealRecords(sealedStore, seals, { apply: true });
    expect(again).toMatchObject({ sealed: 0, of_living_servers: 1, failed: [] });
    expect((await there.call("POST", "/resume")).status).toBe(200);
    expect((await there.exec({ shell: "cat file" })).stdout).toBe(`${box.id}\n`);
    expect((await running.exec({ shell: "echo on" })).stdout).toBe("on\n");
    expect((await running.call("POST", "/checkpoint")).status).toBe(200);
    expect(await readFile(join(store, box.id, "metadata.json"), "utf8")).toContain('"seal"');
  });

  test("are not changed by a server without the key, which reports it", async () => {
    const server = await startTestServer(SEALED);
    const box = await stored(server);
    const other = await startTestServer({ store: server.storeFolder ?? null });
    expect(await refusal(new SandboxClient(other, box.id))).toMatchObject({ code: "key_unavailable" });
    expect((await box.call("POST", "/resume")).status).toBe(200);
  });
});
