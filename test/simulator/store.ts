import { GrpcError } from '../../src/protocols/grpc/index.ts';
import type { ContainerRecord, SandboxRecord } from './records.ts';

/** The result of a search by ID. */
export type Found<T> =
  | { readonly kind: 'one'; readonly record: T }
  | { readonly kind: 'none' }
  /** The ID is invalid: it is empty, or the prefix of several IDs. */
  | { readonly kind: 'bad'; readonly why: string };

/** Records by ID; an ID may be shortened as long as it is unique. */
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

/** Names that are each reserved for one sandbox or container, also during its creation. */
export class Names {
  readonly #owners = new Map<string, string>();

  /** Reserves a name; returns the current owner if the name is already in use. */
  reserve(name: string, id: string): string | undefined {
    const owner = this.#owners.get(name);
    if (owner !== undefined) return owner;
    this.#owners.set(name, id);
    return undefined;
  }

  /** Releases a name; does nothing if it now belongs to another owner. */
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

/** The sandbox and container records of the simulated runtime. */
export class Store {
  readonly sandboxes = new Index<SandboxRecord>();
  readonly containers = new Index<ContainerRecord>();
  readonly sandboxNames = new Names();
  readonly containerNames = new Names();
  /**
   * Records that are on disk but not complete: it is random which of them survive a kill of the
   * runtime.
   */
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

/**
 * The found record; throws the error of the real runtime if there is none, with `context` before
 * "not found".
 */
export function required<T>(found: Found<T>, context: string): T {
  if (found.kind === 'one') return found.record;
  throw found.kind === 'none'
    ? new GrpcError('NOT_FOUND', `${context}: not found`)
    : new GrpcError('UNKNOWN', `${context}: ${found.why}`);
}
