import assert from 'node:assert/strict';
import {
  type ApiClient,
  type ApiObject,
  type ApiResource,
  apiResources,
  type ObjectRef,
  type WatchEvent,
  type WatchQuery,
} from '../../src/api/index.ts';
import { seededRandom } from '../../src/lib/index.ts';
import type { StoredObject } from '../../src/local-api/api/stored-object.ts';
import { SimulatedApi, type SimulatedApiOptions } from '../simulator/index.ts';
import { adminUser, nodeUser } from './api-users.ts';
import { VirtualClock } from './virtual-clock.ts';

export interface ApiRigOptions extends Partial<SimulatedApiOptions> {
  readonly seed?: number;
}

/** A watch and the events it has delivered so far. */
export interface Watched {
  readonly events: WatchEvent<StoredObject>[];
  /** How the watch ended; undefined while it is open. */
  end: 'ended' | Error | undefined;
  stop(): void;
}

/** A simulated API server under its own clock, with an administrator and a node as clients. */
export class ApiRig implements Disposable {
  readonly clock: VirtualClock;
  readonly api: SimulatedApi;
  readonly admin: ApiClient;
  readonly node: ApiClient;
  readonly signal = new AbortController().signal;

  constructor({ seed = 1, ...options }: ApiRigOptions = {}) {
    const random = seededRandom(seed);
    this.clock = new VirtualClock();
    this.api = new SimulatedApi({ clock: this.clock, random, ...options });
    this.admin = this.api.client(adminUser);
    this.node = this.api.client(nodeUser('n1'));
  }

  /** Advances the clock until the call is complete. */
  async done<T>(call: Promise<T>): Promise<T> {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    call.then(over, over);
    assert.ok(await this.clock.advanceUntil(() => isOver, 3_600_000), 'the call should end');
    return await call;
  }

  get(ref: ObjectRef): Promise<StoredObject> {
    return this.done(this.admin.get<StoredObject & ApiObject>(ref, {}, this.signal));
  }

  watch(client: ApiClient, query: Partial<WatchQuery> & { readonly resource: ApiResource }): Watched {
    const controller = new AbortController();
    const watched: Watched = {
      events: [],
      end: undefined,
      stop: () => controller.abort(new Error('stopped')),
    };
    const whole: WatchQuery = { begin: 'initial', timeoutSeconds: 300, ...query };
    const read = async () => {
      const events = client.watch<StoredObject & ApiObject>(whole, controller.signal);
      for await (const event of events) watched.events.push(event);
    };
    read().then(
      () => {
        watched.end = 'ended';
      },
      (error: Error) => {
        watched.end = error;
      },
    );
    return watched;
  }

  /** Creates a new node and a new pod on it. */
  pod(
    name: string,
    more: { readonly spec?: object; readonly status?: object; readonly metadata?: object } = {},
  ): StoredObject {
    const spec = { nodeName: 'n1', containers: [{ name: 'main', image: 'i' }], ...more.spec };
    const metadata = { namespace: 'default', name, ...more.metadata };
    return this.api.put(apiResources.pods, { metadata, spec, ...(more.status && { status: more.status }) });
  }

  [Symbol.dispose](): void {
    this.api.close();
  }
}

export const pods = apiResources.pods;

export function podRef(name: string, subresource?: string): ObjectRef {
  return { resource: pods, namespace: 'default', name, ...(subresource && { subresource }) };
}

/** Returns the events of a watch, for example `ADDED a`. */
export function told(watched: Watched): readonly string[] {
  return watched.events.map(({ type, object }) =>
    type === 'BOOKMARK' ? type : `${type} ${object.metadata?.name}`,
  );
}
