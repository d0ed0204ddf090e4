import assert from 'node:assert/strict';

/** One state of one object; `number` is undefined if the object does not exist. */
export interface State {
  readonly version: number;
  readonly number: number | undefined;
}

export const absent: State = { version: 0, number: undefined };

/**
 * The expected state of all objects: the last acknowledged write of each, and the writes without a
 * response.
 */
export class WriteLedger {
  readonly #last = new Map<string, State>();
  readonly #trying = new Map<string, number | undefined>();
  /** The states of objects that the API has returned, by resourceVersion. */
  readonly #given = new Map<number, string>();
  readonly #acknowledged = new Set<number>();
  #newest = 0;
  #writes = 0;

  get newest(): number {
    return this.#newest;
  }

  /** The number of acknowledged writes. */
  get writes(): number {
    return this.#writes;
  }

  get acknowledged(): ReadonlySet<number> {
    return this.#acknowledged;
  }

  stateOf(name: string): State {
    return this.#last.get(name) ?? absent;
  }

  /**
   * Records a write; must be called before it is sent. Without a number the write is a deletion.
   */
  trying(name: string, number: number | undefined): void {
    this.#trying.set(name, number);
  }

  /** The response of a deletion contains no version. */
  wrote(name: string, { version, number }: State): void {
    this.#trying.delete(name);
    this.#last.set(name, { version, number });
    this.#writes++;
    if (number === undefined) return;
    this.saw(version, name, number);
    this.#acknowledged.add(version);
  }

  /** Records an observed state: a version must have the same state for every reader at any time. */
  saw(version: number, name: string, number: number | undefined): void {
    const reported = `${name} ${number === undefined ? 'gone' : number}`;
    const before = this.#given.get(version) ?? reported;
    assert.equal(reported, before, `version ${version} was given twice`);
    this.#given.set(version, reported);
    this.#newest = Math.max(this.#newest, version);
  }

  /**
   * Compares the actual state of the objects with the expected one: the last acknowledged write, or
   * the last write without a response. Afterwards the actual state is used as the expected one.
   */
  settle(found: ReadonlyMap<string, State>): void {
    for (const name of new Set([...this.#last.keys(), ...this.#trying.keys(), ...found.keys()])) {
      const last = this.stateOf(name);
      const now = found.get(name) ?? absent;
      if (now.number !== last.number || (now.number !== undefined && now.version !== last.version)) {
        assert.ok(
          this.#trying.has(name),
          `${name} is ${told(now)}, and ${told(last)} was acknowledged last; nothing else was tried`,
        );
        assert.equal(now.number, this.#trying.get(name), `${name} is ${told(now)} after ${told(last)}`);
        assert.ok(now.number === undefined || now.version > last.version, `${name} went back`);
      }
      if (now.number !== undefined) this.saw(now.version, name, now.number);
      this.#last.set(name, now);
      this.#trying.delete(name);
    }
  }
}

function told({ version, number }: State): string {
  return number === undefined ? 'not there' : `number ${number} in version ${version}`;
}
