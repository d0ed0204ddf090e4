import assert from 'node:assert/strict';
import { type Random, randomInt } from '../../src/lib/index.ts';
import type { Answer, ApiCaller } from './api-caller.ts';
import type { WriteLedger } from './write-ledger.ts';

/** Lets writers continue, or blocks them. */
export class Gate {
  #opened: PromiseWithResolvers<void> | undefined = Promise.withResolvers<void>();
  #waiting = 0;

  /** The number of writers that are blocked. */
  get waiting(): number {
    return this.#waiting;
  }

  async pass(): Promise<void> {
    if (this.#opened === undefined) return;
    this.#waiting++;
    await this.#opened.promise;
    this.#waiting--;
  }

  open(): void {
    this.#opened?.resolve();
    this.#opened = undefined;
  }

  close(): void {
    this.#opened ??= Promise.withResolvers();
  }
}

export interface WriterOptions {
  readonly api: ApiCaller;
  /** The API path of all config maps of the namespace. */
  readonly path: string;
  /** The names of the config maps that only this writer changes. */
  readonly names: readonly string[];
  readonly ledger: WriteLedger;
  readonly gate: Gate;
  readonly random: Random;
}

const filling = 'x'.repeat(200);

/** Creates, updates and deletes config maps, one request at a time, until the writer is stopped. */
export async function writeConfigMaps(options: WriterOptions, signal: AbortSignal): Promise<void> {
  const { names, random, gate } = options;
  for (let number = 1; !signal.aborted; number++) {
    const name = names[randomInt(random, names.length)] ?? '';
    await gate.pass();
    if (signal.aborted) return;
    try {
      await write(options, name, number);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      // No response arrived: the result of the request is unknown until the object is read.
      gate.close();
    }
  }
}

async function write(
  { api, path, ledger, random }: WriterOptions,
  name: string,
  number: number,
): Promise<void> {
  const isThere = ledger.stateOf(name).number !== undefined;
  const data = { number: String(number), filling };
  if (!isThere) {
    ledger.trying(name, number);
    const created = await api.call('POST', path, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name },
      data,
    });
    ledger.wrote(name, { version: versionOf(created, 201), number });
  } else if (randomInt(random, 10) === 0) {
    ledger.trying(name, undefined);
    const removed = await api.call('DELETE', `${path}/${name}`);
    assert.equal(removed.status, 200, JSON.stringify(removed.body));
    ledger.wrote(name, { version: 0, number: undefined });
  } else {
    ledger.trying(name, number);
    const changed = await api.call('PATCH', `${path}/${name}`, { data });
    ledger.wrote(name, { version: versionOf(changed, 200), number });
  }
}

function versionOf({ status, body }: Answer, expected: number): number {
  assert.equal(status, expected, JSON.stringify(body));
  return Number((body['metadata'] as { readonly resourceVersion: string }).resourceVersion);
}
