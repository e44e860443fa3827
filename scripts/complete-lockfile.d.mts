export function missingOptional(
  packages: Readonly<Record<string, object>>,
): [name: string, version: string, wantedBy: object][];
