const SEGMENT = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}$/;

/** A member's name is a relative path that stays inside the folder it is extracted to. */
export function isMemberName(name: string): boolean {
  return name.split("/").every((segment) => SEGMENT.test(segment));
}
