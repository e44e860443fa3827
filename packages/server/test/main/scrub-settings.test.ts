import { expect, test } from "vitest";
import { parseConfig } from "../../src/main/config.ts";
import { scrubSettings } from "../../src/main/scrub-settings.ts";

const settings = (flags: Record<string, string>) =>
  scrubSettings(parseConfig({ flags, env: {}, homeDirectory: "/home/ada" }));

test("a directory is scrubbed once a week, a bucket on request", () => {
  expect(settings({ store: "/srv/store" })).toEqual({ everyMs: 7 * 86_400_000, rateMb: 20 });
  expect(settings({ store: "s3://bucket/prefix" })).toEqual({ everyMs: undefined, rateMb: 20 });
  expect(settings({ store: "gs://bucket", scrubEvery: "30d", scrubRateMb: "0" })).toEqual({
    everyMs: 30 * 86_400_000,
    rateMb: undefined,
  });
  expect(settings({ store: "/srv/store", scrubEvery: "off" }).everyMs).toBeUndefined();
  expect(() => settings({ scrubEvery: "5s" })).toThrow(/--scrub-every.*from 1m to 3650d/);
});
