import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openDriver } from "../../src/store/open-driver.ts";
import { FaultyProxy, type SeenRequest } from "../../../../test/kit/faulty-proxy.ts";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../../../test/kit/store-servers/minio.ts";
import { moto } from "../../../../test/kit/store-servers/moto.ts";
import type { RunningStoreServer } from "../../../../test/kit/store-servers/test-server.ts";
import { withServer } from "../../../../test/kit/store-servers/with-server.ts";

const S3_DENIED = "<Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>";
const S3_FULL = "<Error><Code>XMinioStorageFull</Code><Message>Storage backend is full.</Message></Error>";
const GCS_DENIED = JSON.stringify({ error: { code: 403, message: "x does not have storage.objects.create access" } });

const puts = ({ method }: SeenRequest): boolean => method === "PUT" || method === "POST";

afterEach(() => vi.unstubAllEnvs());

async function refusal(address: string): Promise<{ code: string; message: string; hint: string }> {
  const store = await openDriver(address);
  return await store.probe().then(
    () => expect.unreachable("the probe has passed"),
    (error: unknown) => error as { code: string; message: string; hint: string },
  );
}

function behindProxy(running: () => RunningStoreServer): () => { proxy: FaultyProxy; address: string } {
  let proxy: FaultyProxy;
  let address: string;
  beforeEach(async () => {
    proxy = await FaultyProxy.start(running().endpoint);
    address = await running().newStore(proxy.endpoint);
  });
  afterEach(async () => await proxy.stop());
  return () => ({ proxy, address });
}

describe("the probe explains problems with S3", () => {
  withServer(minio, (running) => {
    const setting = behindProxy(running);

    it.each([
      ["AWS_SECRET_ACCESS_KEY", "SignatureDoesNotMatch"],
      ["AWS_ACCESS_KEY_ID", "InvalidAccessKeyId"],
    ])("wrong credentials: %s", async (name, code) => {
      vi.stubEnv(name, "something-else");
      const { message, hint, ...error } = await refusal(setting().address);
      expect(error.code).toBe("store_unavailable");
      expect(message).toContain("does not accept the credentials");
      expect(message).toContain(code);
      expect(hint).toContain("AWS_ACCESS_KEY_ID");
    });

    it("a missing bucket", async () => {
      const { message, hint } = await refusal(setting().address.replace("s3://", "s3://another-"));
      expect(message).toContain("has no such bucket");
      expect(hint).toContain("Create the bucket");
    });

    it("missing rights, and which are needed", async () => {
      const { proxy, address } = setting();
      for (const method of ["GET", "PUT", "DELETE"]) {
        proxy.fault = (request) => (request.method === method ? { status: 403, body: S3_DENIED } : undefined);
        const { code, message, hint } = await refusal(address);
        expect(code).toBe("store_unavailable");
        expect(message).toContain("does not allow it");
        expect(hint).toContain("s3:PutObject");
      }
    });

    it("a full store", async () => {
      const { proxy, address } = setting();
      proxy.fault = (request) => (puts(request) ? { status: 507, body: S3_FULL } : undefined);
      expect(await refusal(address)).toMatchObject({ code: "no_space" });
    });
  });

  withServer(moto, (running) => {
    const setting = behindProxy(running);

    it.each(["if-none-match", "if-match"])("a server that ignores %s", async (name) => {
      const { proxy, address } = setting();
      proxy.rewrite = (request) => ({ ...request, headers: { ...request.headers, [name]: undefined } });
      const { code, message, hint } = await refusal(address);
      expect(code).toBe("store_unavailable");
      expect(message).toMatch(/created again|at an old version/);
      expect(hint).toContain("conditional writes");
    });

    it("nothing, of a server that wants tags without quotation marks", async () => {
      const { proxy, address } = setting();
      proxy.fault = ({ headers }) => (headers["if-match"]?.startsWith('"') === true ? { status: 412 } : undefined);
      await expect((await openDriver(address)).probe()).resolves.toBe(undefined);
    });
  });

  it("no credentials", async () => {
    for (const name of ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"]) vi.stubEnv(name, undefined);
    vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/missing");
    vi.stubEnv("AWS_CONFIG_FILE", "/missing");
    const { message } = await refusal("s3://bucket/prefix?endpoint=http://127.0.0.1:1");
    expect(message).toContain("does not accept the credentials");
  });

  it("an endpoint without a listener", async () => {
    vi.stubEnv("AWS_ACCESS_KEY_ID", "x");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "y");
    const { code, message } = await refusal("s3://bucket/prefix?endpoint=http://127.0.0.1:1");
    expect(code).toBe("store_unavailable");
    expect(message).toContain("cannot be reached");
    expect(message).toContain("ECONNREFUSED");
  });
});

describe("the probe explains problems with GCS", () => {
  withServer(fakeGcsServer, (running) => {
    const setting = behindProxy(running);

    it("a missing bucket", async () => {
      const { message, hint } = await refusal(setting().address.replace("gs://", "gs://another-"));
      expect(message).toContain("has no such bucket");
      expect(hint).toContain("Create the bucket");
    });

    it("a bucket that is deleted while it is used", async () => {
      const store = await openDriver(setting().address.replace("gs://", "gs://another-"));
      const swapping = store.swapCell("cell.json", undefined, Buffer.from("{}"));
      await expect(swapping).rejects.toMatchObject({ code: "store_unavailable" });
    });

    it.each([
      [401, "does not accept the credentials", "GOOGLE_APPLICATION_CREDENTIALS"],
      [403, "does not allow it", "roles/storage.objectUser"],
    ])("%s: %s", async (status, message, hint) => {
      const { proxy, address } = setting();
      for (const method of ["GET", "POST", "DELETE"]) {
        proxy.fault = (request) => (request.method === method ? { status, body: GCS_DENIED } : undefined);
        const error = await refusal(address);
        expect(error.message).toContain(message);
        expect(error.hint).toContain(hint);
      }
    });

    it("a server that ignores conditions", async () => {
      const { proxy, address } = setting();
      proxy.rewrite = (request) => ({ ...request, path: request.path.replace(/ifGenerationMatch=\d+&?/, "") });
      expect((await refusal(address)).message).toContain("created again");
    });
  });

  it("a missing key file", async () => {
    vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", "/missing/key.json");
    const { message } = await refusal("gs://bucket/prefix?endpoint=https://127.0.0.1:1");
    expect(message).toContain("does not accept the credentials");
    expect(message).toContain("/missing/key.json");
  });

  it("an endpoint without a listener", async () => {
    const { message } = await refusal("gs://bucket/prefix?endpoint=http://127.0.0.1:65533");
    expect(message).toContain("cannot be reached");
    expect(message).toContain("ECONNREFUSED");
  });
});

describe("an address", () => {
  it.each([
    ["s3://key:secret@bucket/prefix", "must not contain credentials"],
    ["s3://bucket/prefix?endpoint=http://key:secret@host", "must not contain credentials"],
    ["s3://bucket/prefix?endpoint=host", "not a URL"],
    ["s3://bucket/prefix?colour=red", "colour"],
    ["gs://bucket/prefix?region=x", "region"],
    ["s3:///prefix", "bucket"],
    ["s3://bucket/../x", "valid name"],
  ])("%s is refused", async (address, text) => {
    await expect(openDriver(address)).rejects.toMatchObject({
      code: "bad_request",
      message: expect.stringContaining(text) as unknown,
    });
  });
});
