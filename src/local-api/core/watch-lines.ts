import { apiVersionOf } from '../../api/index.ts';
import type { WatchLine } from './answers.ts';
import type { ObjectChange, ResourceEntry } from './contract.ts';
import { shown } from './reads.ts';
import { roughSize } from './rough-size.ts';
import type { ObjectTest } from './selectors.ts';
import { frozen, type StoredObject } from './stored-object.ts';

/** One change in the eyes of those who watch; what several of them see is made once. */
export class ChangeLines {
  readonly #change: ObjectChange;
  #leaving: StoredObject | undefined;
  #bytes: number | undefined;

  constructor(change: ObjectChange) {
    this.#change = change;
  }

  get version(): number {
    return this.#change.version;
  }

  /** About what it takes in memory to keep it for somebody who is slow. */
  get bytes(): number {
    this.#bytes ??= roughSize(this.#change.object);
    return this.#bytes;
  }

  /** To a watcher that selects, an object it stops to select is gone, and one it begins to select is new. */
  for(entry: ResourceEntry, wanted: ObjectTest): WatchLine | undefined {
    const { type, object, before } = this.#change;
    const was = before !== undefined && wanted(before);
    const is = type !== 'DELETED' && wanted(object);
    if (is) return { type: was ? 'MODIFIED' : 'ADDED', object: shown(entry, object) };
    if (!was) return undefined;
    const last = type === 'DELETED' ? object : this.#lastSeen(before);
    return { type: 'DELETED', object: shown(entry, last) };
  }

  /** As it was while it was selected, with the version of the change that ended that. */
  #lastSeen(before: StoredObject): StoredObject {
    this.#leaving ??= frozen({
      ...before,
      metadata: { ...before.metadata, resourceVersion: String(this.#change.version) },
    });
    return this.#leaving;
  }
}

/** Marks the bookmark after the last of the objects that were there. */
const initialEnd = { 'k8s.io/initial-events-end': 'true' };

export function bookmark(
  { resource }: ResourceEntry,
  version: number,
  at: 'initial-end' | 'now-and-then',
): WatchLine {
  const annotations = at === 'initial-end' ? { annotations: initialEnd } : {};
  return {
    type: 'BOOKMARK',
    object: frozen({
      kind: resource.kind,
      apiVersion: apiVersionOf(resource),
      metadata: { resourceVersion: String(version), ...annotations },
    }),
  };
}
