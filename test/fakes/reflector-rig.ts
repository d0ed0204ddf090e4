import assert from 'node:assert/strict';
import {
  type ApiClient,
  type ApiList,
  type ApiObject,
  apiError,
  apiResources,
  type ListQuery,
  Reflector,
  type ReflectorOptions,
  type WatchEvent,
  type WatchQuery,
} from '../../src/api/index.ts';
import { collectLogs, KubelingError, seededRandom } from '../../src/lib/index.ts';
import { settle, VirtualClock } from './virtual-clock.ts';

export interface Thing extends ApiObject {
  readonly immutable?: boolean;
}

/** The server's side of one watch: the test decides which events are sent, and when. */
export class ScriptedWatch {
  readonly query: WatchQuery;
  readonly #signal: AbortSignal;
  readonly #line: (WatchEvent<Thing> | Error | 'end')[] = [];
  #wake: () => void = () => {};
  closed = false;

  constructor(query: WatchQuery, signal: AbortSignal) {
    this.query = query;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#wake(), { once: true });
  }

  send(...events: WatchEvent<Thing>[]): void {
    this.#line.push(...events);
    this.#wake();
  }

  fail(error: Error): void {
    this.#line.push(error);
    this.#wake();
  }

  end(): void {
    this.#line.push('end');
    this.#wake();
  }

  async *events(): AsyncGenerator<WatchEvent<Thing>> {
    try {
      for (;;) {
        this.#signal.throwIfAborted();
        const next = this.#line.shift();
        if (next === 'end') return;
        if (next instanceof Error) throw next;
        if (next !== undefined) yield next;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
    } finally {
      this.closed = true;
    }
  }
}

/** A fake API server: the test sends each response itself, or prepares it in advance. */
export class ScriptedServer implements Pick<ApiClient, 'list' | 'watch'> {
  readonly watches: ScriptedWatch[] = [];
  readonly lists: ListQuery[] = [];
  /**
   * Called for each watch before it opens; the watch opens if undefined is returned, and is
   * rejected with a returned error.
   */
  refuse: (query: WatchQuery, index: number) => Error | undefined = () => undefined;
  answer: (query: ListQuery, index: number) => ApiList<Thing> | Error = () => listOf('1');

  async list<T extends ApiObject>(query: ListQuery): Promise<ApiList<T>> {
    this.lists.push(query);
    const response = this.answer(query, this.lists.length - 1);
    if (response instanceof Error) throw response;
    return response as unknown as ApiList<T>;
  }

  watch<T extends ApiObject>(query: WatchQuery, signal: AbortSignal): AsyncIterable<WatchEvent<T>> {
    const watch = new ScriptedWatch(query, signal);
    const refusal = this.refuse(query, this.watches.length);
    this.watches.push(watch);
    if (refusal !== undefined) watch.fail(refusal);
    return watch.events() as unknown as AsyncIterable<WatchEvent<T>>;
  }

  get last(): ScriptedWatch {
    return this.watches.at(-1) ?? assert.fail('No watch was opened');
  }
}

export function thing(
  name: string,
  version: string,
  more: { uid?: string; immutable?: boolean } = {},
): Thing {
  const { uid = `uid-${name}`, immutable } = more;
  return {
    metadata: { name, namespace: 'default', uid, resourceVersion: version },
    ...(immutable === undefined ? {} : { immutable }),
  };
}

export const added = (name: string, version: string, uid?: string): WatchEvent<Thing> => ({
  type: 'ADDED',
  object: thing(name, version, uid === undefined ? {} : { uid }),
});
export const modified = (name: string, version: string): WatchEvent<Thing> => ({
  type: 'MODIFIED',
  object: thing(name, version),
});
export const deleted = (name: string, version: string): WatchEvent<Thing> => ({
  type: 'DELETED',
  object: thing(name, version),
});
export const bookmark = (resourceVersion: string): WatchEvent<Thing> => ({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion } },
});
export const allTold = (resourceVersion: string): WatchEvent<Thing> => ({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion, annotations: { 'k8s.io/initial-events-end': 'true' } } },
});

export function listOf(resourceVersion: string, ...items: Thing[]): ApiList<Thing> {
  return { metadata: { resourceVersion }, items };
}

export function refusal(status: number, message = 'no', retryAfterMs?: number): KubelingError {
  return apiError({ what: 'watch things', status, apiStatus: { message }, retryAfterMs });
}

export const unreachable = () =>
  new KubelingError('API_UNAVAILABLE', 'Cannot reach the server: connection refused');

export function reflectorRig(more: Partial<ReflectorOptions<Thing>> = {}, server = new ScriptedServer()) {
  const clock = new VirtualClock();
  const logs = collectLogs(clock);
  const query = { resource: apiResources.pods, fieldSelector: 'spec.nodeName=n1' };
  const random = seededRandom(7);
  const reflector = new Reflector<Thing>({
    client: server,
    clock,
    random,
    logger: logs.logger,
    query,
    ...more,
  });
  const changes: string[] = [];
  const sets: string[] = [];
  reflector.onChange(({ type, object }) => changes.push(`${type} ${text(object)}`));
  reflector.onSet((objects) => sets.push(objects.map(text).join(' ')));
  const lines = () => logs.records.toArray().map(({ message }) => message);
  const warnings = () =>
    logs.records
      .toArray()
      .filter(({ severity }) => severity !== 'info')
      .map(({ message }) => message);
  return { clock, server, reflector, changes, sets, lines, warnings };
}

export function text({ metadata }: Thing): string {
  return `${metadata?.name}@${metadata?.resourceVersion}`;
}

/** Starts a reflector and syncs it at version 10 with the objects a and b. */
export async function syncedRig(more: Partial<ReflectorOptions<Thing>> = {}, server = new ScriptedServer()) {
  const created = reflectorRig(more, server);
  created.reflector.start();
  await settle();
  created.server.last.send(added('a', '3'), added('b', '5'), allTold('10'));
  await settle();
  assert.equal(created.reflector.hasSynced, true);
  return created;
}

export const names = (reflector: Reflector<Thing>) => reflector.list().map(text).join(' ');
