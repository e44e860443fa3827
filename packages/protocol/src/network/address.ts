/** An IP address as a number. An IPv4 address in an IPv6 form (mapped, compatible, NAT64) is that IPv4 address. */
export interface IpAddress {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

/** The addresses that begin with the same `prefix` bits. */
export interface IpRange {
  readonly start: IpAddress;
  readonly prefix: number;
}

/** Undefined: the text is not an address in its usual form. An IPv6 zone (`%eth0`) is not part of one. */
export function parseAddress(text: string): IpAddress | undefined {
  const four = parseFour(text);
  if (four !== undefined) return { bits: 32, value: four };
  const six = parseSix(text);
  return six === undefined ? undefined : unwrapped(six);
}

/** An address or CIDR notation, such as `10.0.0.0/8`; bits after the prefix are ignored. */
export function parseRange(text: string): IpRange | undefined {
  const [, address = "", prefixText] = /^([^/]*)(?:\/([0-9]{1,3}))?$/.exec(text) ?? [];
  const [four, six] = [parseFour(address), parseSix(address)];
  const bits = four === undefined ? 128 : 32;
  const value = four ?? six;
  if (value === undefined) return undefined;
  const prefix = prefixText === undefined ? bits : Number(prefixText);
  if (prefix > bits) return undefined;
  const mapped = bits === 128 && prefix >= 96 ? unwrapped(value) : undefined;
  if (mapped?.bits === 32) return { start: mapped, prefix: prefix - 96 };
  return { start: { bits, value }, prefix };
}

export function contains({ start, prefix }: IpRange, { bits, value }: IpAddress): boolean {
  const rest = BigInt(bits - prefix);
  return bits === start.bits && value >> rest === start.value >> rest;
}

function parseFour(text: string): bigint | undefined {
  // No leading zeros: some programs read them as octal numbers.
  if (!/^(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})$/.test(text)) return undefined;
  const parts = text.split(".").map(Number);
  return parts.some((part) => part > 255) ? undefined : parts.reduce((sum, part) => sum * 256n + BigInt(part), 0n);
}

function parseSix(text: string): bigint | undefined {
  const tail = /:([0-9.]*\.[0-9.]*)$/.exec(text)?.[1];
  const four = tail === undefined ? undefined : parseFour(tail);
  if (tail !== undefined && four === undefined) return undefined;
  const whole =
    four === undefined
      ? text
      : `${text.slice(0, -(tail?.length ?? 0))}${(four >> 16n).toString(16)}:${(four & 0xffffn).toString(16)}`;
  const halves = whole.split("::");
  if (halves.length > 2) return undefined;
  const [left = [], right] = halves.map((half) => (half === "" ? [] : half.split(":")));
  const groups =
    right === undefined
      ? left
      : [...left, ...Array<string>(Math.max(0, 8 - left.length - right.length)).fill("0"), ...right];
  // A `::` stands for at least one group.
  if (groups.length !== 8 || (right !== undefined && left.length + right.length > 7)) return undefined;
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined;
  return groups.reduce((sum, group) => (sum << 16n) + BigInt(Number.parseInt(group, 16)), 0n);
}

/** `::ffff:0:0/96`, `::/96` (but neither `::` nor `::1`) and `64:ff9b::/96` lead to an IPv4 address. */
function unwrapped(value: bigint): IpAddress {
  const start = value >> 32n;
  const inside = start === 0xffffn || (start === 0n && value > 1n) || start === 0x64_ff9b_0000_0000_0000_0000n;
  return inside ? { bits: 32, value: value & 0xffff_ffffn } : { bits: 128, value };
}
