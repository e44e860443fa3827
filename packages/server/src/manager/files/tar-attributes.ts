/**
 * Binary values as GNU tar and star write them, and in base64 as libarchive does, because tar readers decode them as
 * text.
 */
const BINARY = "SCHILY.xattr.";
const ENCODED = "LIBARCHIVE.xattr.";
const PREFIX = "user.";

export type Attributes = ReadonlyMap<string, Uint8Array>;

/** Pax header records for the extended attributes of an entry. Each character of a name is one byte. */
export function encodeAttributes(attributes: Attributes): Buffer {
  const records: Buffer[] = [];
  for (const [name, value] of attributes) {
    const plain = Buffer.from(BINARY + name.replaceAll("%", "%25").replaceAll("=", "%3D"), "latin1");
    records.push(record(plain, value));
    records.push(
      record(Buffer.from(ENCODED + percentEncoded(name)), Buffer.from(Buffer.from(value).toString("base64"))),
    );
  }
  return Buffer.concat(records);
}

export interface ReadAttributes {
  readonly attributes: Attributes;
  /** Attributes whose values did not survive being decoded as text. */
  readonly unreadable: number;
}

/** Parses the pax records of an entry, which were decoded as UTF-8. Only user attributes count. */
export function readAttributes(pax: Readonly<Record<string, string>>): ReadAttributes {
  const attributes = new Map<string, Uint8Array>();
  let unreadable = 0;
  const records = Object.entries(pax);
  // A writer that uses this form uses it for all attributes.
  const encoded = records.filter(([key]) => key.startsWith(ENCODED));
  for (const [key, value] of encoded) {
    attributes.set(percentDecoded(key.slice(ENCODED.length)), Buffer.from(value, "base64"));
  }
  for (const [key, value] of encoded.length > 0 ? [] : records.filter(([name]) => name.startsWith(BINARY + PREFIX))) {
    const name = Buffer.from(key.slice(BINARY.length)).toString("latin1").replaceAll("%3D", "=").replaceAll("%25", "%");
    if (`${key}${value}`.includes("\uFFFD")) unreadable += 1;
    else attributes.set(name, Buffer.from(value));
  }
  return { attributes: new Map([...attributes].filter(([name]) => name.startsWith(PREFIX))), unreadable };
}

/** `LENGTH KEY=VALUE\n`, where the length counts its own digits. */
function record(key: Buffer, value: Uint8Array): Buffer {
  const rest = key.length + value.length + 3;
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length += 1;
  return Buffer.concat([Buffer.from(`${length} `), key, Buffer.from("="), value, Buffer.from("\n")]);
}

function percentEncoded(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_.-]/g, (character) => {
    const code = character.charCodeAt(0).toString(16).toUpperCase();
    return `%${code.padStart(2, "0")}`;
  });
}

function percentDecoded(name: string): string {
  return name.replaceAll(/%([0-9A-Fa-f]{2})/g, (_whole, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
}
