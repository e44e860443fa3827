import { type Profile, profileSchema, type SandboxRecord } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { ProfileCatalog } from "../../../src/profiles/profile-catalog.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { type ErrorAnswer, HttpClient } from "./support.ts";

function profile(more: object): Profile {
  return profileSchema.parse({ name: "careful", backends: ["fake"], enable_checkpoint: true, max_loss: "5m", ...more });
}

/** The max_loss of a new sandbox. */
async function promised(http: HttpClient, body: object): Promise<SandboxRecord["durability"]["max_loss"]> {
  return (await http.create(body)).durability.max_loss;
}

describe("max_loss", () => {
  test("comes from the request, then the profile, then the server", async () => {
    const profiles = new ProfileCatalog([{ profile: profile({}), file: "test", bundled: false, overrides: undefined }]);
    const http = new HttpClient(await startTestServer({ profiles, defaultMaxLoss: "1h" }));
    expect(await promised(http, { max_loss: 7 })).toBe(7);
    expect(await promised(http, { max_loss: 7, profile: "careful" })).toBe(7);
    expect(await promised(http, { profile: "careful" })).toBe("5m");
    expect(await promised(http, {})).toBe("1h");
    expect(await promised(http, { profile: "careful", max_loss: null })).toBeNull();
    expect(await promised(http, { enable_checkpoint: false })).toBeNull();
    expect(await promised(http, { profile: "careful", enable_checkpoint: false })).toBeNull();
  });

  test.each([0, 1.5, "5", "soon", "", 1_000_001])("%j is not a max_loss", async (max_loss) => {
    const http = new HttpClient(await startTestServer());
    const refused = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", { max_loss });
    expect(refused.status).toBe(400);
    expect(refused.body.error.message).toContain("max_loss");
  });

  test("is refused if nothing can be saved, with the next step", async () => {
    const http = new HttpClient(await startTestServer());
    const refused = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", { max_loss: "5m", enable_checkpoint: false });
    expect(refused.body.error).toMatchObject({
      code: "checkpoint_disabled",
      hint: expect.stringContaining("enable_checkpoint: true") as string,
    });
    const { id } = await http.create({ enable_checkpoint: false });
    const amended = await http.call<ErrorAnswer>("PATCH", `/v1/sandboxes/${id}`, { max_loss: "5m" });
    expect(amended.body.error.code).toBe("checkpoint_disabled");
    const bare = new HttpClient(await startTestServer({ store: null }));
    const unstored = await bare.call<ErrorAnswer>("POST", "/v1/sandboxes", { max_loss: "5m" });
    expect(unstored.body.error.code).toBe("checkpoint_disabled");
    expect(() => profile({ enable_checkpoint: undefined })).toThrow("enable_checkpoint: true");
  });

  test("stays with the sandbox, running or paused, on other servers and for its forks", async () => {
    const first = await startTestServer();
    const second = await startTestServer({ store: first.storeFolder ?? null, defaultMaxLoss: "9h" });
    const [here, there] = [new HttpClient(first), new HttpClient(second)];
    const { id } = await here.create();
    const patched = await here.call<SandboxRecord>("PATCH", `/v1/sandboxes/${id}`, { max_loss: "5m" });
    expect(patched.body.durability.max_loss).toBe("5m");
    await here.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    expect((await there.get(id)).durability).toMatchObject({ max_loss: "5m", at_risk: null });
    await there.call("PATCH", `/v1/sandboxes/${id}`, { max_loss: 20 });
    const woken = await there.call<SandboxRecord>("POST", `/v1/sandboxes/${id}/resume`);
    expect(woken.body.durability.max_loss).toBe(20);
    const forked = await there.call<{ items: SandboxRecord[] }>("POST", `/v1/sandboxes/${id}/fork`, { count: 1 });
    expect(forked.body.items.map(({ durability }) => durability.max_loss)).toEqual([20]);
    const other = await there.call<{ items: SandboxRecord[] }>("POST", `/v1/sandboxes/${id}/fork`, { max_loss: null });
    expect(other.body.items.map(({ durability }) => durability.max_loss)).toEqual([null]);
  });

  test("of a sandbox with a key is that of the last request", async () => {
    const http = new HttpClient(await startTestServer());
    const acquire = async (body: object): Promise<unknown> =>
      (await http.call<SandboxRecord>("POST", "/v1/sandboxes/acquire", { key: "build", ...body })).body.durability
        .max_loss;
    expect(await acquire({ max_loss: "5m" })).toBe("5m");
    expect(await acquire({})).toBe("5m");
    expect(await acquire({ max_loss: 3 })).toBe(3);
    expect(await acquire({ max_loss: null })).toBeNull();
  });
});
