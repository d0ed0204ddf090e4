import assert from 'node:assert/strict';

/** One state of one object; no number when it is not there. */
export interface State {
  readonly version: number;
  readonly number: number | undefined;
}

export const absent: State = { version: 0, number: undefined };

/** What is known of all objects: what was acknowledged last of each, and what nobody has answered for. */
export class WriteLedger {
  readonly #last = new Map<string, State>();
  readonly #trying = new Map<string, number | undefined>();
  /** By version. */
  readonly #given = new Map<number, string>();
  readonly #acknowledged = new Set<number>();
  #newest = 0;
  #writes = 0;

  get newest(): number {
    return this.#newest;
  }

  /** How many were acknowledged. */
  get writes(): number {
    return this.#writes;
  }

  get acknowledged(): ReadonlySet<number> {
    return this.#acknowledged;
  }

  stateOf(name: string): State {
    return this.#last.get(name) ?? absent;
  }

  /** Before it is sent. Without a number it is a deletion. */
  trying(name: string, number: number | undefined): void {
    this.#trying.set(name, number);
  }

  /** Of a deletion no version is told. */
  wrote(name: string, { version, number }: State): void {
    this.#trying.delete(name);
    this.#last.set(name, { version, number });
    this.#writes++;
    if (number === undefined) return;
    this.saw(version, name, number);
    this.#acknowledged.add(version);
  }

  /** A version says one thing, to whoever sees it and whenever. */
  saw(version: number, name: string, number: number | undefined): void {
    const told = `${name} ${number === undefined ? 'gone' : number}`;
    const before = this.#given.get(version) ?? told;
    assert.equal(told, before, `version ${version} was given twice`);
    this.#given.set(version, told);
    this.#newest = Math.max(this.#newest, version);
  }

  /**
   * Holds what is there against what was acknowledged: it is that, or what was tried last and nobody answered for.
   * From then on it is what is known.
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
