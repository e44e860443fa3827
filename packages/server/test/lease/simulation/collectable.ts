/** A stored object that belongs to a sandbox, by the epoch of the instance that wrote it. */
export interface StoredObject {
  readonly name: string;
  readonly epoch: number;
}

/**
 * The objects that an owner may remove after a commit, without reading a clock: those of earlier epochs that its head
 * does not reach. Objects of its own epoch may be part of a publish in progress. A checkpoint references only its
 * parent's closure and its own epoch, so no later head reaches what an earlier one did not. Therefore an owner that was
 * overtaken meanwhile, and does not know it, removes nothing that anyone needs.
 */
export function collectable(
  objects: Iterable<StoredObject>,
  owner: { readonly epoch: number; readonly reachable: ReadonlySet<string> },
): readonly string[] {
  const names: string[] = [];
  for (const { name, epoch } of objects) {
    if (epoch < owner.epoch && !owner.reachable.has(name)) names.push(name);
  }
  return names;
}
