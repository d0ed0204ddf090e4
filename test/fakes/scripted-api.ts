import {
  type ApiClient,
  type ApiObject,
  apiError,
  type ListQuery,
  type ObjectRef,
  type WatchEvent,
  type WatchQuery,
} from '../../src/api/index.ts';
import { Waiters } from '../../src/lib/index.ts';

type Reads = Pick<ApiClient, 'get' | 'list' | 'watch'>;

interface News {
  readonly plural: string;
  readonly event: WatchEvent<ApiObject>;
}

/** A watch with its undelivered events. */
interface Watcher {
  readonly queue: News[];
  readonly more: Waiters<undefined>;
}

const initialEnd = { 'k8s.io/initial-events-end': 'true' };

/**
 * API objects that a test creates and deletes, for clients that only read. Supports field selectors
 * of the name.
 */
export class ScriptedApi implements Reads {
  /** The requests, for example `watch secrets ns/n`. */
  readonly asked: string[] = [];
  readonly queries: WatchQuery[] = [];
  /** The error that every call throws while it is set. */
  failure: Error | undefined;
  readonly #objects = new Map<string, ApiObject>();
  readonly #watchers = new Set<Watcher>();
  #version = 100;

  /** The number of open watches. */
  get watches(): number {
    return this.#watchers.size;
  }

  put<T extends ApiObject>(plural: string, object: T): void {
    this.#version++;
    const { namespace, name } = object.metadata ?? {};
    const key = `${plural} ${namespace}/${name}`;
    const known = this.#objects.get(key);
    const uid = known?.metadata?.uid ?? `uid-${this.#version}`;
    const metadata = { uid, ...object.metadata, resourceVersion: `${this.#version}` };
    const held = { ...object, metadata };
    this.#objects.set(key, held);
    const type = known === undefined ? 'ADDED' : 'MODIFIED';
    this.#tell({ plural, event: { type, object: held } });
  }

  remove(plural: string, at: string): void {
    const object = this.#objects.get(`${plural} ${at}`);
    if (object === undefined) return;
    this.#version++;
    this.#objects.delete(`${plural} ${at}`);
    this.#tell({ plural, event: { type: 'DELETED', object } });
  }

  async get<T extends ApiObject>({ resource, namespace, name }: ObjectRef): Promise<T> {
    this.asked.push(`get ${resource.plural} ${namespace}/${name}`);
    if (this.failure !== undefined) throw this.failure;
    const found = this.#objects.get(`${resource.plural} ${namespace}/${name}`);
    if (found !== undefined) return found as T;
    throw apiError({ what: `get ${resource.plural}/${name}`, status: 404, apiStatus: {} });
  }

  async list<T extends ApiObject>(query: ListQuery) {
    this.asked.push(`list ${query.resource.plural}`);
    if (this.failure !== undefined) throw this.failure;
    return { metadata: { resourceVersion: `${this.#version}` }, items: this.#selected<T>(query) };
  }

  async *watch<T extends ApiObject>(query: WatchQuery, signal: AbortSignal): AsyncIterable<WatchEvent<T>> {
    const name = query.fieldSelector?.replace('metadata.name=', '');
    this.asked.push(`watch ${query.resource.plural} ${query.namespace}/${name}`);
    this.queries.push(query);
    if (this.failure !== undefined) throw this.failure;
    const watcher: Watcher = { queue: [], more: new Waiters() };
    this.#watchers.add(watcher);
    try {
      yield* this.#initial<T>(query);
      for (;;) {
        if (watcher.queue.length === 0) await watcher.more.wait(signal);
        for (const { plural, event } of watcher.queue.splice(0)) {
          if (plural === query.resource.plural && this.#matches(query, event.object))
            yield event as WatchEvent<T>;
        }
      }
    } finally {
      this.#watchers.delete(watcher);
    }
  }

  *#initial<T extends ApiObject>(query: WatchQuery): Iterable<WatchEvent<T>> {
    if (query.begin !== 'initial') return;
    const metadata = { resourceVersion: `${this.#version}`, annotations: initialEnd };
    for (const object of this.#selected<T>(query)) yield { type: 'ADDED', object };
    yield { type: 'BOOKMARK', object: { metadata } };
  }

  #tell(news: News): void {
    for (const { queue, more } of this.#watchers) {
      queue.push(news);
      more.resolveAll(undefined);
    }
  }

  #selected<T extends ApiObject>(query: ListQuery | WatchQuery): T[] {
    const prefix = `${query.resource.plural} `;
    const all = [...this.#objects].filter(([key]) => key.startsWith(prefix)).map(([, object]) => object as T);
    return all.filter((object) => this.#matches(query, object));
  }

  #matches({ namespace, fieldSelector }: ListQuery | WatchQuery, { metadata }: ApiObject): boolean {
    const [, name] = /^metadata\.name=(.*)$/.exec(fieldSelector ?? '') ?? [];
    return (
      (namespace === undefined || namespace === metadata?.namespace) &&
      (name === undefined || name === metadata?.name)
    );
  }
}

/** Returns the error of every call while the server is unreachable. */
export function serverAway(): Error {
  return apiError({ what: 'reach the server', status: 503, apiStatus: {} });
}
