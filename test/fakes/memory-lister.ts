import type { EventSource, RuntimeHint, RuntimeLister } from '../../src/pleg/index.ts';
import type { ObservedContainerState, ObservedPod, PodUid, RuntimePod } from '../../src/pods/index.ts';
import { podUid } from '../../src/pods/index.ts';

type What = Exclude<RuntimeHint['what'], 'created' | 'other' | 'proof'>;

const hintFor: Readonly<Partial<Record<ObservedContainerState, What>>> = {
  running: 'started',
  exited: 'stopped',
};

/**
 * A fake runtime whose pods consist only of container states, which the test changes, with matching
 * events.
 */
export class MemoryLister implements RuntimeLister {
  readonly calls: string[] = [];
  readonly #pods = new Map<PodUid, Map<string, ObservedContainerState>>();
  readonly #listeners = new Set<(hint: RuntimeHint) => void>();
  readonly #breaks = new Set<(error: Error) => void>();
  ips: readonly string[] = ['10.0.0.1'];
  /** Called before each list response; may wait or throw. */
  beforeList: (signal: AbortSignal) => Promise<void> = async () => {};
  beforeObserve: (uid: PodUid, signal: AbortSignal) => Promise<void> = async () => {};
  beforeProvoke: (signal: AbortSignal) => Promise<void> = async () => {};
  /** Whether events are delivered. */
  events: 'delivered' | 'lost' = 'delivered';
  subscriptions = 0;
  provoked = 0;

  /** Sets the state of a container, or of the sandbox if its ID is given; undefined removes it. */
  set(uid: string, id: string, state: ObservedContainerState | undefined): void {
    const items = this.#pods.get(podUid(uid)) ?? new Map<string, ObservedContainerState>();
    if (state === undefined) items.delete(id);
    else items.set(id, state);
    if (items.size === 0) this.#pods.delete(podUid(uid));
    else this.#pods.set(podUid(uid), items);
    const what = state === undefined ? 'removed' : hintFor[state];
    if (what !== undefined) this.hint({ containerId: id, what });
  }

  hint(hint: RuntimeHint): void {
    if (this.events === 'delivered') for (const listener of [...this.#listeners]) listener(hint);
  }

  breakStreams(): void {
    for (const fail of [...this.#breaks]) fail(new Error('the event stream broke'));
  }

  get subscribers(): number {
    return this.#listeners.size;
  }

  /**
   * Returns the event source of this runtime. If `provokes` is `yes`, the source has a function
   * `provoke`, which publishes a test event.
   */
  source(options: { readonly provokes: 'yes' | 'no' } = { provokes: 'no' }): EventSource {
    const events = (signal: AbortSignal) => this.#stream(signal);
    if (options.provokes === 'no') return { events };
    const provoke = async (signal: AbortSignal) => {
      await this.beforeProvoke(signal);
      this.provoked++;
      this.hint({ containerId: 'proof', what: 'proof' });
    };
    return { events, provoke };
  }

  async listPods(signal: AbortSignal): Promise<readonly RuntimePod[]> {
    this.calls.push('list');
    const pods = [...this.#pods.keys()].flatMap((uid) => this.#pod(uid) ?? []);
    await this.beforeList(signal);
    return pods;
  }

  async listPod(uid: PodUid, signal: AbortSignal): Promise<RuntimePod | undefined> {
    this.calls.push(`list ${uid}`);
    const pod = this.#pod(uid);
    await this.beforeList(signal);
    return pod;
  }

  async observe(pod: RuntimePod, signal: AbortSignal): Promise<ObservedPod> {
    this.calls.push(`observe ${pod.uid}`);
    await this.beforeObserve(pod.uid, signal);
    const now = this.#pod(pod.uid) ?? pod;
    const isReady = now.sandboxes.some(({ state }) => state === 'running');
    return {
      uid: now.uid,
      name: now.name,
      namespace: now.namespace,
      ips: isReady ? this.ips : [],
      sandboxes: now.sandboxes.map(({ id, state, createdAtNs }) => ({
        id,
        attempt: 0,
        state: state === 'running' ? 'ready' : 'not-ready',
        createdAtNs,
        network: 'pod',
        ips: isReady ? this.ips : [],
        runtimeHandler: '',
      })),
      containers: now.containers.map(({ id, state, createdAtNs }) => ({
        id,
        runtimeName: 'memory',
        name: id,
        sandboxId: '',
        state,
        createdAtNs,
        startedAtNs: 0n,
        finishedAtNs: 0n,
        exitCode: 0,
        reason: '',
        message: '',
        image: '',
        imageRef: '',
        hash: '',
        restartCount: 0,
        logPath: '',
        annotations: {},
        labels: {},
        resources: undefined,
        user: undefined,
      })),
    };
  }

  #pod(uid: PodUid): RuntimePod | undefined {
    const items = this.#pods.get(uid);
    if (items === undefined) return undefined;
    const all = [...items].map(([id, state]) => ({ id, state, createdAtNs: 1n }));
    const isSandbox = ({ id }: { id: string }) => id.includes('sandbox');
    return {
      uid,
      name: `name-${uid}`,
      namespace: 'default',
      sandboxes: all.filter(isSandbox),
      containers: all
        .filter((item) => !isSandbox(item))
        .map((item) => ({ ...item, name: item.id, sandboxId: '', image: '' })),
    };
  }

  async *#stream(signal: AbortSignal): AsyncGenerator<RuntimeHint> {
    this.subscriptions++;
    const waiting: RuntimeHint[] = [];
    let wake = () => {};
    let failure: Error | undefined;
    const listener = (hint: RuntimeHint) => {
      waiting.push(hint);
      wake();
    };
    const fail = (error: Error) => {
      failure = error;
      wake();
    };
    const stop = () => fail(signal.reason);
    this.#listeners.add(listener);
    this.#breaks.add(fail);
    signal.addEventListener('abort', stop, { once: true });
    try {
      for (;;) {
        for (let hint = waiting.shift(); hint !== undefined; hint = waiting.shift()) yield hint;
        if (failure !== undefined) throw failure;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      this.#listeners.delete(listener);
      this.#breaks.delete(fail);
      signal.removeEventListener('abort', stop);
    }
  }
}
