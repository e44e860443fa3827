import { expect, test } from "vitest";
import { PreviewAddresses } from "../../../src/gateway/preview/preview-address.ts";

const ID = "3f2a9c01-0000-4000-8000-000000000001";
const own = new PreviewAddresses({ domain: "https://preview.example.net", ownPort: () => 8080 });

test.each([
  [`8000-${ID}.localhost`, 8000],
  [`8000-${ID}.localhost:8080`, 8000],
  [`65535-${ID.toUpperCase()}.LocalHost.:1`, 65_535],
  [`3000-${ID}.preview.example.net`, 3000],
])("%s is a port of a sandbox", (host, port) => {
  expect(own.targetOf(host)).toEqual({ sandboxId: ID, port });
});

test.each([
  undefined,
  "",
  "localhost",
  "127.0.0.1:8080",
  "[::1]:8080",
  "preview.example.net",
  "example.net",
  `8000-${ID}.localhost.evil.test`,
  `8000-${ID}.preview.example.net.evil.test`,
  `8000-${ID}.xlocalhost`,
  `0-${ID}.localhost`,
  `65536-${ID}.localhost`,
  `08000-${ID}.localhost`,
  `8000-${ID}x.localhost`,
  `8000-${ID}.x.localhost`,
  `8000-../../etc.localhost`,
])("%s is not a preview's host", (host) => {
  expect(own.targetOf(host)).toBeUndefined();
});

test("everything else below the domain of previews is theirs, and nothing", () => {
  for (const label of ["www", `8000-${ID}.x`, `0-${ID}`, "8000-"]) {
    expect(own.targetOf(`${label}.preview.example.net`)).toBeNull();
  }
});

test("URLs are below the domain, with its scheme and port, or below localhost", () => {
  const target = { sandboxId: ID, port: 3000 };
  expect(own.urlOf(target)).toBe(`https://3000-${ID}.preview.example.net/`);
  const ported = new PreviewAddresses({ domain: "http://preview.test:9000", ownPort: () => 1 });
  expect(ported.urlOf(target)).toBe(`http://3000-${ID}.preview.test:9000/`);
  expect(ported.targetOf(`3000-${ID}.preview.test:9000`)).toEqual(target);
  const local = new PreviewAddresses({ domain: undefined, ownPort: () => 8080 });
  expect(local.urlOf(target)).toBe(`http://3000-${ID}.localhost:8080/`);
  expect(local.targetOf(`3000-${ID}.preview.test`)).toBeUndefined();
});
