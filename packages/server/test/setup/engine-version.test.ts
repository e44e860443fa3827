import { expect, test } from "vitest";
import { isNewEnough, parseEngineVersion } from "../../src/setup/engine/version.ts";

test.each([
  ["runsc version 0.0~20240729.0\nspec: 1.0.2-dev\n", "20240729.0", "20240729", true],
  ["runsc version release-20240916.0\nspec: 1.1.0-rc.1\n", "20240916.0", "20240916", true],
  ["runsc version release-20240916.0-12-gabcdef123456\n", "20240916.0-12-gabcdef123456", "20240916", true],
  [
    "runsc version 0.0.0-20260701204157-69c2d17aea96\nspec: 1.2.1\n",
    "0.0.0-20260701204157-69c2d17aea96",
    "20260701",
    true,
  ],
  ["runsc version 0.0~20221219.0\n", "20221219.0", "20221219", false],
  ["runsc version VERSION_MISSING\n", "VERSION_MISSING", undefined, false],
])("%j", (output, name, date, newEnough) => {
  const version = parseEngineVersion(output);
  expect(version).toEqual({ name, date });
  expect(isNewEnough(version!)).toBe(newEnough);
});

test.each(["", "runsc version \n", "docker version 20240729", "not runsc"])("%j is not runsc's output", (output) => {
  expect(parseEngineVersion(output)).toBeUndefined();
});
