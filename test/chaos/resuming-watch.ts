import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import type { ApiCaller } from './api-caller.ts';
import { absent, type State, type WriteLedger } from './write-ledger.ts';

interface WatchedObject {
  readonly code?: number;
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly data?: { readonly number: string };
}

const againMs = 20;

/**
 * Watches config maps and resumes at the last received version after every interruption by the
 * server.
 */
export class ResumingWatch {
  readonly #api: ApiCaller;
  readonly #path: string;
  readonly #ledger: WriteLedger;
  readonly #states = new Map<string, State>();
  readonly #seen = new Set<number>();
  #version: number;
  /** The version of the last list, which contains all earlier changes. */
  #listed: number;
  #resumed = 0;
  #expired = 0;

  constructor(api: ApiCaller, path: string, ledger: WriteLedger, version: number) {
    this.#api = api;
    this.#path = path;
    this.#ledger = ledger;
    this.#version = version;
    this.#listed = version;
  }

  get version(): number {
    return this.#version;
  }

  get figures(): { readonly events: number; readonly resumed: number; readonly expired: number } {
    return { events: this.#seen.size, resumed: this.#resumed, expired: this.#expired };
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const outcome = await this.#watch(signal).catch((error) => {
        if (error instanceof assert.AssertionError) throw error;
        return 'cut' as const;
      });
      if (signal.aborted) return;
      if (outcome === 'expired') await this.#list();
      this.#resumed++;
      await pause(againMs);
    }
  }

  /**
   * Returns the acknowledged versions that the watch has not delivered; versions contained in a
   * list are excluded.
   */
  missing(): readonly number[] {
    return [...this.#ledger.acknowledged].filter(
      (version) => version > this.#listed && !this.#seen.has(version),
    );
  }

  async #watch(signal: AbortSignal): Promise<'cut' | 'expired'> {
    const query = `watch=true&allowWatchBookmarks=true&resourceVersion=${this.#version}`;
    const response = await this.#api.stream(`${this.#path}?${query}`, signal);
    if (response.statusCode !== 200) return response.statusCode === 410 ? 'expired' : 'cut';
    for await (const line of createInterface({ input: response })) {
      if (line === '') continue;
      const { type, object } = JSON.parse(line) as { type: string; object: WatchedObject };
      if (type === 'ERROR') {
        assert.equal(object.code, 410, `a watch ends with ${line}`);
        return 'expired';
      }
      this.#take(type, object);
    }
    return 'cut';
  }

  #take(type: string, { metadata, data }: WatchedObject): void {
    const version = Number(metadata.resourceVersion);
    assert.ok(
      version > this.#version || (type === 'BOOKMARK' && version === this.#version),
      `version ${version} comes after ${this.#version}`,
    );
    this.#version = version;
    if (type === 'BOOKMARK') return;
    const { name } = metadata;
    const before = this.#states.get(name) ?? absent;
    const number = type === 'DELETED' ? undefined : Number(data?.number);
    assert.equal(before.number === undefined, type === 'ADDED', `${name} is ${type} in version ${version}`);
    if (number !== undefined) assert.ok(number > (before.number ?? 0), `${name} goes back to ${number}`);
    this.#states.set(name, { version, number });
    this.#seen.add(version);
    this.#ledger.saw(version, name, number);
  }

  async #list(): Promise<void> {
    this.#expired++;
    const { status, body } = await this.#api.call('GET', this.#path);
    if (status !== 200) return;
    const { items, metadata } = body as unknown as {
      readonly items: readonly WatchedObject[];
      readonly metadata: { readonly resourceVersion: string };
    };
    this.#states.clear();
    for (const { metadata: own, data } of items)
      this.#states.set(own.name, { version: Number(own.resourceVersion), number: Number(data?.number) });
    this.#version = this.#listed = Number(metadata.resourceVersion);
  }
}
