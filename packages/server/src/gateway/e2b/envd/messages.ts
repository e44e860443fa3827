import { z } from "zod";

/**
 * The requests of envd's two services, as proto3 JSON: a missing field or null is the default, numbers may be text, and
 * unknown fields are ignored.
 */
const text = z
  .string()
  .nullish()
  .transform((value) => value ?? "");
const flag = z
  .boolean()
  .nullish()
  .transform((value) => value ?? false);
const MAX_UINT32 = 0xffff_ffff;
const uint32 = z
  .union([
    z.number(),
    z
      .string()
      .regex(/^\d{1,10}$/)
      .transform(Number),
  ])
  .nullish()
  .transform((value) => value ?? 0)
  .pipe(z.int().min(0).max(MAX_UINT32));
const bytes = z.base64().transform((value) => Buffer.from(value, "base64"));

const selector = z.object({ pid: uint32, tag: z.string().nullish() });
const size = z.object({ cols: uint32, rows: uint32 });
const pty = z.object({ size: size.nullish() });
const input = z.object({ stdin: bytes.nullish(), pty: bytes.nullish() });

/** The settings of a started process. */
const config = z.object({
  cmd: text,
  args: z
    .array(z.string())
    .nullish()
    .transform((value) => value ?? []),
  envs: z
    .record(z.string(), z.string())
    .nullish()
    .transform((value) => value ?? {}),
  cwd: z.string().nullish(),
});

export const startMessage = z.object({
  process: config.nullish(),
  pty: pty.nullish(),
  tag: z.string().nullish(),
  stdin: z.boolean().nullish(),
});
export const selectorMessage = z.object({ process: selector.nullish() });
export const inputMessage = z.object({ process: selector.nullish(), input: input.nullish() });
export const signalMessage = z.object({
  process: selector.nullish(),
  signal: z.union([z.string(), z.number()]).nullish(),
});
export const updateMessage = z.object({ process: selector.nullish(), pty: pty.nullish() });
export const inputStreamMessage = z.object({
  start: z.object({ process: selector.nullish() }).nullish(),
  data: z.object({ input: input.nullish() }).nullish(),
  keepalive: z.object({}).nullish(),
});
export const emptyMessage = z.object({});

export const pathMessage = z.object({ path: text });
export const listMessage = z.object({ path: text, depth: uint32 });
export const moveMessage = z.object({ source: text, destination: text });
export const watchMessage = z
  .object({ path: text, recursive: flag, includeEntry: flag, include_entry: flag })
  .transform(({ path, recursive, ...entry }) => ({
    path,
    recursive,
    includeEntry: entry.includeEntry || entry.include_entry,
  }));
export const watcherMessage = z
  .object({ watcherId: text, watcher_id: text })
  .transform((message) => ({ watcherId: message.watcherId || message.watcher_id }));

export type ProcessConfig = z.infer<typeof config>;
export type Selector = z.infer<typeof selector>;
