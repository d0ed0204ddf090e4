import { GrpcError } from '../../src/protocols/grpc/index.ts';
import type { ContainerRecord, SandboxRecord } from './records.ts';

/** What became of a search by id. */
export type Found<T> =
  | { readonly kind: 'one'; readonly record: T }
  | { readonly kind: 'none' }
  /** The id is no id: empty, or the beginning of several. */
  | { readonly kind: 'bad'; readonly why: string };

/** Records by id; an id may be shortened as long as only one begins with it. */
class Index<T extends { readonly id: string }> {
  readonly #records = new Map<string, T>();

  find(id: string): Found<T> {
    const exact = this.#records.get(id);
    if (exact !== undefined) return { kind: 'one', record: exact };
    if (id === '') return { kind: 'bad', why: "Prefix can't be empty" };
    let found: T | undefined;
    for (const record of this.#records.values()) {
      if (!record.id.startsWith(id)) continue;
      if (found !== undefined) {
        return { kind: 'bad', why: `multiple IDs found with provided prefix: ${id}` };
      }
      found = record;
    }
    return found === undefined ? { kind: 'none' } : { kind: 'one', record: found };
  }

  has(record: T): boolean {
    return this.#records.get(record.id) === record;
  }

  add(record: T): void {
    this.#records.set(record.id, record);
  }

  delete(record: T): void {
    this.#records.delete(record.id);
  }

  clear(): void {
    this.#records.clear();
  }

  all(): readonly T[] {
    return [...this.#records.values()];
  }

  get size(): number {
    return this.#records.size;
  }
}

/** Names that belong to one sandbox or container at a time, also while it is being made. */
export class Names {
  readonly #owners = new Map<string, string>();

  /** Answers whose it is if it is taken. */
  reserve(name: string, id: string): string | undefined {
    const owner = this.#owners.get(name);
    if (owner !== undefined) return owner;
    this.#owners.set(name, id);
    return undefined;
  }

  /** Does nothing when the name belongs to somebody else by now. */
  release(name: string, id: string): void {
    if (this.#owners.get(name) === id) this.#owners.delete(name);
  }

  clear(): void {
    this.#owners.clear();
  }

  get size(): number {
    return this.#owners.size;
  }
}

/** Everything the runtime keeps about sandboxes and containers. */
export class Store {
  readonly sandboxes = new Index<SandboxRecord>();
  readonly containers = new Index<ContainerRecord>();
  readonly sandboxNames = new Names();
  readonly containerNames = new Names();
  /** On disk but not finished: what a dying runtime leaves behind of them is up to chance. */
  readonly startingSandboxes = new Set<SandboxRecord>();
  readonly creatingContainers = new Set<ContainerRecord>();

  containersOf(sandbox: SandboxRecord): readonly ContainerRecord[] {
    return this.containers.all().filter((container) => container.sandbox === sandbox);
  }

  clear(): void {
    for (const part of [this.sandboxes, this.containers, this.sandboxNames, this.containerNames])
      part.clear();
    this.startingSandboxes.clear();
    this.creatingContainers.clear();
  }
}

/** The record, or the error a runtime gives; `context` is what it says before "not found". */
export function required<T>(found: Found<T>, context: string): T {
  if (found.kind === 'one') return found.record;
  throw found.kind === 'none'
    ? new GrpcError('NOT_FOUND', `${context}: not found`)
    : new GrpcError('UNKNOWN', `${context}: ${found.why}`);
}
