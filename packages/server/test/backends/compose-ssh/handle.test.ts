import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { fromHandle, toHandle } from "../../../src/backends/compose-ssh/handle.ts";
import { artifactPath } from "../../../src/backends/compose-ssh/remote-paths.ts";
import { sampleProject } from "./sample-project.ts";

const sandboxId = randomUUID();
const project = sampleProject(sandboxId, { host: "h", user: "u", port: "2222", base_dir: "/srv/boxes" });
const { placement } = project;

test("a handle is plain strings, and restores the project after JSON", () => {
  const handle = JSON.parse(JSON.stringify(toHandle(project))) as Record<string, string>;
  expect(Object.values(handle).every((value) => typeof value === "string")).toBe(true);
  expect(fromHandle(handle)).toMatchObject({ ...project, placement: { ...placement, service: "app" } });
});

test("paths in a handle are not trusted", () => {
  const forged = { ...toHandle(project), remote_dir: "/etc", project: "other" };
  expect(fromHandle(forged)).toMatchObject({
    remoteDir: `/srv/boxes/sandboxes/${sandboxId}`,
    project: project.project,
  });
  for (const wrong of [{ sandbox_id: "../../etc" }, { base_dir: "/" }, { base_dir: "/a/../b" }, { sandbox_id: "" }]) {
    expect(() => fromHandle({ ...toHandle(project), ...wrong })).toThrow();
  }
  expect(() => artifactPath("/srv/boxes", "../../x")).toThrow(expect.objectContaining({ code: "image_damaged" }));
});
