import type { SandboxSettings } from "@sandboxer/client";
import { commandLine, connection, curlLine, type Spellings } from "../../../actions/spellings.ts";

/** The form as typed: everything is text, and empty means that the profile or the server decides. */
export interface Draft {
  readonly name: string;
  readonly profile: string;
  readonly backend: string;
  readonly image: string;
  readonly key: string;
  readonly ttl: string;
  readonly idleTimeout: string;
  readonly cpus: string;
  readonly memoryMb: string;
  readonly diskMb: string;
  readonly network: "" | "none" | "open" | "list";
  /** With the network `list`: the hosts that may be reached. */
  readonly allow: string;
  readonly labels: Readonly<Record<string, string>>;
}

export const EMPTY_DRAFT: Draft = {
  name: "",
  profile: "",
  backend: "",
  image: "",
  key: "",
  ttl: "",
  idleTimeout: "",
  cpus: "",
  memoryMb: "",
  diskMb: "",
  network: "",
  allow: "",
  labels: {},
};

export function settingsOf(draft: Draft): SandboxSettings {
  const { network, allow, labels, cpus, memoryMb, diskMb, ...texts } = draft;
  const resources = given({ cpus: numberOf(cpus), memoryMb: numberOf(memoryMb), diskMb: numberOf(diskMb) });
  return {
    ...given(Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, text === "" ? undefined : text]))),
    ...(network === "" ? {} : { network: network === "list" ? { allow: entriesOf(allow) } : network }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(Object.keys(resources).length === 0 ? {} : { resources }),
  };
}

/** The form's settings in other forms. */
export function creationSpellings(draft: Draft): Spellings {
  const settings = settingsOf(draft);
  const { name, profile, backend, image, key, ttl, idleTimeout, network, labels = {} } = settings;
  const flag = (option: string, value: string | number | undefined): string[] =>
    value === undefined ? [] : [`--${option}`, String(value)];
  const policy = typeof network === "object" ? (network.allow ?? []).join(",") : network;
  const words = [
    ...flag("name", name),
    ...flag("profile", profile),
    ...flag("backend", backend),
    ...flag("image", image),
    ...flag("key", key),
    ...flag("ttl", ttl),
    ...flag("idle-timeout", idleTimeout),
    ...flag("cpus", settings.resources?.cpus),
    ...flag("memory", settings.resources?.memoryMb),
    ...flag("disk", settings.resources?.diskMb),
    ...flag("network", policy),
    ...Object.entries(labels).flatMap(([label, value]) => ["--label", `${label}=${value}`]),
  ];
  const [verb, path] = key === undefined ? ["create", "/v1/sandboxes"] : ["acquire", "/v1/sandboxes/acquire"];
  const options = Object.entries(settings).map(([field, value]) => `  ${field}: ${JSON.stringify(value)},\n`);
  return {
    cli: commandLine("create", ...words),
    sdk: [
      'import { Sandbox } from "@sandboxer/client";',
      "",
      `const sandbox = await Sandbox.${verb}({\n  ${connection()},\n${options.join("")}});`,
    ].join("\n"),
    curl: curlLine({ method: "POST", path, body: snakeCase(settings) }, location.origin),
  };
}

function entriesOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((entry) => entry !== "");
}

function numberOf(text: string): number | undefined {
  const value = Number(text);
  return text.trim() === "" || Number.isNaN(value) ? undefined : value;
}

function given<Fields extends object>(fields: Fields): { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

/** Field names in wire form; labels are the user's own. */
function snakeCase({ labels, resources, ...rest }: SandboxSettings): object {
  const names = (fields: object): object =>
    Object.fromEntries(
      Object.entries(fields).map(([key, value]) => [
        key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        value,
      ]),
    );
  return {
    ...names(rest),
    ...(resources === undefined ? {} : { resources: names(resources) }),
    ...(labels === undefined ? {} : { labels }),
  };
}
